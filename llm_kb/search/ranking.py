"""The order of the chunks that may answer a question, of one topic or several. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import TypeVar

from llm_kb.search.features import (
    Features,
    Question,
    find_best,
    find_features,
    find_rarity,
    measure_answer,
)
from llm_kb.search.hits import Hit

CANDIDATES = 50
"""Number of chunks that each leg contributes."""

PER_FILE = 4
"""Number of chunks of one file that may come before those of other files."""

LEAST = 0.1
"""Lowest BM25 score, as a share of the best; also that of chunks found by meaning alone."""

WEIGHTS = Features(opens=1.0, named=1.7, run=1.1, adjoining=1.1, file=0.5, dense=2.0)
"""Weight of each feature in the logarithm of a score, fitted by bench/retrieval/fit.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The chunks of some topics that may answer a question, in no order."""

    hits: Sequence[Hit]
    words: Sequence[str] = ()
    """The telling words of the question, in its order."""
    stems: Sequence[str] = ()
    """The common start of all forms of each of them."""
    frequencies: Sequence[int] = ()
    """The number of the topics' chunks that each of them occurs in."""
    total: int = 0
    """The number of chunks of the topics."""
    sequence: Sequence[str] = ()
    """All words of the question."""
    lines: Sequence[Sequence[str]] = ()
    """The stems of each of its lines, if it has several."""
    name: str = ""
    """The name that a look-up asks for; meaning then counts only if no text has a word of it."""

    @property
    def question(self) -> Question:
        """The question, with which the features compare the chunks."""
        return Question(
            self.stems,
            self.frequencies,
            self.total,
            self.sequence,
            name=self.name,
            lines=self.lines,
        )


def join_candidates(several: Sequence[Candidates]) -> Candidates:
    """Join the candidates of several topics for the same question.

    A word that a topic is about is frequent in it and counts little in its scores, and almost
    nothing in a topic of a few chunks. So the scores are scaled to how rare the words are in all
    topics together.
    """
    if not several:
        return Candidates(hits=())
    if len(several) == 1:
        return several[0]
    total = sum(each.total for each in several)
    frequencies = [
        sum(counts) for counts in zip(*(each.frequencies for each in several), strict=True)
    ]
    hits: list[Hit] = []
    for each in several:
        found = [number for number, count in enumerate(each.frequencies) if count]
        here = sum(_find_weight(each.frequencies[number], each.total) for number in found)
        everywhere = sum(find_rarity(frequencies[number], total) for number in found)
        scale = everywhere / here if here else 1.0
        # Phrases may be rare where their words are not, so their scores need no such scale.
        hits += [
            hit._replace(bm25=min(scale * hit.bm25, everywhere + hit.bm25)) for hit in each.hits
        ]
    return replace(several[0], hits=hits, frequencies=frequencies, total=total)


def _find_weight(frequency: int, total: int) -> float:
    """Return how much a word counts in FTS5's scores, by the formula of its `bm25()`."""
    return max(1e-6, math.log((total - frequency + 0.5) / (frequency + 0.5)))


def rank(candidates: Candidates, limit: int) -> list[Hit]:
    """Return the best hits, best first, spread over their files, each text once."""
    question = candidates.question
    scores = weigh(candidates.hits, question)
    weighed = sorted(zip(scores, candidates.hits, strict=True), key=lambda pair: -pair[0])
    ranked = [hit for _, hit in weighed]
    spread_out = spread(
        join_copies(ranked),
        lambda hit: (hit.topic, hit.path),
        per_group=PER_FILE,
        limit=limit,
    )
    return [hit._replace(score=measure_answer(hit, question)) for hit in spread_out]


def weigh(hits: Sequence[Hit], question: Question) -> list[float]:
    """Return the sort key of each hit; only the order of the keys has a meaning.

    Meaning does not count if a definition has the question's name, or for a look-up whose
    words are found.
    """
    best = find_best(hits)
    found = find_features(hits, question)
    is_named = any(each.named for each in found) or (question.name and any(h.bm25 for h in hits))
    weights = WEIGHTS._replace(dense=0.0) if is_named else WEIGHTS
    return [
        math.log(max(hit.bm25 / best, LEAST)) + sum(map(mul, weights, each)) + hit.prior
        for hit, each in zip(hits, found, strict=True)
    ]


def join_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Return each text once, at its first place, with the places of its copies."""
    first: dict[str, int] = {}
    joined: list[Hit] = []
    for hit in hits:
        number = first.setdefault(hit.text.strip(), len(joined))
        if number == len(joined):
            joined.append(hit)
        else:
            joined[number] = joined[number]._replace(copies=(*joined[number].copies, hit.place))
    return joined


Item = TypeVar("Item", bound=Hashable)


def spread(
    items: Sequence[Item], group_of: Callable[[Item], Hashable], *, per_group: int, limit: int
) -> list[Item]:
    """Return the first `limit` items with at most `per_group` of one group.

    More of a group are taken, in order, only if there are not enough others.
    """
    counts: Counter[Hashable] = Counter()
    first: list[Item] = []
    rest: list[Item] = []
    for item in items:
        group = group_of(item)
        counts[group] += 1
        (first if counts[group] <= per_group else rest).append(item)
    return [*first, *rest][:limit]
