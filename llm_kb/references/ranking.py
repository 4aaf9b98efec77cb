"""Fuse rankings and spread the results over files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

RRF_K = 60
"""The constant of reciprocal rank fusion; its exact value hardly matters."""


def fuse(rankings: Sequence[tuple[float, Sequence[Item]]], *, k: int = RRF_K) -> dict[Item, float]:
    """Fuse weighted rankings, best first, by reciprocal rank.

    An item scores the weight over (k + its rank) in every ranking it is in.
    The best possible score is 1.
    """
    scores: dict[Item, float] = {}
    best = sum(weight for weight, _ in rankings) / (k + 1)
    for weight, ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank) / best
    # Sorting is stable: equal scores stay in the order of the first ranking.
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


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
