"""Answer questions from reference topics: choose the topics, search their files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from llm_kb.errors import KbError
from llm_kb.references.answers import search_answer
from llm_kb.references.errors import UnknownReferenceError
from llm_kb.references.library import Library
from llm_kb.references.sources.records import CrawlSource, Role, WebSource
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, make_snippet
from llm_kb.references.topic.topic_search import TopicHit, find_named, search_topics
from llm_kb.search.hits import Hit
from llm_kb.search.index.vectors import EmbeddingError
from llm_kb.search.search import search

SPARE = 12
"""How many more hits are looked at, from which documentation may rise."""

NEAR = 0.3
"""Cosine from which a topic may be about a query: with a small model bench/topics.py saw 95 of
100 topics that were meant at this one and above, and 87 at 0.4."""

MOST_NEAR, MOST_EMBEDDED = 3, 200
"""How many topics meaning finds, and how many are looked at for it."""

MOST_NAMED = 5
"""How many topics an error suggests when the one asked for is not there."""

LIMIT = 8
"""Hits of one search: about 8,000 characters."""


class ObsoleteTopicError(KbError):
    """A search in a topic that its owner gave up."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id
        super().__init__(
            f"reference topic {topic_id!r} is marked obsolete and is not searched; its files can"
            " still be read, and"
            f" `llm kb references update {topic_id} --status active` puts it back"
        )


def ask(
    library: Library, question: str, topic: str | None = None, limit: int = LIMIT
) -> dict[str, Any]:
    """Search one topic, or all that are not obsolete; return what `search_answer` makes of it.

    The answer tells which topic was searched where `topic` names one, and warns of what was
    not searched.
    """
    if topic:
        chosen, problems = [find_topic(library, topic)], []
    else:
        found, unreadable = library.topics()
        chosen = [each for each in found if each.status is not Status.OBSOLETE]
        problems = [f"not searched: {problem}" for problem in unreadable]
    sets = [library.store.documents(each.id) for each in chosen]
    pool = limit + SPARE
    try:
        embedder = library.find_embedder()
        result = search(sets, question, limit=pool, embedder=embedder)
    except EmbeddingError as error:
        problems.append(f"keywords only: {error}")
        result = search(sets, question, limit=pool)
    problems += [f"searched without an index: {problem}" for problem in result.problems]
    problems += [left.of(name) for name, left in result.left_out]
    topics = {each.id: each for each in chosen}
    searched = dict.fromkeys(hit.topic for hit in result.hits)
    for topic_id in searched:
        if outdated := library.find_outdated(topics[topic_id]):
            problems.append(
                f"{topic_id}: {outdated}; to follow: llm kb references refresh {topic_id}"
            )
    records = {topic_id: _provenance(library, topic_id) for topic_id in searched}
    hits = rank_by_role(
        result.hits, lambda hit: find_role(hit.path, topics[hit.topic], records[hit.topic])
    )
    answer = search_answer(
        replace(result, hits=tuple(hits[:limit])), topics, records, library.clock()
    )
    named = {"topic_id": chosen[0].id} if topic else {}
    return named | answer | ({"warnings": problems} if problems else {})


def find_topics(library: Library, query: str) -> list[TopicHit]:
    """Return the topics a query is about, best first, obsolete ones included.

    Where there is an embedding model, topics that mean the same in other words are
    found too: the nearest few, so that the caller can judge by their titles.
    """
    topics, _ = library.topics()
    hits = search_topics(topics, query)
    found = {hit.topic.id for hit in hits}
    others = [topic for topic in topics if topic.id not in found][:MOST_EMBEDDED]
    try:
        embedder = library.find_embedder()
        if embedder is None or not others:
            return hits
        vectors = list(embedder.embed([query, *map(describe_topic, others)]))
    except EmbeddingError:
        return hits  # `reference_search` tells of it, with the same model
    near = [
        TopicHit(topic=topic, score=round(cosine, 2), snippet=make_snippet(topic.body))
        for topic, vector in zip(others, vectors[1:], strict=True)
        if (cosine := measure_cosine(vectors[0], vector)) >= NEAR
    ]
    return [*hits, *sorted(near, key=lambda hit: -hit.score)[:MOST_NEAR]]


