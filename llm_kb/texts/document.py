"""A text and its sections: headings and definitions with everything under them. Pure.

An anchor is a heading as GitHub writes it, or the one that the text sets. If several headings of
a text are alike, the headings above them tell them apart: `caching/timeout`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from llm_kb.texts.markup import LINK, TAG

LONGEST_HEADING = 2_000
"""Most characters read of a heading, with its markup."""

MAX_TITLE = 200
"""Longest title, in characters; longer ones are shortened."""

MAX_SECTIONS = 50_000
"""Most sections of a text: no table of contents is so long."""

_MOST_PARENTS = 5
"""Maximum number of headings above one that can be part of its anchor."""

_OWN_ANCHOR = re.compile(
    r"(?<![ \t])[ \t]*"
    r"(?:\{:?[ \t]*#([\w.:-]{1,200})(?![\w.:-])[^{}]{0,200}\}|\[\[([\w.:-]{1,200})\]\]"
    r"|\{/\*[ \t]*#([\w.:-]{1,200})[ \t]*\*/\})[ \t]*\Z"
)
"""`## Title {#id}`, also written `{ #id }`, `{: #id }` and `{/* #id */}`, and `## Title[[id]]`."""

_ROLE = re.compile(r":[\w.+-]+:(?=`)")
_CODE_OR_TAG = re.compile(rf"(?<!:)(`[^`]*`)|{TAG.pattern}")
_NOT_ANCHOR = re.compile(r"[^\w\- ]")
_NOT_NAME = re.compile(r"[^\w.$:?!~-]+")
_FEW_WORDS = 40


class Mark(NamedTuple):
    """The place where a section begins: a heading or a definition.

    A mark of the same or a smaller depth ends the section. A mark without a title ends sections
    and begins none.
    """

    offset: int
    depth: int
    title: str
    anchor: str = ""
    """The anchor that the text itself sets, if it does."""


class Section(NamedTuple):
    """A span of a text, in most cases a heading or a definition with everything under it."""

    start: int
    end: int
    depth: int
    """The depth of nesting: 1 for the outermost, whatever its level in the markup."""
    title: str
    anchor: str
    """Its anchor, which is unique in the text without regard to case."""


class Document(NamedTuple):
    """A text with its sections and the disjoint spans not to be cut, both in order."""

    text: str
    sections: tuple[Section, ...] = ()
    wholes: Sequence[tuple[int, int]] = ()
    """Spans, such as fenced code, that stay whole if they fit."""
    is_code: bool = False
    """Whether the sections are definitions."""
    start: int = 0
    end: int | None = None
    """Where the text of its own begins and ends, without what surrounds it on an HTML page."""
    body: int = 0
    """Where its front matter ends."""
    title: str = ""
    """The title that its front matter gives and no heading repeats."""

    def find_section(self, start: int, end: int) -> Section:
        """Return the smallest section that contains a span, or the whole text, without an anchor.

        Sections are in order, and nested.
        """
        at = bisect_right(self.sections, start, key=lambda section: section.start)
        before = islice(reversed(self.sections), len(self.sections) - at, None)
        whole = Section(0, len(self.text), 0, "", "")
        return next((section for section in before if end <= section.end), whole)


def find_line_numbers(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last line of a span; lines count from 1, both inclusive."""
    first = 1 + text.count("\n", 0, start)
    return first, max(first, first + text.count("\n", start, end) - text.endswith("\n", start, end))


def name_lines(first_line: int, last_line: int) -> str:
    """Return the anchor of lines: `L10-L20`."""
    return f"L{first_line}" if first_line == last_line else f"L{first_line}-L{last_line}"


def find_line(text: str, offset: int, lines: int) -> int:
    """Return the start of the line a number of lines below an offset."""
    for _ in range(lines):
        offset = text.find("\n", offset) + 1 or len(text)
    return offset


