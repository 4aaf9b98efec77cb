"""Fuse two legs and spread the results over files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

RRF_K = 10
"""The constant of reciprocal rank fusion: by how little the first places differ."""

SCORE_K = 60
"""The same of the score that a place in a result has."""


def fuse(
    scores: Mapping[Item, float], ranking: Sequence[Item], *, weight: float, k: int = RRF_K
) -> list[Item]:
    """Return the items of both, best first: a score, and the reciprocal rank in a ranking.

    The first of the ranking gains `weight`, the others by their rank less. What has no
    score begins with the least there is.
    """
    least = min(scores.values(), default=0.0)
    fused = dict(scores)
    for rank, item in enumerate(ranking, 1):
        fused[item] = fused.get(item, least) + weight * (k + 1) / (k + rank)
    # Sorting is stable: equal items stay in the order of the scores.
    return sorted(fused, key=lambda item: -fused[item])


def score_place(place: int) -> float:
    """Return the score of a place in a result, 1 for the first.

    Places in the results of several topics compare, which scores of different texts do not.
    """
    return (SCORE_K + 1) / (SCORE_K + place)


def spread(
    items: Sequence[Item], group_of: Callable[[Item], Hashable], *, per_group: int, limit: int
) -> list[Item]:
    """Return the first `limit` items with at most `per_group` of one group.

    Items over that are taken, in order, only where there are not enough others.
    """
    counts: Counter[Hashable] = Counter()
    first: list[Item] = []
    rest: list[Item] = []
    for item in items:
        group = group_of(item)
        counts[group] += 1
        (first if counts[group] <= per_group else rest).append(item)
    return [*first, *rest][:limit]
