"""Excerpts: the lines of a subject that a search shows. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from llm_kb.rendering.parts import find_holding, find_line, find_line_numbers, name_lines
from llm_kb.rendering.plain_text import shorten
from llm_kb.search.chunks import CAP
from llm_kb.search.ranking import find_stems
from llm_kb.texts.folding import find_sources, fold
from llm_kb.texts.outlines.sections import Outline, Section

CLOSE = 1_200
"""Longest part, in characters, that names an excerpt of it."""

BEFORE, AFTER = 300, 600
"""Characters around an excerpt whose lines name it otherwise: what it lacks mostly comes after it.
If there are fewer on one side, there are more on the other."""

BESIDE = 900
"""Characters of the lines beside an excerpt that are named as the ones to read next."""

WORTH = 40
"""The fewest characters that they have."""

WHOLE = 1.5
"""A part of up to this many times the length of an excerpt is shown whole. An excerpt of less than
two thirds of its length takes in the next block, up to as many times that length."""

LONG_BLOCK = 800
"""A block of up to this many characters is not cut, even if an excerpt should be shorter."""

LEAD_IN = 300
"""Longest paragraph, in characters, that stays with the code below it."""

LONGEST_SENTENCE = 240
"""Characters of a sentence that is shown by itself."""

_WRAP = (
    r"(?<=[^\n]{50}[^\s:;{}|>)])\r?\n[ \t]*"
    r"(?=[^\W\d_]|[`\"'(\[])(?![\w.-]+(?::\s|[ \t]*=)|\"[^\"\n]*\":|\w{1,3}[.)]\s|[`\"'*]{3})"
)
"""The end of a long line that the next one continues, by the looks of both: most code, data and
rows of tables do not look so."""

_SENTENCE = re.compile(
    rf"\S(?:{_WRAP}|[^\n])*?(?:(?<=[^\s.][.!?])(?<!e\.g\.)(?<!i\.e\.)(?=\s)"
    rf"|(?<=[\u3002\uff01\uff1f])|(?=\r?\n)(?!{_WRAP})|\Z)"
)
_END = re.compile(r"(?<=[.!?])\s|\n")
_TAG = re.compile(r"</[a-z][a-z0-9]*>|<br ?/?>|<[a-z][a-z0-9]*[ \t][^<>\n=]{0,200}=[^<>\n]{0,500}>")
"""HTML that says nothing; not `<name>`, which often stands for a name."""

_EDGE = re.compile(
    r"\n(?:[ \t]*\r?\n)+"  # after a paragraph
    r"|\n(?=[ \t]*(?:[-*+•]|#\.|\(?[0-9a-z]{1,3}[.)])[ \t]+\S)"  # before an item of a list
)
_CODE = re.compile(r"[ \t]*(?:`{3}|~{3}|\.\. (?:code|sourcecode|highlight))")
_INDENT = re.compile(r"[ \t]*")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\s*")
_DIRECTIVE = re.compile(r"\.\. [^_\n]+::")
_TITLE = re.compile(r"#{1,6}[ \t][^\n]*|(?:[^\n]*\n)?[^\n]+\n([^\w\s])\1+")
_NOT_SHOWN = re.compile(r"(?:[ \t]*\r?\n|\.\. _[^\n]*:[ \t]*\r?\n)*")
"""Blank lines and the labels of cross references above a passage."""

_NOT_SAID = re.compile(
    r"^ {0,3}\[(?!\^)[^\[\]\n]{1,200}\]:[ \t]+<?(?:[a-z][a-z0-9+.-]*:|[/.#])\S*"
    r"|^[ \t]*(?:`{3}|~{3}).*",
    re.MULTILINE,
)
"""Addresses of links in Markdown, and fences of code: their words are not what a text says."""


class _Block(NamedTuple):
    """A paragraph with its heading, its code and its indented lines, or an item of a list."""

    start: int
    end: int
    weight: Mapping[str, float]
    """The question's words in it or in its heading, with their rarities."""
    opens: bool
    """Whether a heading or a definition begins here."""


