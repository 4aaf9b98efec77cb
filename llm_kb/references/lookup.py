"""Finds fetched topics by id, by title, by words that name them, and by what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from llm_kb.files.topic_documents import stamp_content
from llm_kb.references.errors import ObsoleteTopicError, UnknownReferenceError
from llm_kb.references.library import DESCRIPTIONS, Library
from llm_kb.references.topic.topic_file import Status, TopicFile, make_snippet
from llm_kb.search.index.documents import Documents, File
from llm_kb.search.titles import find_named

NEAR = 0.3
"""Cosine from which a topic may be about a query: with a small model bench/retrieval/topics.py
found 95 of 100 intended topics at or above this one, and 87 at 0.4."""

MOST_NEAR = 3
"""The most topics found by meaning alone."""

MOST_FOUND = 10
"""Number of topics that a search for topics returns."""

MOST_NAMED = 5
"""Number of topics that words may name together, and that an error suggests."""


class Descriptions(Documents):
    """The descriptions of topics as documents in the index of their library."""

    name = DESCRIPTIONS

    def __init__(self, library: Library, topics: Sequence[TopicFile]) -> None:
        self.root = str(library.root)
        self.index = library.index
        self._texts = {
            _hide(topic.id): f"# {topic.title}\n\n{', '.join(topic.tags)}\n\n{topic.body}".encode()
            for topic in topics
        }

    def list(self) -> Iterator[File]:
        """Yield the topics, each with a stamp that changes with its description."""
        for path, text in self._texts.items():
            yield File(path, *stamp_content(text))

    def read(self, path: str) -> bytes:
        """Return the text that describes a topic."""
        return self._texts[path]


def _hide(topic_id: str) -> str:
    """Return a path for a topic that contains no word of a query."""
    return f"{blake2b(topic_id.encode(), digest_size=10).hexdigest()}.md"


def find_topics(library: Library, query: str) -> list[tuple[TopicFile, float, str]]:
    """Return the topics that a query is about, best first, each with its score and a snippet.

    Obsolete ones are among them. With an embedding model, topics that mean the same in other words
    are found too: the nearest few, so that the caller can choose by their titles.
    """
    # Imported here: a prompt, and a client's greeting, look for a topic by its name alone.
    from llm_kb.search.question import EmptyQuestionError, parse_question  # noqa: PLC0415
    from llm_kb.search.search import search  # noqa: PLC0415

    topics, _ = library.topics()
    try:
        asked = parse_question(query)
    except EmptyQuestionError:
        return []
    if not topics:
        return []
    described = Descriptions(library, topics)
    result = search([described], asked, library.find_embedder, limit=len(topics))
    near = [hit for hit in result.hits if not hit.bm25][:MOST_NEAR]
    by_path = {_hide(topic.id): topic for topic in topics}
    found: dict[str, tuple[TopicFile, float, str]] = {}
    for hit in result.hits:
        if hit.bm25 or (hit in near and (hit.cosine or 0) >= NEAR):
            topic = by_path[hit.path]
            snippet = make_snippet(topic.body, asked.words)
            found.setdefault(hit.path, (topic, hit.score, snippet))
    return list(found.values())[:MOST_FOUND]


def find_topic(library: Library, wanted: str, *, obsolete: bool = False) -> TopicFile:
    """Return the one topic that `find_meant` finds; raise its errors, also for several topics."""
    found = find_meant(library, wanted, obsolete=obsolete)
    if len(found) > 1:
        raise UnknownReferenceError(wanted, library.ids(), near=[each.id for each in found])
    return found[0]


def find_meant(library: Library, wanted: str, *, obsolete: bool = False) -> list[TopicFile]:
    """Return the topic of an id, of a title in any case, or the few that words clearly name.

    Raises UnknownReferenceError, which names the nearest topics, for words that name none or
    many, TopicFileError if its own file cannot be read, and ObsoleteTopicError unless
    `obsolete` topics are allowed.
    """
    if wanted in library.ids():
        found = [library.read(wanted)]
    else:
        topics, _ = library.topics()
        active = [topic for topic in topics if topic.status is not Status.OBSOLETE]
        found = _find_named(active, wanted) or _find_named(topics, wanted)
        if not 1 <= len(found) <= MOST_NAMED:
            near = found or [near for near, _, _ in find_topics(library, wanted)]
            raise UnknownReferenceError(
                wanted,
                [topic.id for topic in active],
                near=[topic.id for topic in near if topic in active][:MOST_NAMED],
            )
    if found[0].status is Status.OBSOLETE and not obsolete:
        raise ObsoleteTopicError(found[0].id)
    return found


def find_id(library: Library, wanted: str) -> str:
    """Return the id that an id, a title or words name; broken topics are found too."""
    if wanted in library.ids():
        return wanted
    return find_topic(library, wanted, obsolete=True).id


def _find_named(topics: Sequence[TopicFile], wanted: str) -> list[TopicFile]:
    titled = [topic for topic in topics if topic.title.casefold() == wanted.casefold()]
    return titled or find_named(topics, wanted)
