"""The lines of a longer passage that answer a question. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from llm_kb.search.chunking.documents import Outline
from llm_kb.search.words import find_stems

_PARAGRAPH = re.compile(r"\n(?:[ \t]*\r?\n)+")
_LEADS_ON = re.compile(r"\.\.[ ][^\n]*|.*:", re.DOTALL)
"""A label, a directive, or what ends in a colon: what it leads to comes next."""

_TITLE = re.compile(r"#{1,6}[ \t][^\n]*|(?:[^\n]*\n)?[^\n]+\n([^\w\s])\1+")


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
    start, end = span
    if end - start <= most:
        return span
    blocks = [_weigh(text, outline, *edges, rarities) for edges in _cut(text, outline, start, end)]
    first, last = max(_windows(blocks, most), key=lambda window: _rate(blocks, *window))
    return _extend(blocks, first, last, most)


def _cut(text: str, outline: Outline, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the blocks of a span: what is whole, indented or led up to is not parted."""
    edges = {match.end() for match in _PARAGRAPH.finditer(text, start, end)}
    edges |= {mark.offset for mark in outline.marks if start < mark.offset < end}
    labels = {mark.offset for mark in outline.marks if mark.label}
    begin = start
    for edge in sorted(edges):
        at = bisect_right(outline.wholes, (edge, 0)) - 1
        is_inside = at >= 0 and outline.wholes[at][0] < edge < outline.wholes[at][1]
        is_below = text[edge : edge + 1] in " \t" and edge not in labels
        paragraph = text[begin:edge].rstrip().rpartition("\n\n")[2]
        is_title = begin in labels and _TITLE.fullmatch(paragraph)
        leads_on = is_title or _LEADS_ON.fullmatch(paragraph)
        if edge < end and not (is_inside or is_below or leads_on):
            yield begin, edge
            begin = edge
    yield begin, end


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
