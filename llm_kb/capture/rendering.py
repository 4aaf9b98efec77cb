"""Renders entries: as subjects for models, and as listings for people.

Entries are data that others wrote: each part stays on its line, so that none can look
like a heading or like another entry.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    KINDS,
    Anchor,
    Entry,
    Kind,
    KnowledgeStore,
    Status,
)
from llm_kb.capture.likeness import EVERYWHERE, normalize_place, scope_matches
from llm_kb.rendering.plain_text import count, one_line, shorten

_INTRODUCTIONS = {
    CONVENTION: "Rules this repository keeps, each with the files it applies to.",
    BOUNDARY: "What each module is responsible for, and what it must not do.",
    ANTI_PATTERN: "What was tried and is to be avoided here, and what to do instead.",
}

_SHORT_ID = 12
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SUBJECT_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The status of entries, and the time at which it was read."""

    statuses: Mapping[Anchor, Status]
    now: int

    def status(self, entry: Entry) -> Status:
        """Return the status of an entry, which may be unknown."""
        return self.statuses.get(entry.anchor, Status())

    def is_elsewhere(self, entry: Entry) -> bool:
        """Tell whether an entry comes from a commit that is not on this branch."""
        return self.status(entry).is_on_branch is False


def make_section(kind: Kind, entries: Iterable[Entry], view: View) -> Section:
    """Return the entries of one kind as a list for models."""
    return Section(
        slug=kind.key.replace("_", "-"),
        title=kind.title,
        introduction=_INTRODUCTIONS[kind],
        items=tuple(
            Item(
                place=normalize_place(entry.place) if entry.place else EVERYWHERE,
                text=render_item(entry, view),
            )
            for entry in entries
        ),
    )


def render_plain(entry: Entry) -> str:
    """Return the text of an entry, on one line, as Markdown."""
    place = code_span(entry.place or "")
    return _ITEMS[entry.kind] % {
        **_read_fields(entry),
        "place": place,
        "where": "everywhere" if entry.place == EVERYWHERE else place,
    }


_ITEMS = {
    CONVENTION: "%(rule)s — %(where)s, %(stability)s",
    BOUNDARY: "%(place)s owns %(owns)s. Boundary: %(boundary)s",
    ANTI_PATTERN: "Avoid: %(pattern)s. Instead: %(instead)s",
}


def _read_fields(entry: Entry) -> dict[str, str]:
    """Return the id of an entry and the fields that its author filled, each on one line."""
    return {name: one_line(entry.text(name)) for name in ("id", *entry.kind.settable)}


def render_item(entry: Entry, view: View) -> str:
    """Return an entry as an item of a Markdown list, with its origin and its status."""
    remarks = "; ".join([one_line(entry.id), *_describe(entry, view, with_subject=True)])
    versions = "".join(f" (another version: {v})" for v in _describe_versions(entry))
    return f"- {render_plain(entry)} ({remarks}){versions}"


def _describe_versions(entry: Entry) -> list[str]:
    """Return the other versions of an entry, each on one line."""
    return [
        "; ".join(f"{one_line(name)}: {one_line(text)}" for name, text in version.items())
        for version in entry.other_versions
    ]


def _describe(entry: Entry, view: View, *, with_subject: bool) -> list[str]:
    """Return remarks on an entry's commit and place, each in a few words."""
    status = view.status(entry)
    doubts = _describe_doubts(status)
    if not entry.provenance:
        return doubts
    origin = f"{entry.kind.provenance.replace('_', ' ')} {shorten_commit(entry.provenance)}"
    if with_subject and status.subject:
        origin += f" “{shorten(one_line(status.subject), _SUBJECT_CHARS)}”"
    if status.recorded_at is not None:
        origin += f", {render_age(view.now - status.recorded_at)}"
    return [origin, *doubts]


def _describe_doubts(status: Status) -> list[str]:
    """Return the reasons to doubt that an entry still holds, each in a few words."""
    doubts = []
    if status.place_exists is False:
        doubts.append("place gone")
    if status.is_on_branch is False:
        doubts.append("not on this branch")
    if status.is_missing:
        doubts.append("its commit is not in this clone")
    return doubts


