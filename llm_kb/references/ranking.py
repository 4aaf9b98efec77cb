"""What ranks and places count, and how results are spread over files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

LEGS_K = 20
"""The constant of reciprocal rank fusion: by how little the first ranks differ."""

PLACES_K = 60
"""The same for the places in a result."""


def reciprocal_rank(rank: int) -> float:
    """Return what a rank in the dense leg counts: 1 for the nearest."""
    return (LEGS_K + 1) / (LEGS_K + rank)


def score_place(place: int) -> float:
    """Return the score of a place in a result: 1 for the first."""
    return (PLACES_K + 1) / (PLACES_K + place)


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
