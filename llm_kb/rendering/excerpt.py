"""Excerpts: the lines of a subject that a search shows. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from llm_kb.rendering.parts import find_holding, find_line, find_line_numbers
from llm_kb.search.chunking.chunk import CAP
from llm_kb.search.chunking.sections import Outline, Section
from llm_kb.search.ranking import find_stems

CLOSE = 8_000
"""Longest part, in characters, in which an excerpt may continue below another heading."""

WHOLE = 1.5
"""A part of up to this many times the length of an excerpt is shown whole."""

LONG_BLOCK = 600
"""A block of up to this many characters is not cut, even if an excerpt should be shorter."""

_PARAGRAPH = re.compile(r"\n(?:[ \t]*\r?\n)+")
_INDENT = re.compile(r"[ \t]*")
_DIRECTIVE = re.compile(r"\.\.[ ](?:_[^\n]*:[ \t]*|[^_\n][^\n]*?::[^\n]*)")
_OPTION = re.compile(r"[ \t]+:[^\n]*")

_TITLE = re.compile(r"#{1,6}[ \t][^\n]*|(?:[^\n]*\n)?[^\n]+\n([^\w\s])\1+")
_NOT_SHOWN = re.compile(r"(?:[ \t]*\r?\n|\.\. _[^\n]*:[ \t]*\r?\n)*")
"""Blank lines and the labels of cross references above a passage."""


class Excerpt(NamedTuple):
    """Some lines of a text, and the part that names them."""

    text: str
    start: int
    end: int
    lines: tuple[int, int]
    """The first and the last line; they count from 1."""
    part: Section | None
    """The smallest part that has the lines; None above all parts and across several."""
    is_whole: bool
    """Whether the whole part is shown."""


class _Block(NamedTuple):
    """A paragraph with its heading, its code and its indented lines."""

    start: int
    end: int
    weight: Mapping[str, float]
    """The question's words in it or in its heading, with their rarities."""
    opens: bool
    """Whether a heading or a definition begins here."""


def find_excerpt(  # noqa: PLR0913 - each is a choice of the caller
    whole: Outline,
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
    shown: Sequence[tuple[int, int]] = (),
    *,
    can_load: bool = True,
) -> Excerpt | None:
    """Return the lines to show for a found span, about `most` characters around the best words.

    `rarities` are those of the words' stems; `shown` are spans that are not shown again.
    A small part is shown whole. Otherwise the excerpt has whole paragraphs, code blocks and
    directives, each with its heading, so a single one may be longer. It may extend beyond the
    span, but not beyond the part. If the reader `can_load` more, parts beside the best one are
    left out. Returns None if nothing is left to show.
    """
    text = whole.text
    # The text below the front matter is more informative, if there is any.
    body = whole.body if text[whole.body :].strip() else 0
    start = _skip(text, max(span[0], body), len(text))
    if start >= len(text):
        return None
    span = start, max(span[1], start + 1)
    start, end = limits = _find_limits(whole.sections, span, (body, len(text)))
    if end - start > WHOLE * most:
        start, end = _choose(whole, limits, span, rarities, most)
    if can_load:
        start, end = _narrow(whole, limits, (start, end), rarities, most)
    for before in shown:
        if start < before[1] and before[0] < end:
            start, end = (start, before[0]) if start < before[0] else (before[1], end)
    start = _skip(text, start, end)
    found = text[start:end].rstrip()
    if start >= end or not found:
        return None
    last = start + len(found)
    part = find_holding(whole.sections, start, last)
    if part and _is_distant(whole, part, (start, last)):
        part = None
    is_whole = part is not None and not (
        _skip(text, part.start, start) < start or text[end : part.end].strip()
    )
    lines = find_line_numbers(text, start, last)
    return Excerpt(_mark_cuts(text, start, last), start, end, lines, part, is_whole)


def _skip(text: str, start: int, end: int) -> int:
    """Return the offset of the first line that is shown."""
    found = _NOT_SHOWN.match(text, start, end)
    return found.end() if found else start


