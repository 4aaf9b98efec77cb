"""Search topics: by keywords always, by vectors where there is an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.references.index import Index, IndexReport, StoredChunk, with_index
from llm_kb.references.index_database import TopicGoneError
from llm_kb.references.query import build_match, parse_question
from llm_kb.references.ranking import fuse, score_place, spread
from llm_kb.references.reranking import Candidate, rerank
from llm_kb.references.vectors import Embed, rank_by_vector, update_vectors

POOL = 60
"""How many chunks each leg contributes."""

PER_FILE = 4
"""How many chunks of one file come before those of other files."""

DENSE_WEIGHT = 0.5
"""What being the nearest adds to the logarithm of a score: it is worth 1.65 times as much.

Chosen on the tune sets of bench/retrieval.py: where a higher one does better on two of them, it is
below the words alone on the third, and a weak dense leg must not spoil what these have found.
"""

EMBED_AT_ONCE = 256
"""How many chunks without a vector a search embeds itself; more are for an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """An embedding model: its id, and what turns texts into vectors."""

    model: str
    embed: Embed


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


def search(
    directories: Sequence[Path],
    question: str,
    *,
    limit: int = 10,
    embedder: Embedder | None = None,
) -> SearchResult:
    """Search the topics in these directories; a topic's id is its directory's name.

    Every index is brought up to date with its files first. The caller leaves out
    obsolete topics. One of several that has been deleted meanwhile is left out.
    Raises IndexUnusableError and EmbeddingError.
    """
    vector = None
    if embedder and question.strip():
        vector = next(iter(embedder.embed([question])))
    hits: list[Hit] = []
    total = missing = 0

    def search_one(index: Index, report: IndexReport) -> tuple[list[Hit], int, int]:
        dense: list[int] = []
        lacking = report.chunks
        if embedder and vector is not None:
            lacking = update_vectors(index, embedder.model, embedder.embed, limit=EMBED_AT_ONCE)
            dense = rank_by_vector(index, embedder.model, vector, POOL)
        return search_index(index, question, limit=limit, dense=dense), report.chunks, lacking

    for directory in directories:
        try:
            found, chunks, lacking = with_index(directory, search_one)
        except TopicGoneError:
            if len(directories) == 1:
                raise
            continue
        hits += found
        total += chunks
        missing += lacking
    hits.sort(key=lambda hit: -hit.score)
    return SearchResult(hits=tuple(hits[:limit]), legs=_legs(total, missing))


def _legs(total: int, missing: int) -> tuple[str, ...]:
    """Name the legs that ran; `missing` chunks were not seen by the dense one."""
    if missing >= total:
        return ("keyword",)
    if missing:
        return ("keyword", f"dense ({total - missing} of {total} chunks)")
    return ("keyword", "dense")


def search_index(
    index: Index, question: str, *, limit: int, dense: Sequence[int] = ()
) -> list[Hit]:
    """Search one index as it is, fusing what the dense leg found, if it ran."""
    chunks: dict[int, StoredChunk] = {}
    keyword = score_by_keywords(index, question, chunks)
    chunks |= index.read_chunks([id_ for id_ in dense if id_ not in chunks])
    fused = fuse(keyword, [id_ for id_ in dense if id_ in chunks], weight=DENSE_WEIGHT)
    order = spread(fused, lambda id_: chunks[id_].path, per_group=PER_FILE, limit=limit)
    topic = index.directory.name
    return [_hit(topic, chunks[id_], score_place(place)) for place, id_ in enumerate(order, 1)]


def _hit(topic: str, chunk: StoredChunk, score: float) -> Hit:
    return Hit(
        topic=topic,
        path=chunk.path,
        first_line=chunk.first_line,
        last_line=chunk.last_line,
        title=chunk.title,
        text=chunk.text,
        score=round(score, 4),
    )


def score_by_keywords(
    index: Index, question: str, chunks: dict[int, StoredChunk]
) -> dict[int, float]:
    """Return the scores of the best chunks that hold words of the question, best first.

    What was read of them is added to `chunks`.
    """
    terms = parse_question(question)
    words = [term for term in terms if " " not in term]
    frequencies = index.count_frequencies(words)
    total = index.count_chunks()
    match = build_match(terms, frequencies, total)
    scores = index.match(match, POOL) if match else {}
    read = index.read_chunks(list(scores))
    chunks |= read
    candidates = [
        Candidate(
            score=scores[id_],
            path=chunk.path,
            title=chunk.title,
            heading=chunk.heading,
            text=chunk.text,
            first_line=chunk.first_line,
            last_line=chunk.last_line,
        )
        for id_, chunk in read.items()
    ]
    new = zip(read, rerank(candidates, words, frequencies, total), strict=True)
    return dict(sorted(new, key=lambda pair: -pair[1]))
