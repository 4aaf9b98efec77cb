"""Renders entries: as subjects for models, as listings for people, as a block of a file. Pure.

Entries are data that others wrote: each part stays on its line, so that none can look
like a heading or like another entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from llm_kb.capture import entries
from llm_kb.capture.entries import KINDS, Anchor, Entry, Kind, KnowledgeStore, covers
from llm_kb.rendering.marks import Marks
from llm_kb.rendering.plain_text import count, shorten
from llm_kb.texts.safe import one_line

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

Doubts: TypeAlias = Mapping[Anchor, Sequence[str]]
"""The reasons to doubt entries, in a few words each, keyed by their places and commits."""


class Section(NamedTuple):
    """A list of entries of one kind, and the slug of its subject."""

    slug: str
    title: str
    introduction: str
    items: Sequence[tuple[str, str]]
    """Its lines, each with the place it is about before it, without a slash at the end."""


def make_section(kind: Kind, store: KnowledgeStore, doubts: Doubts) -> Section:
    """Return the entries of one kind as a list for models."""
    items = [
        (entries.normalize_place(entry.place or ""), render_item(entry, doubts))
        for entry in store.of_kind(kind)
    ]
    return Section(kind.key.replace("_", "-"), kind.title, kind.introduction, items)


def render_plain(entry: Entry) -> str:
    """Return the text of an entry, on one line, as Markdown."""
    fields = {name: one_line(entry.text(name)) for name in entry.kind.settable}
    where = "everywhere" if entry.place == entries.EVERYWHERE else code_span(entry.place or "")
    return entry.kind.text % {**fields, "where": where}


def render_item(entry: Entry, doubts: Doubts) -> str:
    """Return an entry as an item of a Markdown list, with its origin and the doubts about it."""
    remarks = [one_line(entry.id)]
    if entry.provenance:
        origin = entry.kind.provenance.replace("_", " ")
        remarks.append(f"{origin} {shorten_commit(entry.provenance)}")
    remarks += doubts.get(entry.anchor, ())
    return f"- {render_plain(entry)} ({'; '.join(remarks)})"


def shorten_commit(provenance: str) -> str:
    """Return a full commit id abbreviated, and any other provenance on one line."""
    if _FULL_ID.fullmatch(provenance):
        return provenance[:12]
    return one_line(provenance)


def render_store(store: KnowledgeStore, doubts: Doubts) -> str:
    """Return the entries for people, kind by kind, as models see them."""
    groups = {kind: [render_item(entry, doubts) for entry in store.of_kind(kind)] for kind in KINDS}
    return "\n\n".join("\n".join([f"{k.title}:", *lines]) for k, lines in groups.items() if lines)


def render_short(entry: Entry) -> str:
    """Return an entry on one line: id, place, rule."""
    place = f" ({one_line(entry.place)})" if entry.place else ""
    return f"{one_line(entry.id)}{place}: {shorten(one_line(entry.rule), 120)}"


MAX_ITEMS = 60
"""The most items about a path: about 3,000 tokens."""


def make_texts(sections: Iterable[Section]) -> dict[str, str]:
    """Return the texts of the subjects by slug."""
    return {section.slug: _render(section) for section in sections if section.items}


def _render(section: Section) -> str:
    items = "\n".join(text for _, text in section.items)
    return f"# {section.title}\n\n{section.introduction}\n\n{items}\n"


def render_place(place: str, sections: Iterable[Section], *, exists: bool) -> str | None:
    """Return the items about a path, its directories, the paths below it, and everything.

    The narrowest places come first. The text says so if nothing applies to a path that exists.
    Returns None for a path that neither exists nor has an item.
    """
    found: list[tuple[str, str]] = []
    is_about = exists
    for section in sections:
        near = [(scope, text) for scope, text in section.items if _is_near(scope, place)]
        near.sort(key=lambda item: -len(item[0]))
        is_about = is_about or bool(near)
        everywhere = [item for item in section.items if item[0] == entries.EVERYWHERE]
        found += [(section.title, text) for _, text in (*near, *everywhere)]
    if not is_about:
        return None
    parts = [f"# What applies to {code_span(place)}"]
    for title, group in groupby(found[:MAX_ITEMS], key=itemgetter(0)):
        parts.append(f"## {title}\n\n" + "\n".join(text for _, text in group))
    if (left := len(found) - MAX_ITEMS) > 0:
        more = count(left, "more entry", "more entries")
        parts.append(f"{more}: learn a narrower path, or the subjects that are listed.")
    if not found:
        parts.append("No entry applies to this path.")
    return "\n\n".join(parts) + "\n"


def _is_near(scope: str, place: str) -> bool:
    return scope != entries.EVERYWHERE and (covers(scope, place) or covers(place, scope))


def code_span(text: str) -> str:
    """Return text as a code span of Markdown; a backtick would end it."""
    return "`" + one_line(text).replace("`", "'") + "`"


MARKS = Marks(
    "<!-- llm-kb knowledge: begin, written by `llm kb knowledge export` -->",
    "<!-- llm-kb knowledge: end -->",
)

TITLE = "# Repository conventions\n\n"
"""What a new file begins with."""


def render_block(store: KnowledgeStore) -> str:
    """Return the entries as Markdown between two marks, each with its id."""
    lines = {kind: "\n".join(map(_render_line, store.of_kind(kind))) for kind in KINDS}
    lists = [f"## {kind.title}\n\n{items}" for kind, items in lines.items() if items]
    return "\n\n".join([MARKS.begin, *lists, MARKS.end]) + "\n"


def _render_line(entry: Entry) -> str:
    # One that could begin or end a comment could imitate a mark or an id; a fence could hide one.
    text = render_plain(entry).replace("<!--", "&lt;!--").replace("-->", "--&gt;")
    text = re.sub("^(?:```|~~~)", r"\\\g<0>", text)
    return f"- {text} <!-- {re.sub(r'[^a-zA-Z0-9-]|-(?=-)', '_', entry.id)} -->"
