"""Entries as the Markdown lists that models learn. Pure.

What an entry says is data others wrote: each part is kept to its line, so that
none can pass for a heading or for another entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, Entry, Kind
from llm_kb.capture.store_format import Anchor, Table
from llm_kb.rendering.plain_text import count, one_line

SLUGS = {CONVENTION: "conventions", BOUNDARY: "boundaries", ANTI_PATTERN: "anti-patterns"}
"""The subject that the entries of a kind make."""

_INTRODUCTIONS = {
    CONVENTION: "Rules this repository keeps, each with the files it holds for.",
    BOUNDARY: "What each module is responsible for, and what it must not do.",
    ANTI_PATTERN: "What was tried and is to be avoided here, and what to do instead.",
}

_SHORT_ID = 12
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def render_kind(kind: Kind, entries: Sequence[Entry]) -> str:
    """Return the Markdown document of one kind: an introduction and a list."""
    item = _ITEMS[kind]
    lines = [f"# {kind.title}", "", _INTRODUCTIONS[kind], ""]
    lines.extend(item(entry) for entry in entries)
    return "\n".join(lines) + "\n"


def _render_convention(entry: Entry) -> str:
    place = "everywhere" if entry.place == "*" else f"`{_code(entry.place or '')}`"
    return f"- {one_line(entry.rule)} — {place}, {entry.text('stability')}{_render_origin(entry)}"


def _render_boundary(entry: Entry) -> str:
    return (
        f"- `{_code(entry.place or '')}` owns {one_line(entry.text('owns'))}. "
        f"Boundary: {one_line(entry.rule)}{_render_origin(entry)}"
    )


def _render_anti_pattern(entry: Entry) -> str:
    return (
        f"- Avoid: {one_line(entry.rule)}. "
        f"Instead: {one_line(entry.text('instead'))}{_render_origin(entry)}"
    )


_ITEMS: dict[Kind, Callable[[Entry], str]] = {
    CONVENTION: _render_convention,
    BOUNDARY: _render_boundary,
    ANTI_PATTERN: _render_anti_pattern,
}


def _render_origin(entry: Entry) -> str:
    provenance = entry.provenance
    origin = f"; {entry.kind.origin} {shorten_commit(provenance)}" if provenance else ""
    return f" ({one_line(entry.id)}{origin})"


def shorten_commit(provenance: str) -> str:
    """Return a full commit id cut to a readable length, anything else as a line."""
    if _FULL_ID.fullmatch(provenance):
        return provenance[:_SHORT_ID]
    return one_line(provenance)


def _code(text: str) -> str:
    # A backtick would end the code span.
    return one_line(text).replace("`", "'")


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
        number = seconds // length
        if number > 0:
            return f"{count(number, unit)} ago"
    return "just now"
