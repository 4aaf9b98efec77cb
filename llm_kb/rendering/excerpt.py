"""Excerpts: the lines of a subject that a search shows. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from llm_kb.rendering.parts import find_holding, find_line, find_line_numbers
from llm_kb.search.chunking.outline import CAP
from llm_kb.search.chunking.sections import Outline, Section
from llm_kb.search.ranking import find_stems

CLOSE = 8_000
"""Longest part, in characters, in which an excerpt may continue below another heading."""

WHOLE = 1.75
"""A part of up to this many times the length of an excerpt is shown whole."""

LONG_BLOCK = 600
"""A block of up to this many characters is not cut, even if an excerpt should be shorter."""

LEAD_IN = 300
"""Longest paragraph, in characters, that stays with the code below it."""

_PARAGRAPH = re.compile(r"\n(?:[ \t]*\r?\n)+")
_ITEM = re.compile(r"\n(?=[ \t]*(?:[-*+•]|#\.|\(?[0-9a-z]{1,3}[.)])[ \t]+\S)")
_COMMENT = re.compile(r"[ \t]*(?:#|//|--|;)")
_CODE = re.compile(r"[ \t]*(?:`{3}|~{3}|\.\. (?:code|sourcecode|highlight))")
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
    """A paragraph with its heading, its code and its indented lines, or an item of a list."""

    start: int
    end: int
    weight: Mapping[str, float]
    """The question's words in it or in its heading, with their rarities."""
    opens: bool
    """Whether a heading or a definition begins here."""


def find_excerpt(  # noqa: PLR0913 - each is a choice of the caller
    outline: Outline,
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
    shown: Sequence[tuple[int, int]] = (),
    *,
    can_load: bool = True,
) -> Excerpt | None:
    """Return the lines to show for a found span, about `most` characters around the best words.

    `rarities` are those of the words' stems; `shown` are spans that are not shown again.
    A small part is shown whole. Otherwise the excerpt has whole paragraphs, items, code blocks and
    directives, each with its heading, so a single one may be longer. It may extend beyond the
    span, but not beyond the part. If the reader `can_load` more, parts beside the best one are
    left out. Returns None if nothing is left to show.
    """
    text = outline.text
    # The text below the front matter is more informative, if there is any.
    body = outline.body if text[outline.body :].strip() else 0
    start = _skip(text, max(span[0], body), len(text))
    if start >= len(text):
        return None
    chooser = _Chooser(outline, rarities, most, (start, max(span[1], start + 1)), body)
    start, end = chooser.choose(can_load=can_load)
    for before in shown:
        if start < before[1] and before[0] < end:
            start, end = (start, before[0]) if start < before[0] else (before[1], end)
    start = _skip(text, start, end)
    found = text[start:end].rstrip()
    if start >= end or not found:
        return None
    last = start + len(found)
    part = chooser.find_part(start, last)
    is_whole = part is not None and not (
        _skip(text, part.start, start) < start or text[end : part.end].strip()
    )
    lines = find_line_numbers(text, start, last)
    return Excerpt(_mark_cuts(text, start, last), start, end, lines, part, is_whole)