def find_excerpt(
    outline: Outline,
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
    shown: Sequence[tuple[int, int]] = (),
) -> tuple[int, int, Section] | None:
    """Return the start and the end of the text to show for a found span, and its part.

    It has about `most` characters around the best words; `rarities` are those of the words'
    stems. `shown` are spans that are not shown again. A small part is shown whole. Otherwise the
    excerpt has whole paragraphs, items, code blocks and directives, each with its heading, so a
    single one may be longer. It may extend beyond the span, but not beyond the part. The part is
    the smallest that has the lines, or lines around them above all parts, across several and
    amid a long one. Returns None if nothing is left to show.
    """
    text = outline.text
    # The text below the front matter is more informative, if there is any.
    body = outline.body if text[outline.body :].strip() else 0
    start = _skip(text, max(span[0], body), len(text))
    if start >= len(text):
        return None
    start, end = _Chooser(outline, rarities, most, (start, max(span[1], start + 1)), body).choose()
    start = _enter_section(outline, start, end)
    for before in shown:
        if start < before[1] and before[0] < end:
            start, end = (start, before[0]) if start < before[0] else (before[1], end)
    start, end = trim(text, _leave_fence(outline, start), end)
    return (start, end, _find_part(outline, start, end)) if start < end else None


def _leave_fence(outline: Outline, start: int) -> int:
    """Return a start, or the end of the block of code of which only the closing fence is left."""
    at = bisect_right(outline.wholes, (start, len(outline.text))) - 1
    end = outline.wholes[at][1] if at >= 0 and outline.wholes[at][0] < start else start
    return max(start, end) if _FENCE.fullmatch(outline.text, start, end) else start


def _enter_section(outline: Outline, start: int, end: int) -> int:
    """Return the start of the section that a heading without text of its own leads to."""
    starts = [section.start for section in outline.sections if start <= section.start < end]
    if starts[:1] == [start] and not outline.is_code:
        for below in starts[1:]:
            if not _TITLE.fullmatch(outline.text[start:below].strip()):
                break
            start = below
    return start


def _find_section(outline: Outline, start: int, end: int) -> Section:
    """Return the smallest section that has a span, or the whole text."""
    whole = Section(0, len(outline.text), 0, "", "")
    return find_holding(outline.sections, start, end) or whole


def _find_part(outline: Outline, start: int, end: int) -> Section:
    """Return the smallest part that has a span, or lines around it if that is too large to load."""
    text = outline.text
    part = _find_section(outline, start, end)
    if part.anchor and part.end - part.start <= CLOSE:
        return part
    room = BEFORE + end - start + AFTER
    low = max(part.start, min(start - BEFORE, part.end - room))
    first = text.rfind("\n", 0, low) + 1
    last = text.find("\n", min(part.end, low + room) - 1) + 1 or len(text)
    first, last = trim(text, first, last)
    return Section(first, last, 0, "", name_lines(*find_line_numbers(text, first, last)))