def shorten_commit(provenance: str) -> str:
    """Return a full commit id abbreviated, and any other provenance on one line."""
    if _FULL_ID.fullmatch(provenance):
        return provenance[:_SHORT_ID]
    return one_line(provenance)


_UNITS = (
    ("year", 365 * 86400),
    ("month", 30 * 86400),
    ("week", 7 * 86400),
    ("day", 86400),
    ("hour", 3600),
    ("minute", 60),
)


def render_store(store: KnowledgeStore, view: View) -> str:
    """Return the entries for people, kind by kind."""
    groups = []
    for kind in KINDS:
        if entries := store.of_kind(kind):
            # Thousands of entries share a few hundred anchors, and with these their remarks.
            anchors = [entry.anchor for entry in entries]
            of_anchor = dict(zip(anchors, entries, strict=True))
            remarks = {anchor: _remark(entry, view) for anchor, entry in of_anchor.items()}
            texts = (
                _lay_out(e, remarks[anchor]) for e, anchor in zip(entries, anchors, strict=True)
            )
            groups.append("\n".join([f"{kind.title}:", *texts]))
    return "\n\n".join(groups)


def render_entry(entry: Entry, view: View) -> str:
    """Return an entry for people, with its status."""
    return _lay_out(entry, _remark(entry, view))


def _remark(entry: Entry, view: View) -> str:
    return "; ".join(_describe(entry, view, with_subject=False))


def _lay_out(entry: Entry, remarks: str) -> str:
    lines = [_LAYOUTS[entry.kind] % _read_fields(entry)]
    lines += [f"another version: {version}" for version in _describe_versions(entry)]
    return "\n    ".join([*lines, remarks] if remarks else lines)


_LAYOUTS = {
    CONVENTION: "  %(id)s  %(scope)s (%(stability)s)\n    %(rule)s",
    BOUNDARY: "  %(id)s  %(module)s\n    owns: %(owns)s\n    boundary: %(boundary)s",
    ANTI_PATTERN: "  %(id)s\n    avoid: %(pattern)s\n    instead: %(instead)s",
}


def render_age(seconds: int) -> str:
    """Return an age in its largest whole unit: `3 months ago`."""
    for unit, length in _UNITS:
        number = seconds // length
        if number > 0:
            return f"{count(number, unit)} ago"
    return "just now"


def render_difference(entry: Entry, other: Entry) -> str:
    """Return the fields in which an entry differs from another, on one line."""
    names = [name for name in entry.kind.settable if entry.text(name) != other.text(name)]
    return "; ".join(f"{name}: {shorten(one_line(entry.text(name)), 200)}" for name in names)


def render_short(entry: Entry) -> str:
    """Return an entry on one line: id, place, rule."""
    place = f" ({one_line(entry.place)})" if entry.place else ""
    return f"{one_line(entry.id)}{place}: {shorten(one_line(entry.rule), 120)}"


MAX_ITEMS = 60
"""The most items of one subject: about 3,000 tokens."""

MAX_PLACES = 8
"""The most places that a menu names."""
MAX_NAME = 40
"""The longest place that a menu names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A line of a list, and the place it is about, without a slash at the end."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A list of entries of one kind, and the slug of its subject."""

    slug: str
    title: str
    introduction: str
    items: tuple[Item, ...]


def make_texts(sections: Iterable[Section]) -> dict[str, str]:
    """Return the texts of the subjects by slug: sections, or the parts of long ones."""
    texts: dict[str, str] = {}
    for section in sections:
        if len(section.items) <= MAX_ITEMS:
            if section.items:
                texts[section.slug] = _render(section, section.items)
            continue
        parts = _divide(section.slug, section.items)
        texts |= {slug: _render(section, items, slug) for slug, items in parts.items()}
        listed = "\n".join(
            f"- {slug}: {count(len(items), 'entry', 'entries')}" for slug, items in parts.items()
        )
        texts[section.slug] = (
            f"# {section.title}\n\n{len(section.items):,} entries, too many to read at once. "
            "Learn the path you work on, such as `src/` or a file, for what applies there, "
            f"or one of these subjects:\n\n{listed}\n"
        )
    return texts


