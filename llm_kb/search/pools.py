"""The chunks that may answer a question, of one topic or several, and their order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import TYPE_CHECKING

from llm_kb.search.reranking import Candidate, find_rarity, rerank, spread

if TYPE_CHECKING:
    from llm_kb.search.index.index import StoredChunk

POOL = 60
"""How many chunks each leg contributes."""

PER_FILE = 4
"""How many chunks of one file come before those of other files."""

LOOK_UP = 2
"""A question of no more words looks a name up: what answers best by its words stays first."""

Key = tuple[str, int]
"""A chunk: its topic and its id there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The chunks that may answer a question, in no order, and what to rank them by."""

    chunks: Mapping[Key, StoredChunk]
    scores: Mapping[Key, float]
    """The BM25 scores of those that match by their words."""
    cosines: Mapping[Key, float]
    """Of those that the dense leg found."""
    words: Sequence[str]
    """Those of the question, in its order."""
    frequencies: Mapping[str, int]
    """In how many of the chunks there are each word occurs."""
    total: int
    """How many chunks there are."""


def join_pools(pools: Sequence[Pool]) -> Pool:
    """Return one pool of those of several topics, for the same question.

    A word that is frequent in a topic counts little in its scores, and is what the topic
    is about. So they are scaled to how rare the words are in all topics together.
    """
    if len(pools) == 1:
        return pools[0]
    words = pools[0].words if pools else ()
    frequencies = Counter[str]()
    for pool in pools:
        frequencies.update(pool.frequencies)
    total = sum(pool.total for pool in pools)
    scores: dict[Key, float] = {}
    for pool in pools:
        found = [word for word in words if pool.frequencies.get(word)]
        here = sum(find_rarity(pool.frequencies[word], pool.total) for word in found)
        everywhere = sum(find_rarity(frequencies[word], total) for word in found)
        scale = everywhere / here if here else 1.0
        scores |= {key: scale * score for key, score in pool.scores.items()}
    return Pool(
        chunks={key: chunk for pool in pools for key, chunk in pool.chunks.items()},
        scores=scores,
        cosines={key: cosine for pool in pools for key, cosine in pool.cosines.items()},
        words=words,
        frequencies=frequencies,
        total=total,
    )


def rank_pool(pool: Pool, limit: int) -> list[Key]:
    """Return the best chunks, best first, spread over their files."""
    ranked = _rank(pool, list(pool.chunks))
    if pool.cosines and len(pool.words) <= LOOK_UP:
        by_words = nlargest(POOL, pool.scores, key=pool.scores.__getitem__)
        first = _rank(replace(pool, cosines={}), by_words)[:1]
        ranked = list(dict.fromkeys([*first, *ranked]))
    return spread(
        ranked, lambda key: (key[0], pool.chunks[key].path), per_group=PER_FILE, limit=limit
    )


def make_candidates(pool: Pool, keys: Sequence[Key]) -> list[Candidate]:
    """Return what some chunks of a pool are ranked by.

    Where there are several topics, a path begins with its topic.
    """
    nearest = sorted(pool.cosines, key=lambda key: -pool.cosines[key])
    ranks = {key: rank for rank, key in enumerate(nearest, 1)}
    has_several = len({topic for topic, _ in pool.chunks}) > 1
    return [
        Candidate(
            score=pool.scores.get(key, 0.0),
            path=f"{key[0]}/{chunk.path}" if has_several else chunk.path,
            title=chunk.title,
            heading=chunk.heading,
            text=chunk.text,
            first_line=chunk.first_line,
            last_line=chunk.last_line,
            rank=ranks.get(key),
        )
        for key, chunk in ((key, pool.chunks[key]) for key in keys)
    ]


def _rank(pool: Pool, keys: Sequence[Key]) -> list[Key]:
    """Return chunks of a pool, best first."""
    candidates = make_candidates(pool, keys)
    scores = rerank(candidates, pool.words, pool.frequencies, pool.total)
    ranked = sorted(zip(scores, keys, strict=True), key=lambda pair: -pair[0])
    return [key for _, key in ranked]
