"""The lines of a longer passage that answer a question. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from llm_kb.search.chunking.documents import Outline
from llm_kb.search.features import find_stems

_PARAGRAPH = re.compile(r"\n(?:[ \t]*\r?\n)+")
_LEADS_ON = re.compile(r"(?:\.\.[ ][^\n]*(?:\n[ \t]+:[^\n]*)*(?:\n|\Z))+|[\s\S]*:")
"""Labels, directives with their options, or what ends in a colon: what it leads to comes next."""

_TITLE = re.compile(r"#{1,6}[ \t][^\n]*|(?:[^\n]*\n)?[^\n]+\n([^\w\s])\1+")


NEAR = 150
"""Characters back to a heading that a passage is shown with."""


class _Block(NamedTuple):
    """A paragraph with what belongs to it: its heading, its code, its indented lines."""

    start: int
    end: int
    weight: Mapping[str, float]
    """The question's words in it or in its heading, and how much each tells."""
    opens: bool
    """Whether a heading or a definition begins here."""


def find_excerpt(
    text: str, outline: Outline, span: tuple[int, int], rarities: Mapping[str, float], most: int
) -> tuple[int, int]:
    """Return the part of a span that holds most of a question's words in `most` characters.

    `rarities` says how much each word's stem tells. The part consists of whole paragraphs, code
    blocks and directives, each with its heading, so a single one may be longer.
    """
    labels = {mark.offset for mark in outline.marks if mark.label}
    start, end = span
    above = _find_heading(outline, start)
    if above < start and _leads_on(text, above, start, labels):
        start = above
    edges = list(_cut(text, outline, labels, start, end))
    if len(edges) == 1 and _leads_on(text, start, end, labels):
        # A heading alone is shown with what it leads to, as far as that is whole.
        edges = list(_cut(text, outline, labels, start, min(end + most, len(text))))
        edges = edges[:-1] or edges
    while len(edges) > 1 and _leads_on(text, *edges[-1], labels):
        edges.pop()
    if edges[-1][1] - start <= most:
        return start, edges[-1][1]
    blocks = [_weigh(text, outline, *each, rarities) for each in edges]
    first, last = max(_windows(blocks, most), key=lambda window: _rate(blocks, *window))
    return _extend(blocks, first, last, most)


def _find_heading(outline: Outline, start: int) -> int:
    """Return where the nearest headings above a place begin, those of several levels; else it."""
    opening, depth = start, None
    at = bisect_right(outline.marks, start, key=lambda mark: mark.offset)
    for mark in reversed(outline.marks[:at]):
        if start - mark.offset > NEAR:
            break
        if mark.label and (depth is None or mark.depth < depth):
            opening, depth = mark.offset, mark.depth
    return opening


def _cut(
    text: str, outline: Outline, labels: Container[int], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the blocks of a span: what is whole, indented or led up to is not parted."""
    edges = {match.end() for match in _PARAGRAPH.finditer(text, start, end)}
    edges |= {mark.offset for mark in outline.marks if start < mark.offset < end}
    begin = start
    for edge in sorted(edges):
        at = bisect_right(outline.wholes, (edge, 0)) - 1
        is_inside = at >= 0 and outline.wholes[at][0] < edge < outline.wholes[at][1]
        is_below = text[edge : edge + 1] in " \t" and edge not in labels
        if edge < end and not (is_inside or is_below or _leads_on(text, begin, edge, labels)):
            yield begin, edge
            begin = edge
    yield begin, end


def _leads_on(text: str, start: int, end: int, labels: Container[int]) -> bool:
    """Return whether a block ends with a heading, a directive or an announcement."""
    paragraph = text[start:end].rstrip().rpartition("\n\n")[2]
    is_title = start in labels and _TITLE.fullmatch(paragraph)
    return bool(is_title or _LEADS_ON.fullmatch(paragraph))


def _weigh(
    text: str, outline: Outline, start: int, end: int, rarities: Mapping[str, float]
) -> _Block:
    at = bisect_right(outline.marks, start, key=lambda mark: mark.offset) - 1
    label = outline.marks[at].label if at >= 0 else ""
    held = find_stems(f"{label}\n{text[start:end]}", rarities)
    opens = at >= 0 and outline.marks[at].offset == start
    return _Block(start, end, {stem: rarities[stem] for stem in held}, opens)


def _windows(blocks: Sequence[_Block], most: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of blocks that fit, and every block by itself."""
    for first, block in enumerate(blocks):
        for last in range(first, len(blocks)):
            if last > first and blocks[last].end - block.start > most:
                break
            yield first, last


def _rate(blocks: Sequence[_Block], first: int, last: int) -> tuple[float, bool, bool, int]:
    """Return how good a run of blocks is: it tells much, begins with that, and stands early."""
    held: dict[str, float] = {}
    for block in blocks[first : last + 1]:
        held.update(block.weight)
    begin = blocks[first]
    return sum(held.values()), bool(begin.weight), begin.opens, -first


def _extend(blocks: Sequence[_Block], first: int, last: int, most: int) -> tuple[int, int]:
    """Return the span of a run with what fits besides: back to its heading, and then on."""
    opening = next((at for at in range(first, -1, -1) if blocks[at].opens), first)
    if blocks[last].end - blocks[opening].start <= most:
        first = opening
    while last + 1 < len(blocks) and blocks[last + 1].end - blocks[first].start <= most:
        last += 1
    return blocks[first].start, blocks[last].end
