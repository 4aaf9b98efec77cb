"""Excerpts: the lines of a subject that a search shows. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from llm_kb.rendering.plain_text import shorten
from llm_kb.search.chunks import CAP
from llm_kb.search.question import find_stems
from llm_kb.texts.document import Document, Section, find_line, find_line_numbers, name_lines
from llm_kb.texts.folding import find_sources, fold

CLOSE = 1_200
"""Longest part, in characters, that names an excerpt of it."""

BEGUN = 2_400
"""The same of a part that the excerpt begins: who opens its address wants all of it."""

BEFORE, AFTER = 300, 600
"""Characters around an excerpt whose lines name it otherwise: what it lacks mostly comes after it.
If there are fewer on one side, there are more on the other."""

BESIDE = 900
"""Characters of the lines beside an excerpt that are named as the ones to read next."""

WORTH = 40
"""The fewest characters that they have."""

REACH = 3_600
"""Characters of a found span that are read, however long its lines are."""

WHOLE = 2
"""A part of up to this many times the length of an excerpt is shown whole."""

LONG_BLOCK = 800
"""A block of up to this many characters is not cut, even if an excerpt should be shorter."""

LONGEST_SENTENCE = 240
"""Characters of a sentence that is shown by itself."""

LONGEST_HEAD = 80
"""Characters of the line above a sentence that says what it describes."""

_WRAP = (
    r"(?<=[^\n]{50}[^\s:;{}|>)])\r?\n[ \t]*"
    r"(?=[^\W\d_]|[`\"'(\[])(?![\w.-]+(?::\s|[ \t]*=)|\"[^\"\n]*\":|\w{1,3}[.)]\s|[`\"'*]{3})"
)
"""The end of a long line that the next one continues, by the looks of both: most code, data and
rows of tables do not look so."""

_STOP = r"(?<=[^\s.][.!?])(?<!e\.g\.)(?<!i\.e\.)"
_SENTENCE = re.compile(
    rf"\S(?:{_WRAP}|[^\n])*?(?:{_STOP}(?=\s)"
    rf"|(?<=[\u3002\uff01\uff1f])|(?=\r?\n)(?!{_WRAP})|\Z)"
)
_END = re.compile(rf"{_STOP}\s|(?!{_WRAP})(?:\r\n|(?<!\r)\n)")
_TAG = re.compile(r"</[a-z][a-z0-9]*>|<br ?/?>|<[a-z][a-z0-9]*[ \t][^<>\n=]{0,200}=[^<>\n]{0,500}>")
"""HTML that says nothing; not `<name>`, which often stands for a name."""

_EDGE = re.compile(
    r"\n[ \t\r\n]*\n"  # after a paragraph
    r"|\n(?=[ \t]*(?:[-*+•]|#\.|\(?[0-9a-z]{1,3}[.)])[ \t]+\S)"  # before an item of a list
    r"|\n(?=[ \t]*--?\w|[^\s:][^\n]{0,100}::[ \t]*\r?\n)"  # before an option or a term
)
_STEP = re.compile(r"^[ \t]*(?:#|\(?[0-9]{1,3})[.)][ \t]", re.MULTILINE)
_ANNOUNCES = re.compile(r".*:\Z|\.\. [^_\n]+::", re.DOTALL)
_CODE = re.compile(r"[ \t]*(?:`{3}|~{3}|\.\. (?:code|sourcecode|highlight))")
_INDENT = re.compile(r"[ \t]*")
_NOT_SHOWN = re.compile(
    r"[ \t\r\n]*\n|(?:\.\. _[^\n]*:(?: [a-z]+://\S*)?|\[\[[^\n]*\]\])[ \t]*\r?\n"
    r"|[ \t]*(?:`{3,}|~{3,})[ \t]*\r?\n(?=[ \t]*\r?\n)"
    r"|(?:(?:\.\. )?include::|\{\{#include )[^\n]*(?:\n|\Z)"
)
"""Blank lines, the label of a cross reference, the end of a block of code, or the inclusion of
another text above a passage: pages that include one are found for its name, and say nothing."""

_NOT_SAID = re.compile(
    r"^ {0,3}\[(?!\^)[^\[\]\n]{1,200}\]:[ \t]+<?(?:[a-z][a-z0-9+.-]*:|[/.#])\S*"
    r"|^\[\[[^\]\n]{1,200}\]\][ \t]*$|^[ \t]*(?:`{3}|~{3}).*",
    re.MULTILINE,
)
"""Addresses of links in Markdown, labels of AsciiDoc, fences of code: no text says their words."""


def find_excerpt(
    outline: Document,
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
    shown: Sequence[tuple[int, int]] = (),
) -> tuple[int, int, Section] | None:
    """Return the start and the end of the text to show for a found span, and its part.

    A small part is shown whole. Of a longer one it is the window of whole blocks, of about `most`
    characters, with the rarest words; `rarities` are those of the words' stems. It may extend
    beyond the span, but not beyond the part. The part is the smallest that has the lines, or lines
    around them above all parts, across several and amid a long one. Returns None if there is
    nothing to show, or any of it is `shown` already.
    """
    text = outline.text
    # The text below the front matter is more informative, if there is any.
    body = outline.body if text[outline.body :].strip() else 0
    start = _skip(text, max(span[0], body), len(text))
    if start >= len(text):
        return None
    end = min(max(span[1], start + 1), start + REACH)
    part = outline.find_section(start, end)
    limits = part[:2] if part.depth else (body, len(text))
    start, end = trim(text, *_choose(outline, limits, (start, end), rarities, most))
    if start >= end or any(start < after and before < end for before, after in shown):
        return None
    return start, end, _find_part(outline, start, end)


def _is_line(text: str) -> bool:
    """Tell whether one line alone of a text has words, as of a heading and what underlines it."""
    return len(re.findall(r"\w[^\n]*", text)) == 1


def _find_part(outline: Document, start: int, end: int) -> Section:
    """Return the smallest part that has a span, or lines around it if that is too large to load."""
    text = outline.text
    part = outline.find_section(start, end)
    begins = _skip(text, part.start, end) == start
    if part.anchor and part.end - part.start <= (BEGUN if begins else CLOSE):
        return part
    room = BEFORE + end - start + AFTER
    low = max(part.start, min(start - BEFORE, part.end - room))
    first = text.rfind("\n", 0, low) + 1
    last = text.find("\n", min(part.end, low + room) - 1) + 1 or len(text)
    first, last = trim(text, first, last)
    return Section(first, last, 0, "", name_lines(*find_line_numbers(text, first, last)))


def name_more(
    outline: Document, start: int, end: int, shown: Sequence[tuple[int, int]] = ()
) -> str:
    """Return the anchor of the lines that follow an excerpt in its section, or else precede it.

    It is empty if there are none, or only a heading or a few signs, or far too many characters, or
    if they were `shown`.
    """
    text = outline.text
    part = outline.find_section(start, end)
    # The rest of a line that was shown in part would repeat it.
    end = end if _is_edge(text, end) else text.find("\n", end) + 1 or len(text)
    start = start if _is_edge(text, start) else text.rfind("\n", 0, start) + 1
    below = min(part.end, end + BESIDE)
    if below < part.end:
        below = text.rfind("\n", end + WORTH, below) + 1 or text.find("\n", below) + 1 or len(text)
    above = text.rfind("\n", 0, max(part.start, outline.body, start - BESIDE)) + 1
    for span in ((end, below), (above, start)):
        first, last = trim(text, *span)
        is_new = not any(first < after and before < last for before, after in shown)
        is_heading = first == part.start and _is_line(text[first:last])
        if is_new and WORTH <= last - first <= 2 * BESIDE and not is_heading:
            return name_lines(*find_line_numbers(text, first, last))
    return ""


# The blocks that an excerpt consists of


def _choose(
    outline: Document,
    limits: tuple[int, int],
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
) -> tuple[int, int]:
    """Return the limits if they are near, else the window of blocks with the rarest words.

    It begins with a block of the span that has some, and has as many of the next as there is room
    for; at the end of the limits also some of those before.
    """
    if limits[1] - limits[0] <= WHOLE * most:
        return limits
    opens = {each.start for each in outline.sections if limits[0] <= each.start < limits[1]}
    blocks = _find_blocks(outline, limits, span, opens, most)
    texts = (_NOT_SAID.sub("", outline.text[start:end]) for start, end in blocks)
    words = [set(find_stems(text, rarities)) for text in texts]
    best, first, last = (0.0, False, False), 0, 0
    for at, (start, end) in enumerate(blocks):
        if start >= span[1] or end <= span[0]:
            continue
        until = at + 1
        while until < len(blocks):
            edge, after = blocks[until]
            if after - start > most:
                break
            if edge in opens and (start not in opens or edge >= span[1]):
                break
            until += 1
        said = sum(rarities[stem] for stem in set[str]().union(*words[at:until]))
        rating = said, bool(words[at]), start in opens
        if rating > best or not last:
            best, first, last = rating, at, until
    end = blocks[last - 1][1]
    while first and blocks[first][0] not in opens and end - blocks[first - 1][0] <= most:
        first -= 1
    start = blocks[first][0]
    part = outline.find_section(start, end)
    is_small = part.depth and part.end - part.start <= WHOLE * most
    return part[:2] if part and is_small else (start, end)


def _find_blocks(
    outline: Document, limits: tuple[int, int], span: tuple[int, int], opens: set[int], most: int
) -> list[tuple[int, int]]:
    """Return the blocks around a span: paragraphs, items, code, each with what announces it."""
    text = outline.text
    start, end = max(limits[0], span[0] - 2 * most), min(limits[1], span[1] + 2 * most)
    edges = {match.end() for match in _EDGE.finditer(text, start, end)} | opens
    # What is at an end of these characters may be a piece of a block.
    if start > limits[0]:
        start = min((edge for edge in edges if start < edge <= span[0]), default=span[0])
    if end < limits[1]:
        end = max((edge for edge in edges if span[1] <= edge < end), default=span[1])
    edges = {edge for edge in edges if start < edge < end}
    blocks: list[tuple[int, int]] = []
    for first, last in pairwise(sorted({start, end, *edges})):
        if blocks and _belongs(outline, blocks[-1][0], first, last, opens):
            blocks[-1] = blocks[-1][0], last
        else:
            blocks.append((first, last))
    return [piece for block in _join_steps(text, blocks) for piece in _split(outline, *block, most)]


def _join_steps(text: str, blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the blocks, of which the steps of a short numbered list are one."""
    joined: list[tuple[int, int]] = []
    for start, end in blocks:
        first = joined[-1][0] if joined else 0
        is_short = joined and end - first <= LONG_BLOCK
        if is_short and _STEP.match(text, start) and _STEP.search(text, first, start):
            joined[-1] = first, end
        else:
            joined.append((start, end))
    return joined


