"""Entries as the Markdown lists that models learn. Pure.

What an entry says is data others wrote: each part is kept to its line, so that
none can pass for a heading or for another entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, Entry, Kind
from llm_kb.plain_text import one_line

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


def render_count(count: int, one: str, many: str) -> str:
    """Return a number and what it counts: `1 entry`, `1,200 entries`."""
    return f"{count:,} {one if count == 1 else many}"


def _code(text: str) -> str:
    # A backtick would end the code span.
    return one_line(text).replace("`", "'")
