"""Divides entries into subjects short enough to be read at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.likeness import EVERYWHERE, scope_matches
from llm_kb.rendering.plain_text import count, one_line

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
