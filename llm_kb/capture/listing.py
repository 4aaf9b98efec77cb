"""Entries as people list them: what they say, how old they are, whether they still hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, KINDS, Entry, Kind
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
        render = _RENDERERS[kind]
        lines = [
            render(_printable(entry), _render_remarks(entry, fact, now))
            for entry, fact in known
            if entry.kind is kind
        ]
        if lines:
            blocks.append("\n".join([f"{kind.title}:", *lines]))
    return "\n\n".join(blocks)


def _printable(entry: Entry) -> Mapping[str, object]:
    """Return an entry's texts as they may stand on a terminal, each on its line."""
    fields = entry.fields
    texts = [fields[name] for name in entry.kind.always]
    if "".join(cast("list[str]", texts)).isprintable():
        return fields
    return {name: one_line(entry.text(name)) for name in entry.kind.order}


def _render_convention(fields: Mapping[str, object], remarks: str) -> str:
    head = f"  {fields['id']}  {fields['scope']} ({fields['stability']})"
    return f"{head}\n    {fields['rule']}{remarks}"


def _render_boundary(fields: Mapping[str, object], remarks: str) -> str:
    head = f"  {fields['id']}  {fields['module']}\n    owns: {fields['owns']}"
    return f"{head}\n    boundary: {fields['boundary']}{remarks}"


def _render_anti_pattern(fields: Mapping[str, object], remarks: str) -> str:
    head = f"  {fields['id']}\n    avoid: {fields['pattern']}"
    return f"{head}\n    instead: {fields['instead']}{remarks}"


_RENDERERS: dict[Kind, Callable[[Mapping[str, object], str], str]] = {
    CONVENTION: _render_convention,
    BOUNDARY: _render_boundary,
    ANTI_PATTERN: _render_anti_pattern,
}


def _render_remarks(entry: Entry, facts: Facts, now: int) -> str:
    remarks = []
    provenance = entry.fields.get(entry.kind.provenance)
    if provenance:
        remarks.append(f"{entry.kind.origin} {shorten_commit(cast(str, provenance))}")
        if facts.recorded_at is not None:
            remarks[0] += f", {render_age(now - facts.recorded_at)}"
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
