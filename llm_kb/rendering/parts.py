"""The parts of a subject: found by their addresses, rendered, and listed in outlines. Pure.

`slug#anchor` is a section of its text, `slug#L10-L20` are lines.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from llm_kb.errors import find_similar
from llm_kb.rendering.plain_text import count, defuse, estimate_tokens
from llm_kb.rendering.presentation import Presented, present, truncate
from llm_kb.search.chunking.outline import find_outline
from llm_kb.search.chunking.sections import Outline, Section
from llm_kb.subjects.topics import Content, Subject, is_binary

WHOLE = "*"
"""The anchor of a whole subject, without its outline."""

OUTLINE = ""
"""The anchor of a subject's outline, even if the subject is small."""

OPENING = 1_500
"""Number of characters of the text that are shown above an outline."""

LONGEST_OUTLINE = 6_000
"""Maximum number of characters of an outline; parts that do not fit are counted."""

LONGEST_ANCHOR = 200
"""Maximum number of characters of a requested anchor that are read."""

NEAR_PARTS = 5

_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\W_]+")


class AnchorError(ValueError):
    """An anchor that names no part; `near` are similar valid anchors."""

    def __init__(self, anchor: str, near: Sequence[str]) -> None:
        self.anchor = anchor
        self.near = tuple(near)
        super().__init__(anchor)


def find_spans(outline: Outline, anchors: Iterable[str]) -> list[Section | AnchorError]:
    """Return the span of each anchor in a text, or the reason it has none.

    Overlapping spans become one, so no text is returned twice.
    """
    index = _Index(outline)
    found: list[Section | AnchorError] = []
    for anchor in dict.fromkeys(anchors):
        try:
            _add_span(outline.text, found, index.find_span(anchor[:LONGEST_ANCHOR]))
        except AnchorError as error:
            found.append(error)
    return found


def find_holding(parts: Sequence[Section], start: int, end: int) -> Section | None:
    """Return the smallest part that contains a span of its text."""
    holding = [part for part in parts if part.start <= start and end <= part.end]
    return min(holding, key=lambda part: part.end - part.start, default=None)


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


def count_lines(text: str) -> int:
    """Return the number of lines of a text."""
    return text.count("\n") + (not text.endswith("\n"))


class _Index:
    """The parts of a text, looked up by anchors as people write them."""

    def __init__(self, outline: Outline) -> None:
        self._text = outline.text
        self._parts = outline.sections
        self._exact = {part.anchor.casefold(): part for part in self._parts}

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Section]]:
        found: defaultdict[str, list[Section]] = defaultdict(list)
        for part in self._parts:
            found[_loosen(part.anchor.rpartition("/")[2])].append(part)
        return found

    def find_span(self, anchor: str) -> Section:
        """Return a part or lines. Raises AnchorError."""
        part = self._exact.get(anchor.casefold())
        lines = None if part else _LINES.fullmatch(anchor)
        if lines:
            return _find_lines(self._text, anchor, int(lines[1]), int(lines[2] or lines[1]))
        return part or self._find_loosely(anchor)

    def _find_loosely(self, anchor: str) -> Section:
        """Find a part by an anchor with other separators, or by its own name if that is unique."""
        named = self._by_name.get(_loosen(anchor.rpartition("/")[2]), ())
        found = [part for part in named if _loosen(part.anchor) == _loosen(anchor)] or named
        if len(found) == 1:
            return found[0]
        similar = find_similar(anchor, (part.anchor for part in self._parts), most=NEAR_PARTS)
        raise AnchorError(anchor, [part.anchor for part in named[:NEAR_PARTS]] or similar)


def _loosen(anchor: str) -> str:
    """Return an anchor without case, and with one kind of separator."""
    return _SEPARATORS.sub("-", anchor.casefold()).strip("-")


def _find_lines(text: str, anchor: str, first: int, last: int) -> Section:
    """Return the span of lines, as far as the text has them."""
    lines = count_lines(text)
    last = min(last, lines)
    if not 1 <= first <= last:
        raise AnchorError(anchor, [name_lines(1, lines)] if lines else [])
    start = find_line(text, 0, first - 1)
    return Section(start, find_line(text, start, last - first + 1), 0, "", name_lines(first, last))


def _add_span(text: str, found: list[Section | AnchorError], new: Section) -> None:
    """Add a span to others, joined with those it overlaps, in the place of the first."""
    place = len(found)
    for index in range(len(found) - 1, -1, -1):
        old = found[index]
        if isinstance(old, Section) and old.start < new.end and new.start < old.end:
            new = _join(text, old, new)
            del found[index]
            place = index
    found.insert(place, new)


def _join(text: str, one: Section, other: Section) -> Section:
    for span, inner in ((one, other), (other, one)):
        if span.start <= inner.start and inner.end <= span.end:
            return span
    start, end = min(one.start, other.start), max(one.end, other.end)
    return Section(start, end, 0, "", name_lines(*find_line_numbers(text, start, end)))


# Rendering