def _find_limits(
    parts: Sequence[Section], span: tuple[int, int], limits: tuple[int, int]
) -> tuple[int, int]:
    """Return the largest part around a span within `CLOSE`, else the span between headings."""
    start, end = span
    close = [
        (part.start, part.end)
        for part in parts
        if part.start <= start and end <= part.end and part.end - part.start <= CLOSE
    ]
    if close:
        return max(close, key=lambda limits: limits[1] - limits[0])
    edges = [edge for part in parts for edge in (part.start, part.end)]
    above = max((edge for edge in edges if edge <= start), default=limits[0])
    below = min((edge for edge in edges if edge >= end), default=limits[1])
    return max(above, limits[0]), below


def _choose(
    whole: Outline,
    limits: tuple[int, int],
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
) -> tuple[int, int]:
    """Return the blocks of a span that answer best, extended as far as they fit."""
    blocks = [_weigh(whole, start, end, rarities) for start, end in _cut(whole, limits, span, most)]
    found = [n for n, block in enumerate(blocks) if block.start < span[1] and span[0] < block.end]
    among = range(found[0], found[-1] + 1)
    windows = _windows(blocks, among, most)
    first, last = max(windows, key=lambda window: _rate(blocks, *window))
    start, end = _extend(blocks, first, last, most, among.stop)
    part = find_holding(whole.sections, start, end)
    if part and part.end - part.start <= WHOLE * most:
        return part.start, part.end
    return start, end


def _narrow(
    whole: Outline,
    limits: tuple[int, int],
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
) -> tuple[int, int]:
    """Return the piece of a span in its best part, if this has all the question's words in it.

    A span in a part of its own is returned as it is.
    """
    around = find_holding(whole.sections, *span)
    if around and not _is_distant(whole, around, span):
        return span
    blocks = [_weigh(whole, *each, rarities) for each in _cut(whole, limits, span, most)]
    blocks = [block for block in blocks if block.start < span[1] and span[0] < block.end]
    best = max(blocks, key=_sum)
    part = find_holding(whole.sections, best.start, best.end)
    if not part:
        return span
    within = {s for b in blocks if part.start <= b.start and b.end <= part.end for s in b.weight}
    if not all(within.issuperset(block.weight) for block in blocks):
        return span
    if part.end - part.start <= WHOLE * most:
        return part.start, part.end
    return max(span[0], part.start), min(span[1], part.end)


def _is_distant(whole: Outline, part: Section, span: tuple[int, int]) -> bool:
    """Tell whether a span is amid a part that is too large to name it, and in several others."""
    if part.end - part.start <= CLOSE or span[0] <= _skip(whole.text, part.start, part.end):
        return False
    return any(span[0] < other.start < span[1] for other in whole.sections)


def _cut(
    whole: Outline, limits: tuple[int, int], span: tuple[int, int], most: int
) -> list[tuple[int, int]]:
    """Return the blocks around a span; code, indented text and announced text is not split.

    A block at an end of the span that is too long to be shown ends with the span.
    """
    text = whole.text
    starts = {section.start for section in whole.sections}
    wholes = [each for each in whole.wholes if each[1] - each[0] <= CAP]
    start, end = max(limits[0], span[0] - 2 * most), min(limits[1], span[1] + 2 * most)
    edges = {match.end() for match in _PARAGRAPH.finditer(text, start, end)}
    edges |= {edge for each in whole.sections for edge in each[:2] if start < edge < end}
    begin = start
    cuts = [start] if start == limits[0] else []
    for edge in sorted(edges):
        at = bisect_right(wholes, (edge, 0)) - 1
        is_inside = at >= 0 and wholes[at][0] < edge < wholes[at][1]
        is_below = (
            edge not in starts
            and edge - begin <= most
            and _indent(text, edge) > _indent(text, begin)
        )
        if edge < end and not (is_inside or is_below or _leads_on(text, begin, edge, starts)):
            cuts.append(edge)
            begin = edge
    if end == limits[1]:
        cuts.append(end)
    if not any(cut <= span[0] for cut in cuts):
        cuts = [span[0], *cuts]
    if not any(cut >= span[1] for cut in cuts):
        cuts.append(span[1])
    return [piece for block in pairwise(cuts) for piece in _split(text, *block, most, starts)]


