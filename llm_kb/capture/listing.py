"""Entries as people list them: what they say, how old they are, whether they still hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, Kind
from llm_kb.capture.rendering import shorten_commit
from llm_kb.capture.tables import Anchor, Table
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
    """What is known of an entry by its anchor; None where the repository cannot tell."""

    recorded_at: int | None = None
    """When the commit it comes from was made, in seconds since the epoch."""
    place_exists: bool | None = None
    touched: int | None = None
    """Commits to its place that are younger; `MAX_COMMITS` stands for that many or more."""


def render_tables(tables: Iterable[Table], facts: Mapping[Anchor, Facts], now: int) -> str:
    """Return the entries kind by kind, each with what is known of its anchor at `now`."""
    return "\n\n".join(_render_table(table, facts, now) for table in tables if table.rows)


_LAYOUTS = {
    CONVENTION: (("\n  ", "id"), ("  ", "scope"), (" (", "stability"), (")\n    ", "rule")),
    BOUNDARY: (
        *(("\n  ", "id"), ("  ", "module")),
        *(("\n    owns: ", "owns"), ("\n    boundary: ", "boundary")),
    ),
    ANTI_PATTERN: (("\n  ", "id"), ("\n    avoid: ", "pattern"), ("\n    instead: ", "instead")),
}
"""The fields of an entry of each kind, and what stands before each."""


def _render_table(table: Table, facts: Mapping[Anchor, Facts], now: int) -> str:
    kind, columns = table.kind, table.columns
    if not all(_is_printable("".join(column)) for column in columns.values()):
        columns = {name: list(map(one_line, column)) for name, column in columns.items()}
    remarks = {a: _render_remarks(kind, a, facts[a], now) for a in table.distinct_anchors}
    layout = _LAYOUTS[kind]
    # A gap after each text and one for the remarks, all of them filled a column at a time.
    pieces = [*chain.from_iterable((before, "") for before, _ in layout), ""] * len(table.rows)
    step = 2 * len(layout) + 1
    for number, (_, name) in enumerate(layout):
        pieces[2 * number + 1 :: step] = columns[name]
    pieces[step - 1 :: step] = map(remarks.__getitem__, table.anchors)
    return f"{kind.title}:" + "".join(pieces)


def _is_printable(text: str) -> bool:
    """Tell what `str.isprintable` tells, of long ASCII text in a fraction of the time."""
    if text.isascii():
        return not any(map(text.__contains__, _ASCII_CONTROLS))
    return text.isprintable()


_ASCII_CONTROLS = [*map(chr, range(32)), "\x7f"]


def _render_remarks(kind: Kind, anchor: Anchor, facts: Facts, now: int) -> str:
    _, provenance = anchor
    remarks = []
    if provenance:
        age = "" if facts.recorded_at is None else f", {render_age(now - facts.recorded_at)}"
        remarks.append(f"{kind.origin} {shorten_commit(provenance)}{age}")
    if facts.place_exists is False:
        remarks.append("its place no longer exists")
    if facts.touched is not None:
        count = f"{MAX_COMMITS}+" if facts.touched >= MAX_COMMITS else str(facts.touched)
        commits = "commit" if facts.touched == 1 else "commits"
        remarks.append(f"touched by {count} {commits} since")
    return "\n    " + "; ".join(remarks) if remarks else ""


def render_age(seconds: int) -> str:
    """Return an age in its largest whole unit: `3 months ago`."""
    for unit, length in _UNITS:
        count = seconds // length
        if count > 0:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
