"""Orders entries for review by a person, the most doubtful first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from llm_kb.capture.entries import CONVENTION, Anchor, Entry, Status
from llm_kb.capture.likeness import EVERYWHERE

STALE = 50
"""The number of commits to its place after which an entry is reviewed again."""

NEAR_MEANING = 0.75
"""The least cosine of the vectors of two similar rules."""


def review_anchor(entry: Entry) -> Anchor:
    """Return the place of an entry and the commit at which it was last confirmed."""
    return entry.place, entry.reviewed_in or entry.provenance


def order_for_review(
    entries: Iterable[Entry], statuses: Mapping[Anchor, Status], *, everything: bool = False
) -> list[Entry]:
    """Return the entries to review, or all with `everything`, the most doubtful first."""
    reasons = {entry.id: _rank(entry, statuses[review_anchor(entry)]) for entry in entries}
    wanted = [entry for entry in entries if everything or reasons[entry.id] is not None]
    return sorted(wanted, key=lambda entry: reasons[entry.id] or (_FINE, 0))


_FINE = 9


def _rank(entry: Entry, status: Status) -> tuple[int, int] | None:
    """Return the urgency of a review, smaller first; None if there is no reason for one."""
    changes = 0 if entry.place == EVERYWHERE else status.changes or 0
    if entry.other_versions:
        return 0, -changes
    if status.place_exists is False:
        return 1, -changes
    if status.is_on_branch is False or status.is_missing:
        return 2, -changes
    if changes >= STALE:
        return 3, -changes
    is_settled = entry.kind is CONVENTION and entry.text("stability") == "permanent"
    return None if is_settled or entry.reviewed_in else (4, -changes)


def find_near_meaning(
    number: int, entries: Sequence[Entry], vectors: Sequence[Sequence[float]], limit: int = 3
) -> list[Entry]:
    """Return the entries of the same kind whose vectors are nearest to that of one entry."""
    scored = [
        (_cosine(vectors[number], vector), entry)
        for other, (entry, vector) in enumerate(zip(entries, vectors, strict=True))
        if other != number and entry.kind is entries[number].kind
    ]
    near = sorted((pair for pair in scored if pair[0] >= NEAR_MEANING), key=lambda p: -p[0])
    return [entry for _, entry in near[:limit]]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    length = sqrt(sum(a * a for a in one)) * sqrt(sum(b * b for b in other))
    return product / length if length else 0.0
