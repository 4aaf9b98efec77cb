"""Answer questions from reference topics: choose the topics, search their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.documents import stamp_content
from llm_kb.references.answers import search_answer
from llm_kb.references.errors import UnknownReferenceError
from llm_kb.references.library import Library
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, TopicHit, make_snippet
from llm_kb.references.topic_names import find_named
from llm_kb.rendering.passages import describe_words
from llm_kb.search.index.documents import File, TopicGroup
from llm_kb.search.question import EmptyQuestionError, parse_question
from llm_kb.search.roles import Scope
from llm_kb.search.search import search
from llm_kb.subjects.selection import keep_tagged

NEAR = 0.3
"""Cosine from which a topic may be about a query: with a small model bench/retrieval/topics.py
found 95 of 100 intended topics at or above this one, and 87 at 0.4."""

MOST_NEAR = 3
"""The most topics found by meaning alone."""

MOST_FOUND = 10
"""Number of topics that a search for topics returns."""

MOST_NAMED = 5
"""Number of topics that words may name together, and that an error suggests."""

LIMIT = 8
"""Hits of one search: about 8,000 characters."""

MOST_WARNINGS = 20
"""The most warnings of one answer; thousands of files may be left out of a search."""


class ObsoleteTopicError(KbError):
    """A search in a topic that is marked obsolete."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id
        super().__init__(
            f"reference topic {topic_id!r} is marked obsolete and is not searched; its files can"
            " still be read, and"
            f" `llm kb references update {topic_id} --status active` puts it back"
        )


def ask(  # noqa: PLR0913 - each narrows the search
    library: Library,
    question: str,
    topic: str | None = None,
    limit: int = LIMIT,
    *,
    scope: Scope | None = None,
    tags: Sequence[str] = (),
) -> dict[str, Any]:
    """Search the topics that `topic` names, or all that are not obsolete, for `limit` passages.

    `tags` keeps the topics with one of them. The answer, made by `search_answer`, begins with
    the topics: those that were named, else those with a hit. It warns of files that were
    not searched. Raises EmptyQuestionError for a question without a word.
    """
    asked = parse_question(question)
    problems: list[str] = []
    if topic:
        chosen = find_meant(library, topic)
    else:
        found, unreadable = library.topics()
        chosen = [each for each in found if each.status is not Status.OBSOLETE]
        problems = [f"not searched: {problem}" for problem in unreadable]
    tagged = keep_tagged([each.tags for each in chosen], tags)
    chosen = [chosen[number] for number in tagged]
    sets = [library.store.documents(each.id) for each in chosen]
    groups = [TopicGroup(database=library.store.index, topics=sets)] if sets else []
    result = search(groups, asked, library.find_embedder, limit=limit, scope=scope)
    problems += result.notices
    problems += describe_words(
        result.unknown, result.replaced, result.counts if result.hits and result.is_weak else ()
    )
    if not result.is_covered and chosen:
        problems.append(f"there is no {scope}")
    elif not result.hits and chosen:
        problems.append("no text has a word of that; try the words such a text would use")
    topics = {each.id: each for each in chosen}
    searched = list(dict.fromkeys(hit.topic for hit in result.hits))
    for topic_id in searched:
        if outdated := library.find_outdated(topics[topic_id]):
            problems.append(
                f"{topic_id}: {outdated}; to follow: llm kb references refresh {topic_id}"
            )
    records = {topic_id: _provenance(library, topic_id) for topic_id in searched}
    shown = topics if topic else {topic_id: topics[topic_id] for topic_id in searched}
    answer = search_answer(result, shown, records, library.clock())
    if len(problems) > MOST_WARNINGS:
        problems[MOST_WARNINGS:] = [f"and {len(problems) - MOST_WARNINGS:,} more warnings"]
    return answer | ({"warnings": problems} if problems else {})


class Descriptions:
    """The descriptions of topics as the documents of a search. Implements `Documents`."""

    name = "topics"
    root = place = ""
    trust = None
    watch = None

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


def find_topics(library: Library, query: str) -> list[TopicHit]:
    """Return the topics that a query is about, best first, including obsolete ones.

    With an embedding model, topics that mean the same in other words are
    found too: the nearest few, so that the caller can choose by their titles.
    """
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
    found: dict[str, TopicHit] = {}
    near = 0
    for hit in result.hits:
        if not hit.bm25:
            near += 1
        if hit.bm25 or (near <= MOST_NEAR and (hit.cosine or 0) >= NEAR):
            topic = by_path[hit.path]
            snippet = make_snippet(topic.body, asked.words)
            found.setdefault(hit.path, TopicHit(topic=topic, score=hit.score, snippet=snippet))
    return list(found.values())[:MOST_FOUND]


def find_topic(library: Library, wanted: str, *, obsolete: bool = False) -> TopicFile:
    """Return the one topic that `find_meant` finds; raise its errors, also for several topics."""
    found = find_meant(library, wanted, obsolete=obsolete)
    if len(found) > 1:
        raise UnknownReferenceError(wanted, library.store.ids(), near=[each.id for each in found])
    return found[0]


def find_meant(library: Library, wanted: str, *, obsolete: bool = False) -> list[TopicFile]:
    """Return the topic of an id, of a title in any case, or the few that words clearly name.

    Raises UnknownReferenceError, which names the nearest topics, for words that name none or
    many, TopicFileError if its own file cannot be read, and ObsoleteTopicError unless
    `obsolete` topics are allowed.
    """
    if wanted in library.store.ids():
        found = [library.read(wanted)]
    else:
        topics, problems = library.topics()
        active = [topic for topic in topics if topic.status is not Status.OBSOLETE]
        found = _find_named(active, wanted) or _find_named(topics, wanted)
        if problems and not found:
            _read_broken(library, topics, wanted)
        if not 1 <= len(found) <= MOST_NAMED:
            near = found or [hit.topic for hit in find_topics(library, wanted)]
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
    if wanted in library.store.ids():
        return wanted
    return find_topic(library, wanted, obsolete=True).id


def _find_named(topics: Sequence[TopicFile], wanted: str) -> list[TopicFile]:
    titled = [topic for topic in topics if topic.title.casefold() == wanted.casefold()]
    return titled or find_named(topics, wanted)


def _read_broken(library: Library, readable: Sequence[TopicFile], wanted: str) -> None:
    """Raise the error of the unreadable topic that words name, if there is one."""
    others = set(library.store.ids()) - {topic.id for topic in readable}
    named = find_named([TopicFile(id=id_, title=id_) for id_ in sorted(others)], wanted)
    if len(named) == 1:
        library.read(named[0].id)


def _provenance(library: Library, topic_id: str) -> Provenance:
    try:
        return read_provenance(library.store.directory(topic_id))
    except KbError:  # `verify` reports it; the hits stay
        return Provenance()
