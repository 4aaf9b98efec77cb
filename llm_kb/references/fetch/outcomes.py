"""What is told of long work: while it goes on, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llm_kb.references.fetch.staging import Staged
from llm_kb.references.topic.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Who is told how far long work is."""

    asking: Callable[[str], None] = lambda _: None
    fetching: Callable[[str, int, int], None] = lambda *_: None
    indexing: Callable[[int, int], None] | None = None
    embedding: Callable[[int, int], None] | None = None


SILENT = Progress()
"""Nobody is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What came of creating a topic."""

    topic_id: str
    file_count: int
    chunk_count: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What came of a refresh: how many files are new, changed and gone.

    `restored` ones were edited or lost here, and are as they were fetched again.
    """

    topic_id: str
    changed: bool
    added: int = 0
    modified: int = 0
    removed: int = 0
    restored: int = 0
    file_count: int = 0
    warnings: tuple[str, ...] = ()


def summarize_refresh(topic_id: str, old: Provenance, staged: Staged, restored: int) -> Refreshed:
    """Count what a refresh has changed."""
    new = staged.files
    changed = sum(old.files[path].hash != new[path].hash for path in old.files.keys() & new)
    return Refreshed(
        topic_id=topic_id,
        changed=True,
        added=len(new.keys() - old.files),
        modified=changed,
        removed=len(old.files.keys() - new),
        restored=restored,
        file_count=len(new),
        warnings=tuple(staged.warnings),
    )
