"""Entries as people list them: what they say, how old they are, whether they still hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, KINDS, Entry, Kind
from llm_kb.capture.rendering import shorten_commit
from llm_kb.plain_text import one_line

_Fields: TypeAlias = Mapping[str, Any]

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
        found = [(entry.fields, fact) for entry, fact in known if entry.kind is kind]
        if found:
            blocks.append(f"{kind.title}:\n" + "\n".join(_render_kind(kind, found, now)))
    return "\n\n".join(blocks)


_TEMPLATES = {
    CONVENTION: "  %(id)s  %(scope)s (%(stability)s)\n    %(rule)s",
    BOUNDARY: "  %(id)s  %(module)s\n    owns: %(owns)s\n    boundary: %(boundary)s",
    ANTI_PATTERN: "  %(id)s\n    avoid: %(pattern)s\n    instead: %(instead)s",
}


def _render_kind(kind: Kind, found: Sequence[tuple[_Fields, Facts]], now: int) -> Iterator[str]:
    template = _TEMPLATES[kind]
    # Asked of all texts together: entry by entry it is half the work.
    texts = map(itemgetter(*kind.always), (fields for fields, _ in found))
    is_plain = "".join(chain.from_iterable(texts)).isprintable()
    for fields, fact in found:
        shown = fields if is_plain else {name: one_line(fields[name]) for name in kind.always}
        yield template % shown + _render_remarks(kind, fields, fact, now)


def _render_remarks(kind: Kind, fields: _Fields, facts: Facts, now: int) -> str:
    remarks = []
    provenance = fields.get(kind.provenance)
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
