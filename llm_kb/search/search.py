"""Search topics: by keywords always, by vectors where there is an embedding model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.search.index.database import IndexUnusableError, TopicGoneError
from llm_kb.search.index.index import Index, IndexReport, with_index
from llm_kb.search.index.vectors import Embedder, rank_by_vector, update_vectors
from llm_kb.search.pools import POOL, Pool, join_pools, rank_pool
from llm_kb.search.query import build_match, parse_question
from llm_kb.search.reranking import score_place

EMBED_AT_ONCE = 256
"""How many chunks without a vector a search embeds itself; more are for an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One chunk that answers, and where it stands; lines count from 1, both inclusive."""

    topic: str
    path: str
    first_line: int
    last_line: int
    title: str
    text: str
    score: float
    """At most 1; only the order within one result says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, best first, and the legs that ran: `keyword`, `dense`.

    A dense leg that could not see everything says so: `dense (120 of 400 chunks)`.
    """

    hits: tuple[Hit, ...]
    legs: tuple[str, ...]
    problems: tuple[IndexUnusableError, ...] = ()
    """Topics among several that could not be searched."""


def search(
    directories: Sequence[Path],
    question: str,
    *,
    limit: int = 10,
    embedder: Embedder | None = None,
) -> SearchResult:
    """Search the topics in these directories together; a topic's id is its directory's name.

    Every index is brought up to date with its files first. The caller leaves out
    obsolete topics. Of several, one that has been deleted meanwhile is left out, and
    one whose index cannot be used is a problem of the result.
    Raises IndexUnusableError and EmbeddingError.
    """
    vector = None
    if embedder and question.strip():
        vector = next(iter(embedder.embed([question])))
    pools: list[Pool] = []
    problems: list[IndexUnusableError] = []
    total = missing = 0

    def search_one(index: Index, report: IndexReport) -> tuple[Pool, int, int]:
        cosines: dict[int, float] = {}
        lacking = report.chunks
        if embedder and vector is not None:
            lacking = update_vectors(index, embedder.model, embedder.embed, limit=EMBED_AT_ONCE)
            cosines = rank_by_vector(index, embedder.model, vector, POOL)
        return find_pool(index, question, cosines), report.chunks, lacking

    for directory in directories:
        try:
            pool, chunks, lacking = with_index(directory, search_one)
        except IndexUnusableError as error:
            if len(directories) == 1:
                raise
            if not isinstance(error, TopicGoneError):
                problems.append(error)
            continue
        pools.append(pool)
        total += chunks
        missing += lacking
    if problems and not pools:
        raise problems[0]
    return SearchResult(
        hits=tuple(rank_hits(join_pools(pools), limit)),
        legs=_legs(total, missing),
        problems=tuple(problems),
    )


def _legs(total: int, missing: int) -> tuple[str, ...]:
    """Name the legs that ran; `missing` chunks were not seen by the dense one."""
    if missing >= total:
        return ("keyword",)
    if missing:
        return ("keyword", f"dense ({total - missing} of {total} chunks)")
    return ("keyword", "dense")


def find_pool(index: Index, question: str, cosines: Mapping[int, float]) -> Pool:
    """Return the best chunks of an index by their words, and those that the dense leg found."""
    terms = parse_question(question)
    words = [term for term in terms if " " not in term]
    frequencies = index.count_frequencies(words)
    total = index.count_chunks()
    match = build_match(terms, frequencies, total)
    scores = index.match(match, POOL, list(cosines)) if match else {}
    chunks = index.read_chunks([*scores, *(id_ for id_ in cosines if id_ not in scores)])
    topic = index.directory.name
    return Pool(
        chunks={(topic, id_): chunk for id_, chunk in chunks.items()},
        scores={(topic, id_): scores[id_] for id_ in chunks if id_ in scores},
        cosines={(topic, id_): cosines[id_] for id_ in chunks if id_ in cosines},
        words=words,
        frequencies=frequencies,
        total=total,
    )


def rank_hits(pool: Pool, limit: int) -> list[Hit]:
    """Return the best chunks of a pool as hits, best first."""
    hits = []
    for place, key in enumerate(rank_pool(pool, limit), 1):
        chunk = pool.chunks[key]
        hits.append(
            Hit(
                topic=key[0],
                path=chunk.path,
                first_line=chunk.first_line,
                last_line=chunk.last_line,
                title=chunk.title,
                text=chunk.text,
                score=round(score_place(place), 4),
            )
        )
    return hits
