"""Entries as people list them: what they say, how old they are, whether they still hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, KINDS, Entry
from llm_kb.capture.rendering import shorten_commit
from llm_kb.plain_text import one_line

MAX_COMMITS = 5000
"""How far back changes are counted, so that a listing never takes minutes."""

_UNITS = (
    ("year", 365 * 86400),
    ("month", 30 * 86400),
    ("week", 7 * 86400),
    ("day", 86400),
    ("hour", 3600),
    ("minute", 60),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one entry; None where the repository cannot tell."""

    recorded_at: int | None = None
    """When the commit it comes from was made, in seconds since the epoch."""
    place_exists: bool | None = None
    touched: int | None = None
    """Commits to its place that are younger; `MAX_COMMITS` stands for that many or more."""


def render_entries(entries: Sequence[Entry], facts: Sequence[Facts], now: int) -> str:
    """Return the entries kind by kind, each with what is known of it at `now`."""
    known = list(zip(entries, facts, strict=True))
    blocks = []
    for kind in KINDS:
        lines = [
            line
            for entry, fact in known
            if entry.kind is kind
            for line in _render_entry(entry, fact, now)
        ]
        if lines:
            blocks.append("\n".join([f"{kind.title}:", *lines]))
    return "\n\n".join(blocks)


def _render_entry(entry: Entry, facts: Facts, now: int) -> Iterator[str]:
    place = f"  {one_line(entry.place)}" if entry.place else ""
    stability = f" ({entry.text('stability')})" if entry.text("stability") else ""
    yield f"  {one_line(entry.id)}{place}{stability}"
    if entry.kind is BOUNDARY:
        yield f"    owns: {one_line(entry.text('owns'))}"
        yield f"    boundary: {one_line(entry.rule)}"
    elif entry.kind is ANTI_PATTERN:
        yield f"    avoid: {one_line(entry.rule)}"
        yield f"    instead: {one_line(entry.text('instead'))}"
    else:
        yield f"    {one_line(entry.rule)}"
    remarks = list(_iter_remarks(entry, facts, now))
    if remarks:
        yield f"    {'; '.join(remarks)}"


def _iter_remarks(entry: Entry, facts: Facts, now: int) -> Iterator[str]:
    if entry.provenance:
        verb = "learned from" if entry.kind is ANTI_PATTERN else "decided in"
        age = "" if facts.recorded_at is None else f", {render_age(now - facts.recorded_at)}"
        yield f"{verb} {shorten_commit(entry.provenance)}{age}"
    if facts.place_exists is False:
        yield "its place no longer exists"
    if facts.touched is not None:
        count = f"{MAX_COMMITS}+" if facts.touched >= MAX_COMMITS else str(facts.touched)
        yield f"touched by {count} {'commit' if facts.touched == 1 else 'commits'} since"


def render_age(seconds: int) -> str:
    """Return an age in its largest whole unit: `3 months ago`."""
    for unit, length in _UNITS:
        count = seconds // length
        if count > 0:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