class _Chooser:
    """Chooses the lines to show for a span that was found."""

    def __init__(
        self,
        outline: Outline,
        rarities: Mapping[str, float],
        most: int,
        span: tuple[int, int],
        body: int,
    ) -> None:
        self._text = outline.text
        self._outline = outline
        self._sections = outline.sections
        self._starts = {section.start for section in outline.sections}
        self._wholes = [each for each in outline.wholes if each[1] - each[0] <= CAP]
        self._rarities = rarities
        self._most = most
        self._span = span
        self._limits = self._find_limits(body)

    def choose(self, *, can_load: bool) -> tuple[int, int]:
        """Return the span to show."""
        start, end = self._limits
        if not self._is_small(start, end):
            start, end = self._find_best()
        return self._narrow(start, end) if can_load else (start, end)

    def find_part(self, start: int, end: int) -> Section | None:
        """Return the smallest part that has a span; None if that is too large to name it."""
        part = find_holding(self._sections, start, end)
        return None if part and self._is_distant(part, start, end) else part

    def _find_limits(self, body: int) -> tuple[int, int]:
        """Return the largest part around the span within `CLOSE`, else what no heading divides."""
        start, end = self._span
        close = [
            (part.start, part.end)
            for part in self._sections
            if part.start <= start and end <= part.end and part.end - part.start <= CLOSE
        ]
        if close:
            return max(close, key=lambda limits: limits[1] - limits[0])
        edges = [edge for part in self._sections for edge in part[:2]]
        above = max((edge for edge in edges if edge <= start), default=body)
        below = min((edge for edge in edges if edge >= end), default=len(self._text))
        return max(above, body), below

    def _is_small(self, start: int, end: int) -> bool:
        return end - start <= WHOLE * self._most

    def _find_best(self) -> tuple[int, int]:
        """Return the blocks that answer best, extended as far as they fit, or their small part."""
        blocks = self._find_blocks(*self._span)
        found = [n for n, each in enumerate(blocks) if self._is_found(each)]
        windows = self._find_windows(blocks, range(found[0], found[-1] + 1))
        first, last = max(windows, key=lambda window: _rate(blocks, *window))
        start, end = self._extend(blocks, first, last, found[-1] + 1)
        part = find_holding(self._sections, start, end)
        return part[:2] if part and self._is_small(part.start, part.end) else (start, end)

    def _narrow(self, start: int, end: int) -> tuple[int, int]:
        """Return the piece of a span in its best part, if this has all the question's words in it.

        A span in a part of its own is returned as it is.
        """
        around = find_holding(self._sections, start, end)
        if around and not self._is_distant(around, start, end):
            return start, end
        blocks = [b for b in self._find_blocks(start, end) if b.start < end and start < b.end]
        best = max(blocks, key=lambda block: sum(block.weight.values()))
        part = find_holding(self._sections, best.start, best.end)
        if not part:
            return start, end
        inside = [b for b in blocks if part.start <= b.start and b.end <= part.end]
        within = {stem for block in inside for stem in block.weight}
        if not all(within.issuperset(block.weight) for block in blocks):
            return start, end
        if self._is_small(part.start, part.end):
            return part.start, part.end
        return max(start, part.start), min(end, part.end)

    def _is_distant(self, part: Section, start: int, end: int) -> bool:
        """Tell whether a span is amid a part too large to name it, and in several others."""
        if part.end - part.start <= CLOSE or start <= _skip(self._text, part.start, part.end):
            return False
        return any(start < other.start < end for other in self._sections)

    def _is_found(self, block: _Block) -> bool:
        return block.start < self._span[1] and self._span[0] < block.end

    def _find_blocks(self, first: int, last: int) -> list[_Block]:
        """Return the blocks around a span.

        Code with its sentence, an item, and indented or announced text are one. A block at an end
        of the span that is too long to be shown ends with the span.
        """
        start = max(self._limits[0], first - 2 * self._most)
        end = min(self._limits[1], last + 2 * self._most)
        begin = start
        cuts = [start] if start == self._limits[0] else []
        for edge in self._find_edges(start, end):
            if not self._belongs(begin, edge):
                cuts.append(edge)
                begin = edge
        if end == self._limits[1]:
            cuts.append(end)
        if not any(cut <= first for cut in cuts):
            cuts = [self._find_line_end(start, first), *cuts]
        if not any(cut >= last for cut in cuts):
            cuts.append(last)
        return [self._weigh(*piece) for block in pairwise(cuts) for piece in self._split(*block)]

    def _find_edges(self, start: int, end: int) -> list[int]:
        """Return the places in a span where a paragraph, an item or a section begins or ends."""
        edges = {match.end() for match in _PARAGRAPH.finditer(self._text, start, end)}
        edges |= {match.end() for match in _ITEM.finditer(self._text, start, end)}
        edges |= {edge for section in self._sections for edge in section[:2]}
        return sorted(edge for edge in edges if start < edge < end)

    def _belongs(self, start: int, edge: int) -> bool:
        """Tell whether what begins at an edge is part of the block that begins at a start."""
        at = bisect_right(self._wholes, (edge, 0)) - 1
        if at >= 0 and self._wholes[at][0] < edge < self._wholes[at][1]:
            return True
        if self._leads_on(start, edge):
            return True
        if edge in self._starts or edge - start > self._most:
            return False
        is_code = edge - start <= LEAD_IN and _CODE.match(self._text, edge)
        return bool(is_code) or _indent(self._text, edge) > _indent(self._text, start)

    def _leads_on(self, start: int, end: int) -> bool:
        """Tell whether a block ends with a heading, a directive or an announcement.

        Labels, directives with their options, and text that ends in a colon belong to what follows.
        """
        block = self._text[start:end].rstrip()
        paragraph = block.rpartition("\n\n")[2]
        begins = not self._starts.isdisjoint((start, start + len(block) - len(paragraph)))
        if paragraph.endswith(":") or (begins and _TITLE.fullmatch(paragraph)):
            return True
        lines = paragraph.split("\n")
        return bool(_DIRECTIVE.fullmatch(lines[0])) and all(
            _DIRECTIVE.fullmatch(line) or _OPTION.fullmatch(line) for line in lines
        )

    def _split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield a block, or its pieces, if it is too long for a passage.

        A piece ends with a paragraph, or with a line if no paragraph ends nearby; a comment stays
        with the lines that it describes.
        """
        text, most = self._text, self._most
        is_long = end - start > max(LONG_BLOCK, most)
        while is_long and end - start > most:
            blank = _PARAGRAPH.search(text, start + most // 2, min(start + 2 * most, end))
            if blank and not self._leads_on(start, blank.end()):
                cut = blank.end()
            else:
                cut = self._find_line_end(start, start + most)
                if self._leads_on(start, cut):
                    cut = text.rfind("\n", cut, min(start + 2 * most, end)) + 1 or cut
            yield start, cut
            start = cut
        if start < end:
            yield start, end

    def _find_line_end(self, start: int, end: int) -> int:
        """Return the end of the last line in a span that no comment is cut from, else of a word."""
        cut = last = self._text.rfind("\n", start, end) + 1
        while cut > (start + end) // 2:
            above = self._text.rfind("\n", start, cut - 1) + 1
            if not _COMMENT.match(self._text, above):
                return cut
            cut = above
        last = last or self._text.find("\n", end, start + LONG_BLOCK) + 1
        return last or _find_word_end(self._text, start, end)

    def _weigh(self, start: int, end: int) -> _Block:
        sections = self._sections
        at = bisect_right(sections, start, key=lambda section: section.start) - 1
        above = sections[at] if at >= 0 and start < sections[at].end else None
        title = above.title if above else ""
        held = find_stems(f"{title}\n{self._text[start:end]}", self._rarities)
        opens = above is not None and above.start == start
        return _Block(start, end, {stem: self._rarities[stem] for stem in held}, opens)

    def _find_windows(self, blocks: Sequence[_Block], among: range) -> Iterator[tuple[int, int]]:
        """Yield the runs of blocks that fit, and each block by itself."""
        for first in among:
            for last in range(first, among.stop):
                if last > first and (
                    blocks[last].end - blocks[first].start > self._most
                    or (blocks[last].opens and not blocks[first].opens)
                ):
                    break
                yield first, last

    def _extend(
        self, blocks: Sequence[_Block], first: int, last: int, found: int
    ) -> tuple[int, int]:
        """Return a run extended back to its heading and on to the next one, as far as that fits.

        It continues below the next heading only within the first `found` blocks.
        """
        opening = next((at for at in range(first, -1, -1) if blocks[at].opens), first)
        if blocks[last].end - blocks[opening].start <= self._most:
            first = opening
        for at in range(last + 1, len(blocks)):
            is_other = blocks[at].opens and (at >= found or not blocks[first].opens)
            if is_other or blocks[at].end - blocks[first].start > self._most:
                break
            last = at
        return blocks[first].start, blocks[last].end


def _skip(text: str, start: int, end: int) -> int:
    """Return the offset of the first line that is shown."""
    found = _NOT_SHOWN.match(text, start, end)
    return found.end() if found else start


def _find_word_end(text: str, start: int, end: int) -> int:
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


def _rate(blocks: Sequence[_Block], first: int, last: int) -> tuple[float, bool, bool, int]:
    """Return a run's score: rare words raise it, and so does an early place."""
    held: dict[str, float] = {}
    for block in blocks[first : last + 1]:
        held.update(block.weight)
    begin = blocks[first]
    return sum(held.values()), bool(begin.weight), begin.opens, -first