def find_topic(library: Library, wanted: str, *, obsolete: bool = False) -> TopicFile:
    """Return the topic of an id, of a title in any case, or that words clearly name.

    Raises UnknownReferenceError, which names the nearest topics, for words that name none or
    several, TopicFileError where its own file cannot be read, and ObsoleteTopicError unless
    `obsolete` topics are wanted as well.
    """
    if wanted in library.store.ids():
        found = [library.read(wanted)]
    else:
        topics, problems = library.topics()
        active = [topic for topic in topics if topic.status is not Status.OBSOLETE]
        found = _find_meant(active, wanted) or _find_meant(topics, wanted)
        if problems and not found:
            _read_broken(library, topics, wanted)
        if len(found) != 1:
            near = found or [hit.topic for hit in find_topics(library, wanted)]
            raise UnknownReferenceError(
                wanted,
                [topic.id for topic in active],
                near=[topic.id for topic in near if topic in active][:MOST_NAMED],
            )
    if found[0].status is Status.OBSOLETE and not obsolete:
        raise ObsoleteTopicError(found[0].id)
    return found[0]


def find_id(library: Library, wanted: str) -> str:
    """Return the id that an id, a title or words name; for commands, broken topics included."""
    if wanted in library.store.ids():
        return wanted
    return find_topic(library, wanted, obsolete=True).id


def _find_meant(topics: Sequence[TopicFile], wanted: str) -> list[TopicFile]:
    titled = [topic for topic in topics if topic.title.casefold() == wanted.casefold()]
    return titled or find_named(topics, wanted)


def _read_broken(library: Library, readable: Sequence[TopicFile], wanted: str) -> None:
    """Read the topic that words name, if it cannot be read: its error says why not."""
    others = set(library.store.ids()) - {topic.id for topic in readable}
    named = find_named([TopicFile(id=id_, title=id_) for id_ in sorted(others)], wanted)
    if len(named) == 1:
        library.read(named[0].id)


def describe_topic(topic: TopicFile) -> str:
    """Return what is embedded of a topic: its title, its tags, how its description begins."""
    return f"{topic.title}\n{', '.join(topic.tags)}\n{make_snippet(topic.body)}"


def measure_cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 where one has no direction."""
    lengths = math.sqrt(sum(x * x for x in one) * sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else 0.0


def _provenance(library: Library, topic_id: str) -> Provenance:
    try:
        return read_provenance(library.store.directory(topic_id))
    except KbError:  # `verify` reports it; the hits stand
        return Provenance()


DOCS_PLACES = 1.5
"""How many places a hit in documentation gains: it passes code that is one place better.

Chosen by bench/roles.py: more takes from questions about code far more than it gives
to others, as what BM25 and its reranking put above documentation mostly answers.
"""

_DOCS = frozenset(
    {"adoc", "asciidoc", "htm", "html", "markdown", "md", "mdx", "org", "qmd", "rst", "tex", "txt"}
)


def infer_role(path: str) -> Role:
    """Tell documentation from code by the name of a file."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    is_named = (stem or name) in {"readme", "changelog", "contributing", "license"}
    return Role.DOCS if (dot and extension in _DOCS) or is_named else Role.CODE


def find_role(path: str, topic: TopicFile, provenance: Provenance) -> Role:
    """Return the role of a fetched file: its source's, where that has one."""
    record = provenance.files.get(path)
    source = topic.sources[record.source] if record and record.source < len(topic.sources) else None
    if source and source.role:
        return source.role
    return Role.DOCS if isinstance(source, WebSource | CrawlSource) else infer_role(path)


def rank_by_role(hits: Sequence[Hit], role_of: Callable[[Hit], Role]) -> list[Hit]:
    """Return hits, best first, documentation passing code that is as good."""
    places = [
        (place - DOCS_PLACES if role_of(hit) is Role.DOCS else place, place)
        for place, hit in enumerate(hits)
    ]
    return [hits[place] for _, place in sorted(places)]