def _belongs(outline: Document, start: int, edge: int, end: int, opens: set[int]) -> bool:
    """Tell whether what begins at an edge is part of the block that begins at a start."""
    text = outline.text
    if _is_amid(outline, edge):
        return True
    paragraph = text[max(start, edge - LONG_BLOCK) : edge].rstrip().rpartition("\n\n")[2]
    if _ANNOUNCES.match(paragraph):
        return True
    begin = text.rfind(paragraph, start, edge)
    before = bisect_right(outline.sections, begin, key=lambda section: section.start)
    opened = outline.sections[before - 1].start if before else 0
    is_first = opened >= start and begin == _skip(text, opened, edge)
    if is_first and not outline.is_code and _is_line(paragraph):
        return True
    if edge in opens or end - start > LONG_BLOCK:
        return False
    return bool(_CODE.match(text, edge)) or _indent(text, edge) > _indent(text, start)


def _is_amid(outline: Document, at: int) -> bool:
    """Tell whether an offset is within what is not to be cut, such as code."""
    whole = bisect_right(outline.wholes, (at, 0)) - 1
    return whole >= 0 and at < outline.wholes[whole][1] <= outline.wholes[whole][0] + CAP


def _split(outline: Document, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield a block, or pieces that end with a sentence or a line if it is too long.

    A line that announces something ends one, and code is cut, only if nothing else can be.
    """
    text = outline.text
    while end - start > max(LONG_BLOCK, most):
        middle, limit = start + most // 2, start + most
        ends = [each.end() for each in _END.finditer(text, middle, limit)]
        later = _END.search(text, limit, start + LONG_BLOCK)
        ends = ends or [later.end() if later else text.rfind(" ", middle, limit) + 1 or limit]
        cut = max(ends, key=partial(_rate_cut, outline, start))
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _rate_cut(outline: Document, start: int, cut: int) -> tuple[bool, bool, bool, int]:
    """Return how good an offset is to cut a block at: before what it is a list of, or a line."""
    text = outline.text
    is_whole = not text[cut - 4 : cut].rstrip().endswith((":", "\n+"))
    is_line = text[cut - 1] == "\n"
    is_outer = is_line and _indent(text, cut) <= _indent(text, start)
    return is_whole and not _is_amid(outline, cut), is_outer, is_line, cut


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
        first = find_sources(sentence, folded)[first] if folded else 0  # only invisible letters
        begin = sentence.rfind(" ", 0, max(0, first - LONGEST_SENTENCE // 4)) + 1
    above = text.count("\n", 0, at) + sentence.count("\n", 0, begin)
    head = "" if begin else _find_head(text, at)
    shown = " ".join([head, *sentence[begin:].split()]).lstrip()
    return above, shorten(f"…{shown}" if begin else shown, LONGEST_SENTENCE)


def _find_head(text: str, at: int) -> str:
    """Return the line above a sentence that says what it describes: an option, a term."""
    line = text.rfind("\n", 0, at) + 1
    above = text.rfind("\n", 0, max(0, line - 1)) + 1
    head = text[above:line].strip()
    is_outer = _indent(text, above) < _indent(text, line) and not text[line:at].strip()
    return head if head and len(head) <= LONGEST_HEAD and is_outer else ""


def find_missing_sentence(
    outline: Document, start: int, end: int, rarities: Mapping[str, float], title: str = ""
) -> tuple[int, str]:
    """Return the sentence beside an excerpt with the rarest words that it lacks, and its line.

    Of its section the sentences are read that are whole among `CLOSE` characters on either side.
    Words of the title are not missing. Without such a sentence, it is empty. Lines count from 1.
    """
    text = outline.text
    part = outline.find_section(start, end)
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
    while found := _NOT_SHOWN.match(text, start, end):
        start = found.end()
    return start


def _indent(text: str, at: int) -> int:
    """Return the indentation of the line that begins here."""
    found = _INDENT.match(text, at)
    return len(found[0].expandtabs()) if found else 0
