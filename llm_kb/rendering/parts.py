"""The parts of a subject and their addresses: `slug#anchor`, `slug#L10-L20`. Pure.

An anchor is a heading as GitHub writes it. If several headings of a file are alike,
the headings above them tell them apart: `#caching/timeout`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import NamedTuple

from llm_kb.search.chunking.code_lines import CODE_SUFFIXES
from llm_kb.search.chunking.documents import Outline
from llm_kb.search.chunking.outline import Heading, outline

MOST_PARTS = 20_000
"""Maximum number of headings with an anchor in a file; others are addressed by lines."""

MOST_COMPARED = 1_000
"""Maximum number of parts that a wrong anchor is compared with."""

LONGEST_ANCHOR = 200
"""Maximum number of characters of a requested anchor that are read."""

MOST_LABELS = 1_000
"""Number of characters above a title that are searched for its labels."""

MOST_KEPT = 1_000_000
"""Longest text whose parts are cached, since models read several parts of one text."""

NEAR_PARTS = 5

_MOST_PARENTS = 5
"""Maximum number of headings above one that can be part of its anchor."""

_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)
_CUSTOM_ID = re.compile(r"\{#([\w.:-]+)[^{}]*\}\s*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_MARKUP = re.compile(r"<[^<>]*>|:[\w.+-]+:(?=`)")
_NOT_ANCHOR = re.compile(r"[^\w\- ]")
_NOT_NAME = re.compile(r"[^\w.$:?!~-]+")
_SEPARATORS = re.compile(r"[\W_]+")
_LABELS = re.compile(r"(?:\.\. [^\n]*\n|[ \t]*\r?\n)+")
_LABEL = re.compile(r"^\.\. _([^\n]+):[ \t]*\r?$", re.MULTILINE)


class Part(NamedTuple):
    """A heading or a definition with everything under it.

    Lines count from 1, both inclusive; `start` and `end` are offsets in the text.
    """

    anchor: str
    """Its anchor, which is unique in the file without regard to case."""
    path: tuple[str, ...]
    """The anchors of the headings above it and its own, before they are made unique."""
    title: str
    level: int
    first_line: int
    last_line: int
    start: int
    end: int
    labels: tuple[str, ...] = ()
    """The labels right above its title, which cross references use."""


class Span(NamedTuple):
    """A requested piece of a text, given by a part's anchor or by lines."""

    anchor: str
    first_line: int
    last_line: int
    start: int
    end: int


class AnchorError(ValueError):
    """An anchor that names no part, or several; `near` are similar valid anchors."""

    def __init__(self, anchor: str, near: Sequence[str], *, is_ambiguous: bool = False) -> None:
        self.anchor = anchor
        self.near = tuple(near)
        self.is_ambiguous = is_ambiguous
        super().__init__(anchor)


def find_parts(text: str, path: str, found: Outline | None = None) -> tuple[Part, ...]:
    """Return the parts of a text in its order; the path's extension says how to read it.

    `found` are its marks, if they are known.
    """
    if found is None and len(text) <= MOST_KEPT:
        return _find_kept(text, path)
    return _find_parts(text, path, found)


@lru_cache(maxsize=4)
def _find_kept(text: str, path: str) -> tuple[Part, ...]:
    return _find_parts(text, path, None)


def _find_parts(text: str, path: str, found: Outline | None) -> tuple[Part, ...]:
    headings = outline(text, path, found)[:MOST_PARTS]
    is_code = f".{path.rpartition('.')[2].lower()}" in CODE_SUFFIXES
    paths = _find_paths(headings, is_code=is_code)
    return tuple(
        Part(anchor, names, heading.title, heading.level, *heading[2:], _find_labels(text, heading))
        for anchor, names, heading in zip(_make_unique(paths), paths, headings, strict=True)
    )


def _find_labels(text: str, heading: Heading) -> tuple[str, ...]:
    """Return the labels of reStructuredText that a part begins with."""
    if not text.startswith(".. ", heading.start):
        return ()
    end = min(heading.end, heading.start + MOST_LABELS)
    above = _LABELS.match(text, heading.start, end)
    return tuple(_loosen(label) for label in _LABEL.findall(above[0])) if above else ()


def find_spans(
    text: str, parts: Sequence[Part], anchors: Iterable[str]
) -> list[Span | AnchorError]:
    """Return the span of each anchor in a text with these parts, or the reason it has none.

    Overlapping spans become one, so no text is returned twice.
    """
    index = _Index(parts)
    found: list[Span | AnchorError] = []
    for anchor in dict.fromkeys(anchors):
        try:
            _add_span(found, index.find_span(text, anchor[:LONGEST_ANCHOR]))
        except AnchorError as error:
            found.append(error)
    return found


def find_holding(parts: Sequence[Part], start: int, end: int) -> Part | None:
    """Return the smallest part that contains a span of its text."""
    holding = [part for part in parts if part.start <= start and end <= part.end]
    return min(holding, key=lambda part: part.end - part.start, default=None)