def make_document(
    text: str,
    marks: Iterable[Mark],
    wholes: Sequence[tuple[int, int]] = (),
    *,
    is_code: bool = False,
) -> Document:
    """Return the outline of a text with these marks, which are in order.

    Of more than `MAX_SECTIONS`, the last one has the rest of the text.
    """
    found: list[tuple[Mark, int, int]] = []  # a mark, its depth of nesting, its end
    open_: list[int] = []
    for mark in islice(marks, MAX_SECTIONS):
        while open_ and found[open_[-1]][0].depth >= mark.depth:
            place = open_.pop()
            found[place] = (*found[place][:2], mark.offset)
        if mark.title:
            open_.append(len(found))
            found.append((mark, len(open_), len(text)))
    found = [each for each in found if each[0].offset < each[2]]
    anchors = _make_unique(
        find_paths(
            [
                (depth, mark.anchor or _name(text, mark, finish, is_code=is_code))
                for mark, depth, finish in found
            ]
        )
    )
    sections = tuple(
        Section(mark.offset, finish, depth, mark.title, anchor)
        for (mark, depth, finish), anchor in zip(found, anchors, strict=True)
    )
    return Document(text, sections, wholes, is_code)


def make_mark(offset: int, depth: int, title: str) -> Mark:
    """Return the mark of a heading; an anchor at its end is taken off its title."""
    title = title[:LONGEST_HEADING]
    own = _OWN_ANCHOR.search(title)
    if not own:
        return Mark(offset, depth, shorten_title(title))
    anchor = own[own.lastindex or 0]
    return Mark(offset, depth, shorten_title(title[: own.start()]) or anchor, anchor.lower())


def shorten_title(text: str) -> str:
    """Return a heading or a name on one line, shortened if it is too long."""
    title = " ".join(text[: 4 * MAX_TITLE].split())
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"


def name_title(title: str, *, is_code: bool = False) -> str:
    """Return a heading's anchor as GitHub makes it, or that of a definition; empty without one."""
    if is_code:
        return _NOT_NAME.sub("-", title).strip("-")
    title = LINK.sub(r"\1", title)
    for text in (_ROLE.sub("", _CODE_OR_TAG.sub(r"\1", title)), title):
        if name := _NOT_ANCHOR.sub("", text.strip().lower()).strip().replace(" ", "-"):
            return name
    return ""


def _name(text: str, mark: Mark, end: int, *, is_code: bool) -> str:
    """Return the anchor of a section: its title's, or of its first words if that says nothing."""
    if name := name_title(mark.title, is_code=is_code):
        return name
    below = text.find("\n", mark.offset, end) + 1 or end
    line = text[below:end][: 4 * _FEW_WORDS].lstrip().partition("\n")[0]
    words = line if len(line) <= _FEW_WORDS else line[:_FEW_WORDS].rpartition(" ")[0]
    return name_title(words) or "part"


def find_paths(names: Iterable[tuple[int, str]]) -> list[tuple[str, ...]]:
    """Return for each section, given as depth and name, the names of those above it and its own."""
    paths: list[tuple[str, ...]] = []
    above: list[str] = []
    for depth, own in names:
        del above[depth - 1 :]
        above.append(own)
        paths.append(tuple(above[-1 - _MOST_PARENTS :]))
    return paths


def _make_unique(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a unique anchor for each path: enough of its end, and a number if necessary."""
    anchors = [path[-1] for path in paths]
    for depth in range(2, _MOST_PARENTS + 2):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, anchor in enumerate(anchors):
            places[anchor.casefold()].append(place)
        shared = [place for same in places.values() if len(same) > 1 for place in same]
        if not shared:
            return anchors
        for place in shared:
            anchors[place] = "/".join(paths[place][-depth:])
    taken: set[str] = set()
    numbers: defaultdict[str, int] = defaultdict(int)
    for place, anchor in enumerate(anchors):
        folded = anchor.casefold()  # one counter for all spellings, or each would begin at 1
        while anchors[place].casefold() in taken:
            numbers[folded] += 1
            anchors[place] = f"{anchor}-{numbers[folded]}"
        taken.add(anchors[place].casefold())
    return anchors