def name_more(outline: Outline, start: int, end: int) -> str:
    """Return the anchor of the lines that follow an excerpt in its section, or else precede it.

    It is empty if there are none, or only a heading or a few signs, or far too many characters.
    """
    text = outline.text
    part = _find_section(outline, start, end)
    below = min(part.end, end + BESIDE)
    if below < part.end:
        below = text.rfind("\n", end + WORTH, below) + 1 or text.find("\n", below) + 1 or len(text)
    above = text.rfind("\n", 0, max(part.start, outline.body, start - BESIDE)) + 1
    for span in ((end, below), (above, start)):
        first, last = trim(text, *span)
        if WORTH <= last - first <= 2 * BESIDE and not _TITLE.fullmatch(text, first, last):
            return name_lines(*find_line_numbers(text, first, last))
    return ""


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
        self._sections = outline.sections
        self._starts = {section.start for section in outline.sections}
        self._wholes = [each for each in outline.wholes if each[1] - each[0] <= CAP]
        self._rarities = rarities
        self._most = most
        self._span = span
        around = find_holding(outline.sections, *span)
        self._limits = around[:2] if around else self._find_free(body)

    def choose(self) -> tuple[int, int]:
        """Return the part that has the span if it is small, else the blocks that answer best."""
        if self._is_small(*self._limits):
            return self._limits
        blocks = self._find_blocks()
        found = [
            number
            for number, block in enumerate(blocks)
            if block.start < self._span[1] and self._span[0] < block.end
        ]
        windows = self._find_windows(blocks, range(found[0], found[-1] + 1))
        first, last = max(windows, key=lambda window: _rate(blocks, *window))
        start, end = self._extend(blocks, first, last, found[-1] + 1)
        part = find_holding(self._sections, start, end)
        return part[:2] if part and self._is_small(*part[:2]) else (start, end)

    def _find_free(self, body: int) -> tuple[int, int]:
        """Return what no section divides around a span that is in none."""
        edges = [edge for section in self._sections for edge in section[:2]]
        above = max((edge for edge in edges if edge <= self._span[0]), default=body)
        below = min((edge for edge in edges if edge >= self._span[1]), default=len(self._text))
        return max(above, body), below

    def _is_small(self, start: int, end: int) -> bool:
        return end - start <= WHOLE * self._most

    def _find_blocks(self) -> list[_Block]:
        """Return the blocks around the span.

        Code with its sentence, an item, and indented or announced text are one. A block at an end
        of the span that is too long to be shown ends with the span.
        """
        first, last = self._span
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
        edges = {match.end() for match in _EDGE.finditer(self._text, start, end)}
        edges |= {edge for section in self._sections for edge in section[:2]}
        return sorted(edge for edge in edges if start < edge < end)

    def _belongs(self, start: int, edge: int) -> bool:
        """Tell whether what begins at an edge is part of the block that begins at a start."""
        at = bisect_right(self._wholes, (edge, 0)) - 1
        if at >= 0 and edge < self._wholes[at][1]:
            return True
        if self._leads_on(start, edge):
            return True
        if edge in self._starts or edge - start > self._most:
            return False
        is_code = edge - start <= LEAD_IN and _CODE.match(self._text, edge)
        return bool(is_code) or _indent(self._text, edge) > _indent(self._text, start)

    def _leads_on(self, start: int, end: int) -> bool:
        """Tell whether a block ends with a heading, a directive or an announcement."""
        block = self._text[start:end].rstrip()
        paragraph = block.rpartition("\n\n")[2]
        if paragraph.endswith(":") or _DIRECTIVE.match(paragraph):
            return True
        begins = not self._starts.isdisjoint((start, start + len(block) - len(paragraph)))
        return begins and _TITLE.fullmatch(paragraph) is not None

    def _split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield a block, or pieces that end with a line, if it is too long for a passage."""
        is_long = end - start > max(LONG_BLOCK, self._most)
        while is_long and end - start > self._most:
            middle, limit = start + self._most // 2, min(start + 2 * self._most, end)
            edge = _EDGE.search(self._text, middle, limit)
            cut = edge.end() if edge else limit
            if not edge or (cut - start < self._most and self._leads_on(start, cut)):
                cut = self._find_line_end(start, start + self._most)
            yield start, cut
            start = cut
        if start < end:
            yield start, end

    def _find_line_end(self, start: int, end: int) -> int:
        """Return the end of the last line in a span, else that of its last sentence or word."""
        text = self._text
        cut = text.rfind("\n", start, end) + 1 or text.find("\n", end, start + LONG_BLOCK) + 1
        if cut:
            return cut
        middle = (start + end) // 2
        ends = (text.rfind(mark, middle, end) + len(mark) for mark in (". ", " "))
        return next((cut for cut in ends if cut > middle), end)

    def _weigh(self, start: int, end: int) -> _Block:
        sections = self._sections
        at = bisect_right(sections, start, key=lambda section: section.start) - 1
        above = sections[at] if at >= 0 and start < sections[at].end else None
        title = above.title if above else ""
        said = _NOT_SAID.sub("", self._text[start:end])
        held = find_stems(f"{title}\n{said}", self._rarities)
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
        """Return a run extended to its heading, on to the next one, and back, as far as that fits.

        A short one may take in a block that is too long. It continues below the next heading only
        within the first `found` blocks.
        """
        opening = next((at for at in range(first, -1, -1) if blocks[at].opens), first)
        if blocks[last].end - blocks[opening].start <= self._most:
            first = opening
        for at in range(last + 1, len(blocks)):
            start, end = blocks[first].start, blocks[last].end
            room = WHOLE * self._most if WHOLE * (end - start) < self._most else self._most
            is_other = blocks[at].opens and (at >= found or not blocks[first].opens)
            if is_other or blocks[at].end - start > room:
                break
            last = at
        while first and not blocks[first].opens:
            if blocks[last].end - blocks[first - 1].start > self._most:
                break
            first -= 1
        return blocks[first].start, blocks[last].end


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without blank lines at its ends, and without the labels above it."""
    start = _skip(text, start, end)
    return start, start + len(text[start:end].rstrip())