def _split(
    text: str, start: int, end: int, most: int, labels: Container[int]
) -> Iterator[tuple[int, int]]:
    """Yield a block, or its pieces, if it is too long for a passage.

    A piece ends with a paragraph, or with a line if no paragraph ends nearby.
    """
    is_long = end - start > max(LONG_BLOCK, most)
    while is_long and end - start > most:
        blank = _PARAGRAPH.search(text, start + most // 2, min(start + 2 * most, end))
        if blank and not _leads_on(text, start, blank.end(), labels):
            cut = blank.end()
        else:
            cut = text.rfind("\n", start, start + most) + 1 or _cut_line(text, start, start + most)
            if _leads_on(text, start, cut, labels):
                cut = text.rfind("\n", cut, min(start + 2 * most, end)) + 1 or cut
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _cut_line(text: str, start: int, end: int) -> int:
    """Return the end of the last sentence in a piece of a line, or of the last word."""
    for separator in (". ", " "):
        at = text.rfind(separator, (start + end) // 2, end)
        if at != -1:
            return at + len(separator)
    return end


def _mark_cuts(text: str, start: int, end: int) -> str:
    """Return a span of a text with an ellipsis at an end that is amid a line."""
    before = "…" if text[start - 1 : start] not in ("", "\n") else ""
    after = "…" if text[end : find_line(text, end, 1)].strip() else ""
    return f"{before}{text[start:end]}{after}"


def _indent(text: str, at: int) -> int:
    """Return the indentation of the line that begins here."""
    found = _INDENT.match(text, at)
    return len(found[0].expandtabs()) if found else 0


def _leads_on(text: str, start: int, end: int, labels: Container[int]) -> bool:
    """Tell whether a block ends with a heading, a directive or an announcement.

    Labels, directives with their options, and text that ends in a colon belong to what follows.
    """
    paragraph = text[start:end].rstrip().rpartition("\n\n")[2]
    if paragraph.endswith(":") or (start in labels and _TITLE.fullmatch(paragraph)):
        return True
    lines = paragraph.split("\n")
    return bool(_DIRECTIVE.fullmatch(lines[0])) and all(
        _DIRECTIVE.fullmatch(line) or _OPTION.fullmatch(line) for line in lines
    )


def _weigh(whole: Outline, start: int, end: int, rarities: Mapping[str, float]) -> _Block:
    sections = whole.sections
    at = bisect_right(sections, start, key=lambda section: section.start) - 1
    above = sections[at] if at >= 0 and start < sections[at].end else None
    title = above.title if above else ""
    held = find_stems(f"{title}\n{whole.text[start:end]}", rarities)
    opens = above is not None and above.start == start
    return _Block(start, end, {stem: rarities[stem] for stem in held}, opens)


def _windows(blocks: Sequence[_Block], among: range, most: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of blocks that fit, and each block by itself."""
    for first in among:
        for last in range(first, among.stop):
            if last > first and (
                blocks[last].end - blocks[first].start > most
                or (blocks[last].opens and not blocks[first].opens)
            ):
                break
            yield first, last


def _rate(blocks: Sequence[_Block], first: int, last: int) -> tuple[float, bool, bool, int]:
    """Return a run's score: rare words raise it, and so does an early place."""
    held: dict[str, float] = {}
    for block in blocks[first : last + 1]:
        held.update(block.weight)
    begin = blocks[first]
    return sum(held.values()), bool(begin.weight), begin.opens, -first


def _extend(
    blocks: Sequence[_Block], first: int, last: int, most: int, found: int
) -> tuple[int, int]:
    """Return the span of a run, extended back to its heading and on to the next one if that fits.

    It continues below the next heading only within the first `found` blocks.
    """
    opening = next((at for at in range(first, -1, -1) if blocks[at].opens), first)
    if blocks[last].end - blocks[opening].start <= most:
        first = opening
    for at in range(last + 1, len(blocks)):
        is_other = blocks[at].opens and (at >= found or not blocks[first].opens)
        if is_other or blocks[at].end - blocks[first].start > most:
            break
        last = at
    return blocks[first].start, blocks[last].end


def _sum(block: _Block) -> float:
    return sum(block.weight.values())
