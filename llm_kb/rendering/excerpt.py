"""Excerpts: the lines of a subject that a search shows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from llm_kb.rendering.plain_text import shorten
from llm_kb.search.question import find_stems
from llm_kb.texts.document import Document, Section, find_line, find_line_numbers, name_lines
from llm_kb.texts.folding import find_sources, fold
from llm_kb.texts.markup import drop_unsaid

CLOSE = 1_200
"""Longest part, in characters, that names an excerpt of it."""

BEGUN = 2_400
"""The same of a part that the excerpt begins, and of what is named as the lines to read next."""

BEFORE, AFTER = 300, 600
"""Characters around an excerpt whose lines name it otherwise: what it lacks mostly comes after it.
If there are fewer on one side, there are more on the other."""

WORTH = 40
"""The fewest characters of lines to read next."""

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
_TAG = re.compile(r"</[a-z][a-z0-9]*>|<br ?/?>|<[a-z][a-z0-9]*[ \t][^<>\n=]{0,200}=[^<>\n]{0,500}>")
"""HTML that says nothing; not `<name>`, which often stands for a name."""

_EDGE = re.compile(r"\n[ \t\r\n]*\n|\n(?=[ \t]*(?:[-*+•]|#\.|\(?[0-9a-z]{1,3}[.)])[ \t]+\S)")
"""The end of a paragraph, or of an item of a list."""

_ANNOUNCES = re.compile(r"(?:.*:|\.\. [^\n]+::[^\n]*)\Z", re.DOTALL)
_WORDS = re.compile(r"\w[^\n]*")
_INDENT = re.compile(r"[ \t]*")
_NOT_SHOWN = re.compile(
    r"[ \t\r\n]*\n|(?:\.\. _[^\n]*:(?: [a-z]+://\S*)?|\[\[[^\n]*\]\])[ \t]*\r?\n"
    r"|[ \t]*(?:`{3,}|~{3,})[ \t]*\r?\n(?=[ \t]*\r?\n)"
    r"|(?:(?:\.\. )?include::|\{\{#include )[^\n]*(?:\n|\Z)"
)
"""Blank lines, the label of a cross reference, the end of a block of code, or the inclusion of
another text above a passage: pages that include one are found for its name, and say nothing."""

_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3}).*", re.MULTILINE)


def find_excerpt(
    document: Document,
    span: tuple[int, int],
    rarities: Mapping[str, float],
    most: int,
    shown: Sequence[tuple[int, int]] = (),
) -> tuple[int, int, Section] | None:
    """Return the start and the end of the text to show for a found span, and its part.

    A small section is shown whole. Of a longer one it is the window of whole blocks, of about
    `most` characters, with the rarest words; `rarities` are those of the words' stems. It may
    extend beyond the span, but not beyond the section. The part is the smallest that has the
    lines, or lines around them above all parts, across several and amid a long one. Returns None
    if there is nothing to show, or any of it is `shown` already.
    """
    text = document.text
    # The text below the front matter is more informative, if there is any.
    body = document.body if text[document.body :].strip() else 0
    start = _skip(text, max(span[0], body), len(text))
    if start >= len(text):
        return None
    end = min(max(span[1], start + 1), start + REACH)
    part = document.find_section(start, end)
    limits = (max(part.start, body), part.end)
    start, end = trim(text, *_choose(document, limits, (start, end), rarities, most))
    if start >= end or any(start < after and before < end for before, after in shown):
        return None
    return start, end, _find_part(document, start, end)


def _find_part(document: Document, start: int, end: int) -> Section:
    """Return the smallest part that has a span, or lines around it if that is too large to load."""
    text = document.text
    part = document.find_section(start, end)
    begins = _skip(text, part.start, end) == start
    if part.anchor and part.end - part.start <= (BEGUN if begins else CLOSE):
        return part
    room = BEFORE + end - start + AFTER
    low = max(part.start, min(start - BEFORE, part.end - room))
    first = text.rfind("\n", 0, low) + 1
    last = text.find("\n", min(part.end, low + room) - 1) + 1 or len(text)
    first, last = trim(text, first, last)
    return Section(first, last, 0, "", name_lines(*find_line_numbers(text, first, last)))


def find_beside(document: Document, start: int, end: int) -> list[tuple[int, int] | None]:
    """Return the lines above an excerpt and those below it in its section, first and last.

    They are whole blocks of about `BEGUN` characters; None if there is nothing to say.
    """
    text = document.text
    part = document.find_section(start, end)
    # The rest of a line that was shown in part would repeat it.
    end = text.find("\n", end - 1) + 1 or len(text)
    start = text.rfind("\n", 0, start) + 1
    low, high = max(part.start, document.body, start - BEGUN), min(part.end, end + BEGUN)
    above, below = _find_blocks(document, (low, start)), _find_blocks(document, (end, high))
    if low > part.start and above:
        low = above[0][1]
    if high < part.end and below:
        high = below[-1][0]
    beside: list[tuple[int, int] | None] = []
    for span in ((low, start), (end, high)):
        first, last = trim(text, *span)
        is_heading = first == part.start and "\n" not in text[first:last]
        is_worth = last - first >= WORTH and not is_heading
        beside.append(find_line_numbers(text, first, last) if is_worth else None)
    return beside


def _choose(
    document: Document,
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
    text = document.text
    opens = {each.start for each in document.sections if limits[0] <= each.start < limits[1]}
    low, high = max(limits[0], span[0] - 2 * most), min(limits[1], span[1] + 2 * most)
    blocks = _find_blocks(document, (text.rfind("\n", 0, low) + 1, high))
    # What is at an end of these characters may be a piece of a block.
    if low > limits[0] and blocks[0][1] <= span[0]:
        del blocks[0]
    if high < limits[1] and blocks[-1][0] >= span[1]:
        del blocks[-1]
    blocks = [piece for block in blocks for piece in _split(text, *block, most)]
    texts = (drop_unsaid(text[start:end]) for start, end in blocks)
    words = [set(find_stems(each, rarities)) for each in texts]
    best, first, last = (-1.0, False, False), 0, 1
    for at, (start, end) in enumerate(blocks):
        if start < span[1] and end > span[0]:
            until = at + _count_fitting(blocks[at:], opens, span[1], most)
            said = sum(rarities[stem] for stem in set[str]().union(*words[at:until]))
            rating = said, bool(words[at]), start in opens
            if rating > best:
                best, first, last = rating, at, until
    end = blocks[last - 1][1]
    while first and blocks[first][0] not in opens and end - blocks[first - 1][0] <= most:
        first -= 1
    part = document.find_section(blocks[first][0], end)
    is_small = part.end - part.start <= WHOLE * most
    return part[:2] if is_small else (blocks[first][0], end)


def _count_fitting(
    blocks: Sequence[tuple[int, int]], opens: set[int], found: int, most: int
) -> int:
    """Return how many blocks from the first one on are shown together.

    What begins amid a section does not go on in the next, nor any beyond what was found.
    """
    start = blocks[0][0]
    for number, (edge, after) in enumerate(blocks[1:], 1):
        is_next = edge in opens and (start not in opens or edge >= found)
        if after - start > most or is_next:
            return number
    return len(blocks)


def _find_blocks(document: Document, span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the blocks of a span: paragraphs, items, code; with what announces or heads them."""
    text, (start, end) = document.text, span
    opens = {each.start for each in document.sections if start <= each.start < end}
    edges = {match.end() for match in _EDGE.finditer(text, start, end)} | opens
    inside = [(low, high) for low, high in document.wholes if low < end and start < high]
    edges -= {edge for low, high in inside for edge in edges if low < edge < high}
    blocks: list[tuple[int, int]] = []
    for first, last in pairwise(sorted({start, *edges, end})):
        if blocks and _is_joined(document, blocks[-1][0], first, last, opens):
            blocks[-1] = blocks[-1][0], last
        else:
            blocks.append((first, last))
    return blocks


