"""The results of creating and refreshing topics, and the progress reported meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Callbacks that report the progress of long work."""

    asking: Callable[[str, int, int], None] = lambda *_: None
    fetching: Callable[[str, int, int], None] = lambda *_: None
    indexing: Callable[[int, int], None] | None = None
    embedding: Callable[[int, int], None] | None = None


SILENT = Progress()
"""Reports nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The result of creating a topic."""

    topic_id: str
    file_count: int
    chunk_count: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of a refresh: how many files are new, changed and gone.

    `restored` files were edited or lost here and are as fetched again; `own` are the files
    that were never fetched but put into the topic by hand, and stay.
    """

    topic_id: str
    changed: bool
    added: int = 0
    modified: int = 0
    removed: int = 0
    restored: int = 0
    file_count: int = 0
    own: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def created_answer(created: Created) -> dict[str, Any]:
    """Return the answer of `reference_topic_create`: the seed's fields, and warnings if any."""
    answer = asdict(created)
    warnings = list(answer.pop("warnings"))
    return answer | ({"warnings": warnings} if warnings else {})


def refreshed_answer(refreshed: Refreshed) -> dict[str, Any]:
    """Return the result of a refresh as `--json` has it."""
    answer = asdict(refreshed)
    return answer | {"own": list(refreshed.own), "warnings": list(refreshed.warnings)}