def find_key_sentence(text: str, rarities: Mapping[str, float]) -> tuple[int, str]:
    """Return the sentence or line of a text with the rarest words, and how many lines are above it.

    It is on one line, has no HTML tags and at most `LONGEST_SENTENCE` characters, of a longer one
    those around the first of the words.
    """
    text = _NOT_SAID.sub("", text)
    pieces = ((match.start(), _TAG.sub("", match[0])) for match in _SENTENCE.finditer(text))

    def rate(piece: tuple[int, str]) -> float:
        return sum(rarities[stem] for stem in find_stems(piece[1], rarities))

    at, sentence = max(pieces, key=rate, default=(0, ""))
    begin = 0
    if len(sentence) > LONGEST_SENTENCE:
        folded = fold(sentence)
        places = map(folded.find, find_stems(sentence, rarities))
        first = min((at for at in places if at >= 0), default=0)
        first = find_sources(sentence, folded)[first]
        begin = sentence.rfind(" ", 0, max(0, first - LONGEST_SENTENCE // 4)) + 1
    above = text.count("\n", 0, at) + sentence.count("\n", 0, begin)
    shown = " ".join(sentence[begin:].split())
    return above, shorten(f"…{shown}" if begin else shown, LONGEST_SENTENCE)


def find_missing_sentence(
    outline: Outline, start: int, end: int, rarities: Mapping[str, float], title: str = ""
) -> tuple[int, str]:
    """Return the sentence beside an excerpt with the rarest words that it lacks, and its line.

    Of its section the sentences are read that are whole among `CLOSE` characters on either side.
    Words of the title are not missing. Without such a sentence, it is empty. Lines count from 1.
    """
    text = outline.text
    part = _find_section(outline, start, end)
    said = find_stems(f"{title}\n{text[start:end]}", rarities)
    lacking = {stem: rarity for stem, rarity in rarities.items() if stem not in said}
    best, found = 0.0, (0, "")
    above = max(part.start, outline.body, start - CLOSE)
    below = min(part.end, end + CLOSE)
    for span in (above, start), (end, below):
        first, last = _find_whole(text, *span)
        lines, sentence = find_key_sentence(text[first:last], lacking)
        rating = sum(lacking[stem] for stem in find_stems(sentence, lacking))
        if rating > best:
            best, found = rating, (1 + text.count("\n", 0, first) + lines, sentence)
    return found


def _find_whole(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the pieces of sentences at its ends."""
    if not _is_edge(text, start):
        found = _END.search(text, start, end)
        start = found.end() if found else end
    if not _is_edge(text, end):
        end = max((found.end() for found in _END.finditer(text, start, end)), default=start)
    return start, end


def _is_edge(text: str, at: int) -> bool:
    """Tell whether a line begins or ends at an offset."""
    return at in (0, len(text)) or text[at - 1] == "\n" or text[at] in "\r\n"


def mark_cuts(text: str, start: int, end: int) -> str:
    """Return a span of a text with an ellipsis at an end that is amid a line."""
    before = "…" if text[start - 1 : start] not in ("", "\n") else ""
    after = "…" if text[end : find_line(text, end, 1)].strip() else ""
    return f"{before}{text[start:end]}{after}"


def _skip(text: str, start: int, end: int) -> int:
    """Return the offset of the first line that is shown."""
    found = _NOT_SHOWN.match(text, start, end)
    return found.end() if found else start


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