def name_lines(first_line: int, last_line: int) -> str:
    """Return the anchor of lines: `L10-L20`."""
    return f"L{first_line}" if first_line == last_line else f"L{first_line}-L{last_line}"


def name_heading(title: str) -> str:
    """Return a heading's anchor as GitHub makes it; one set with `{#id}` is taken as it is."""
    custom = _CUSTOM_ID.search(title)
    if custom:
        return custom[1].lower()
    text = _MARKUP.sub("", _LINK.sub(r"\1", title)).strip().lower()
    return _NOT_ANCHOR.sub("", text).strip().replace(" ", "-") or "part"


def _find_paths(headings: Sequence[Heading], *, is_code: bool) -> list[tuple[str, ...]]:
    """Return for each heading the anchors of those above it and its own."""
    paths: list[tuple[str, ...]] = []
    above: list[str] = []
    for heading in headings:
        own = (
            _NOT_NAME.sub("-", heading.title).strip("-") or "part"
            if is_code
            else name_heading(heading.title)
        )
        del above[heading.level - 1 :]
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


class _Index:
    """The parts of a text, looked up by anchors as people write them."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._exact = {part.anchor.casefold(): part for part in parts}

    @cached_property
    def _by_label(self) -> dict[str, Part]:
        return {label: part for part in reversed(self._parts) for label in part.labels}

    @cached_property
    def _by_name(self) -> dict[str, list[Part]]:
        found: defaultdict[str, list[Part]] = defaultdict(list)
        for part in self._parts:
            found[_loosen(part.path[-1])].append(part)
        return found

    def find_span(self, text: str, anchor: str) -> Span:
        """Return the span of a part or of lines. Raises AnchorError."""
        part = self._exact.get(anchor.casefold())
        lines = None if part else _LINES.fullmatch(anchor)
        if lines:
            return _find_lines(text, anchor, int(lines[1]), int(lines[2] or lines[1]))
        part = part or self._by_label.get(_loosen(anchor)) or self._find_loosely(anchor)
        return Span(part.anchor, part.first_line, part.last_line, part.start, part.end)

    def _find_loosely(self, anchor: str) -> Part:
        """Find a part by an anchor that leaves out headings above it or has other separators."""
        *above, own = map(_loosen, anchor.split("/"))
        found = [part for part in self._by_name.get(own, ()) if _is_below(part.path[:-1], above)]
        if len(found) == 1:
            return found[0]
        if found:
            near = [part.anchor for part in found[:NEAR_PARTS]]
            raise AnchorError(anchor, near, is_ambiguous=True)
        raise AnchorError(anchor, self._find_near(anchor.casefold()))

    def _find_near(self, wanted: str) -> list[str]:
        """Return the anchors that are most similar to one, as a whole or in their last part."""
        by_name: dict[str, str] = {}
        for part in self._parts[:MOST_COMPARED]:
            by_name.setdefault(part.anchor.casefold()[:LONGEST_ANCHOR], part.anchor)
            by_name.setdefault(part.path[-1].casefold()[:LONGEST_ANCHOR], part.anchor)
        names = get_close_matches(wanted, by_name, n=NEAR_PARTS)
        return list(dict.fromkeys(by_name[name] for name in names))


def _loosen(anchor: str) -> str:
    """Return an anchor without case, and with one kind of separator."""
    return _SEPARATORS.sub("-", anchor.casefold()).strip("-")


def _is_below(path: Iterable[str], wanted: Iterable[str]) -> bool:
    """Tell whether all wanted headings are on a path, in their order."""
    rest = map(_loosen, path)
    return all(any(own == name for own in rest) for name in wanted)


def _find_lines(text: str, anchor: str, first: int, last: int) -> Span:
    """Return the span of lines, as far as the text has them."""
    count = text.count("\n") + (not text.endswith("\n"))
    last = min(last, count)
    if not 1 <= first <= last:
        raise AnchorError(anchor, [name_lines(1, count)] if count else [])
    start = find_line(text, 0, first - 1)
    end = find_line(text, start, last - first + 1)
    return Span(name_lines(first, last), first, last, start, end)


def find_line(text: str, offset: int, lines: int) -> int:
    """Return the start of the line a number of lines below an offset."""
    for _ in range(lines):
        offset = text.find("\n", offset) + 1 or len(text)
    return offset


def _add_span(found: list[Span | AnchorError], new: Span) -> None:
    """Add a span to others, joined with those it overlaps, in the place of the first."""
    place = len(found)
    for index in range(len(found) - 1, -1, -1):
        old = found[index]
        if isinstance(old, Span) and old.start < new.end and new.start < old.end:
            new = _join(old, new)
            del found[index]
            place = index
    found.insert(place, new)


def _join(one: Span, other: Span) -> Span:
    for span, inner in ((one, other), (other, one)):
        if span.start <= inner.start and inner.end <= span.end:
            return span
    first, last = min(one.first_line, other.first_line), max(one.last_line, other.last_line)
    start, end = min(one.start, other.start), max(one.end, other.end)
    return Span(name_lines(first, last), first, last, start, end)