def _render(section: Section, items: Sequence[Item], slug: str = "") -> str:
    part = slug.partition("/")[2]
    title = f"{section.title}: {part}" if part else section.title
    lines = "\n".join(item.text for item in items)
    return f"# {title}\n\n{section.introduction}\n\n{lines}\n"


def _divide(slug: str, items: Sequence[Item], depth: int = 0) -> dict[str, Sequence[Item]]:
    """Return the items by slug, divided by the directories of their places."""
    if len(items) <= MAX_ITEMS:
        return {slug: items}
    groups: dict[str, list[Item]] = {}
    for item in items:
        names = _names_of(item.place)
        groups.setdefault(names[depth] if depth < len(names) else "", []).append(item)
    # Items about this very place are divided into pages.
    here = groups.pop("", [])
    pages = [here[start : start + MAX_ITEMS] for start in range(0, len(here), MAX_ITEMS)]
    divided: dict[str, Sequence[Item]] = {f"{slug}/{n}": page for n, page in enumerate(pages, 1)}
    for name in sorted(groups):
        divided |= _divide(f"{slug}/{name}", groups[name], depth + 1)
    return divided


def _names_of(place: str) -> list[str]:
    if place == EVERYWHERE:
        return ["everywhere"]
    # A slug has no leading dots and no characters that listings drop.
    return [one_line(name).lstrip(".") or "dot" for name in place.split("/") if name]


def render_place(place: str, sections: Iterable[Section], *, exists: bool) -> str | None:
    """Return the items about a path, its directories, the paths below it, and everything.

    The narrowest places come first. The text says so if nothing applies to a path that exists.
    Returns None for a path that neither exists nor has an item.
    """
    parts, room, left, is_about = [f"# What applies to {code_span(place)}"], MAX_ITEMS, 0, exists
    for section in sections:
        near = [item for item in section.items if _is_near(item.place, place)]
        near.sort(key=lambda item: -len(item.place))
        is_about = is_about or bool(near)
        items = [*near, *(item for item in section.items if item.place == EVERYWHERE)]
        if shown := items[:room]:
            parts.append(f"## {section.title}\n\n" + "\n".join(item.text for item in shown))
        room -= len(shown)
        left += len(items) - len(shown)
    if left:
        more = count(left, "more entry", "more entries")
        parts.append(f"{more}: learn a narrower path, or the subjects that are listed.")
    if not is_about:
        return None
    if len(parts) == 1:
        parts.append("No entry applies to this path.")
    return "\n\n".join(parts) + "\n"


def _is_near(scope: str, place: str) -> bool:
    is_narrow = scope != EVERYWHERE
    return is_narrow and (scope_matches(scope, place) or scope_matches(place, scope))


def code_span(text: str) -> str:
    """Return text as a code span of Markdown; a backtick would end it."""
    return "`" + one_line(text).replace("`", "'") + "`"


def describe_places(sections: Iterable[Section], root: Path) -> str:
    """Return the top places that items are about, each with their number, for a menu.

    A place that does not exist below `root` is not named: a menu is sent unasked, and any
    text can be a place.
    """
    tops = Counter(item.place.partition("/")[0] for section in sections for item in section.items)
    counts: Counter[str] = Counter()
    for top, number in tops.items():
        if top == EVERYWHERE:
            name = "everywhere"
        elif len(top) > MAX_NAME or not top.isprintable() or not os.path.lexists(root / top):
            name = "elsewhere"
        else:
            name = f"{top}/" if (root / top).is_dir() else top
        counts[name] += number
    named = [f"{place} ({number})" for place, number in counts.most_common(MAX_PLACES)]
    left = len(counts) - len(named)
    return ", ".join(named) + (f" and {count(left, 'more place')}" if left else "")