def _is_joined(document: Document, start: int, edge: int, end: int, opens: set[int]) -> bool:
    """Tell whether what begins at an edge belongs to the block that begins at a start."""
    text = document.text
    before = text[start:edge].rstrip()
    # A label above a heading is no line of its own.
    lines = _WORDS.findall(drop_unsaid(before))
    if len(lines) <= sum(start <= each < edge for each in opens):
        return True  # headings alone
    if edge in opens:
        return False
    is_near = end - start <= LONG_BLOCK or len(lines) == 1
    is_deeper = _indent(text, edge) > _indent(text, start)
    return bool(_ANNOUNCES.match(before)) or (is_near and is_deeper)


def _split(text: str, start: int, end: int, most: int) -> list[tuple[int, int]]:
    """Return a block, or pieces of about `most` characters that end with a line, or a word."""
    pieces = []
    while end - start > max(LONG_BLOCK, most):
        low, high = start + most // 2, start + most
        found = [text.rfind(each, low, high) + len(each) for each in (".\n", ". ", "\n", " ")]
        found.insert(-1, text.find("\n", high, start + LONG_BLOCK) + 1)
        cut = next((cut for cut in found if cut > low), high)
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without blank lines at its ends, and without the labels above it."""
    start = _skip(text, start, end)
    return start, start + len(text[start:end].rstrip())


def find_key_sentence(text: str, rarities: Mapping[str, float]) -> tuple[int, str]:
    """Return the sentence or line of a text with the rarest words, and how many lines are above it.

    It is on one line, has no HTML tags and at most `LONGEST_SENTENCE` characters, of a longer one
    those around the first of the words.
    """
    text = _FENCE.sub("", drop_unsaid(text))
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
