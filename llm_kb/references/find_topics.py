"""Find reference topics by id, by title, by words that name them, and by what they are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

from llm_kb.errors import KbError
from llm_kb.files.documents import stamp_content
from llm_kb.references.errors import UnknownReferenceError
from llm_kb.references.library import Library
from llm_kb.references.topic.topic_file import Status, TopicFile, make_snippet
from llm_kb.search.index.documents import Documents, File, TopicGroup
from llm_kb.search.question import STOP_WORDS
from llm_kb.subjects.topics import Topic

NEAR = 0.3
"""Cosine from which a topic may be about a query: with a small model bench/retrieval/topics.py
found 95 of 100 intended topics at or above this one, and 87 at 0.4."""

MOST_NEAR = 3
"""The most topics found by meaning alone."""

MOST_FOUND = 10
"""Number of topics that a search for topics returns."""

MOST_NAMED = 5
"""Number of topics that words may name together, and that an error suggests."""


class ObsoleteTopicError(KbError):
    """A search in a topic that is marked obsolete."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id
        super().__init__(
            f"reference topic {topic_id!r} is marked obsolete and is not searched; its files can"
            ' still be read, and `status = "active"` in its topic.md puts it back (see'
            f" `llm kb references show {topic_id}`)"
        )


class Descriptions(Documents):
    """The descriptions of topics as the documents of a search."""

    name = "topics"

    def __init__(self, topics: Sequence[TopicFile]) -> None:
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
    by_path = {_hide(topic.id): topic for topic in topics}
    database = library.root / ".index" / "descriptions.sqlite3"
    described = TopicGroup(database=database, topics=[Descriptions(topics)])
    result = search([described], asked, library.find_embedder, limit=len(topics))
    found: dict[str, tuple[TopicFile, float, str]] = {}
    near = 0
    for hit in result.hits:
        if not hit.bm25:
            near += 1
        if hit.bm25 or (near <= MOST_NEAR and (hit.cosine or 0) >= NEAR):
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


T = TypeVar("T", bound=Topic | TopicFile)

_KINDS = frozenset(
    """
    api book code documentation doc framework guide handbook library manual module official
    package page project reference repo repository site source specification spec topic tutorial
    website wiki
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
"""Words for kinds of documents, which people add to a name and which fit any topic."""

# C, C++ and C# are three languages.
_NAME_WORD = re.compile(r"[^\W_]+[+#]*")
_END_OF_NAME = re.compile(r"\s[-\u2013\u2014|]\s|:\s|\s\(")


def find_named(topics: Iterable[T], words: str) -> list[T]:
    """Return the topics that words may mean: one if they are clear, else several.

    Every word must be in the topic's title or tags, except those of `_KINDS`, which only decide
    between topics. A topic's name is its title up to a dash or colon. A topic whose name has no
    other words comes before others; if it lacks one of the words, the others are meant as well.
    """
    asked = _words(words)
    if not asked:
        return []
    found: dict[tuple[bool, int], list[T]] = {}
    for topic in topics:
        own = _words(topic.title or "") | _words(" ".join(topic.tags))
        if _telling(asked) <= own:
            name = _words(_END_OF_NAME.split(topic.title or "")[0])
            key = (_telling(name) <= asked, len(asked & own))
            found.setdefault(key, []).append(topic)
    best = max(found, default=(True, len(asked)))
    whole = [] if best[1] == len(asked) else found.get((False, len(asked)), [])
    return [*found.get(best, []), *whole]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words, a plural as its singular."""
    words = frozenset(_NAME_WORD.findall(text.casefold()))
    return frozenset(map(_singular, words - STOP_WORDS["en"] or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _telling(words: frozenset[str]) -> frozenset[str]:
    """Return the words that distinguish topics; all words if none does."""
    return words - _KINDS or words