def present_asked(
    subject: Subject,
    content: Content,
    asked: Sequence[str | None],
    *,
    topic: str,
    outline_over: int = 0,
) -> tuple[list[Presented], list[AnchorError]]:
    """Return the requested pieces of a subject, each once, and the unknown anchors.

    `asked` has anchors, and None for the subject itself. A text over `outline_over`
    characters (0: never) is given as its beginning and outline: the subject, or a part that
    has parts of its own. Parts come after the subject.
    """
    if is_binary(content.data) or not content.data:
        return [present(subject, content)], []
    text = decode_exactly(content.data)
    if WHOLE in asked:
        return [present(subject, content)._replace(lines=(1, count_lines(text)))], []
    is_large = 0 < outline_over < len(text)
    if None in asked and not is_large:
        return [present(subject, content)], []
    outline = find_outline(subject.path, text)
    parts = outline.sections
    pieces = []
    if OUTLINE in asked or None in asked:
        opening = truncate(present(subject, content), OPENING)
        whole = Section(0, len(text), 0, "", WHOLE)
        below = render_outline(subject.name, topic, text, whole, parts)
        pieces.append(opening._replace(below=below, is_opening=True))
    spans = find_spans(outline, [anchor for anchor in asked if anchor])
    lines = count_lines(text)
    for span in spans:
        if isinstance(span, Section):
            piece = _present_span(subject, content, text, span, lines)
            is_large = 0 < outline_over < span.end - span.start
            inner = _find_inner(parts, span) if is_large else ()
            if inner:
                below = render_outline(subject.name, topic, text, span, inner)
                piece = truncate(piece, OPENING)
                piece = piece._replace(below=below, is_opening=True)
            pieces.append(piece)
    return pieces, [span for span in spans if isinstance(span, AnchorError)]


def _find_inner(parts: Sequence[Section], span: Section) -> list[Section]:
    """Return the parts below a part; none below lines, which have no depth."""
    if not span.depth:
        return []
    return [part for part in parts if span.start < part.start and part.end <= span.end]


def take_pieces(subject: Subject, data: bytes, asked: Sequence[str | None]) -> list[bytes]:
    """Return the bytes of the requested file or parts."""
    if not {None, WHOLE, OUTLINE}.isdisjoint(asked):
        return [data]
    text = decode_exactly(data)
    spans = find_spans(find_outline(subject.path, text), filter(None, asked))
    return [encode_exactly(text[s.start : s.end]) for s in spans if isinstance(s, Section)]


def decode_exactly(data: bytes) -> str:
    """Decode a file so that any piece of its text can be encoded to the same bytes again."""
    return data.decode("utf-8-sig", "surrogateescape")


def encode_exactly(text: str) -> bytes:
    """Return the bytes of a piece of a text that `decode_exactly` made."""
    return text.encode("utf-8", "surrogateescape")


def _present_span(
    subject: Subject, content: Content, text: str, span: Section, lines: int
) -> Presented:
    data = encode_exactly(text[span.start : span.end])
    first, last = find_line_numbers(text, span.start, span.end)
    piece = present(
        subject._replace(name=f"{subject.name}#{span.anchor}"),
        Content(data=data, size=len(data), origin=content.origin),
        note=f"lines {first:,}-{last:,} of {lines:,}",
    )
    return piece._replace(lines=(first, last))


def render_outline(
    name: str, topic: str, text: str, span: Section, parts: Sequence[Section]
) -> str:
    """Return the parts of a span of a subject with their sizes, nested, and how to load them."""
    part_name = name if span.anchor == WHOLE else f"{name}#{span.anchor}"
    first, last = find_line_numbers(text, span.start, span.end)
    tokens = estimate_tokens(text[span.start : span.end])
    sizes = f"{count(last - first + 1, 'line')}, ~{tokens:,} tokens"
    heading = f"## Outline of {part_name} ({sizes})"
    shown = "\n".join(_render_parts(parts)) if parts else "It has no headings."
    calls = [f"{name}#{parts[min(1, len(parts) - 1)].anchor}"] if parts else []
    calls.append(f"{name}#{name_lines(first, min(last, first + 199))}")
    kinds = "parts or lines" if parts else "lines"
    call = f"learn({json.dumps(topic)}, {json.dumps(calls, ensure_ascii=False)})"
    every = WHOLE if span.anchor == WHOLE else name_lines(first, last)
    whole = json.dumps(f"{name}#{every}", ensure_ascii=False)
    how = f"Load {kinds} with {call}, or all of it with {whole}."
    return defuse(f"{heading}\n\n{shown}\n\n{how}")


def _render_parts(parts: Sequence[Section]) -> list[str]:
    """Return a line for each part, down to the depth that fits; deeper parts are counted."""
    deepest = max(part.depth for part in parts)
    for depth in range(deepest, 0, -1):
        lines = _render_depths(parts, depth)
        if sum(map(len, lines)) + len(lines) <= LONGEST_OUTLINE:
            return lines
    kept, room = [], LONGEST_OUTLINE
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [*kept, f"- and {len(lines) - len(kept):,} more at this level"]


def _render_depths(parts: Sequence[Section], deepest: int) -> list[str]:
    """Return a line for each part of these levels, with the number of those below them."""
    lines: list[str] = []
    below = 0
    top = min(part.depth for part in parts)
    for part in reversed(parts):
        if part.depth > deepest:
            below += 1
            continue
        tokens = estimate_tokens(part.end - part.start)
        inner = f", {count(below, 'part')}" if below else ""
        below = 0
        lines.append(f"{'  ' * (part.depth - top)}- #{part.anchor} (~{tokens:,} tokens{inner})")
    return lines[::-1]
