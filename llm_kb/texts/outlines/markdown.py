"""Finding headings and fences in Markdown. Pure."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import cast

from llm_kb.texts.document import Document, Mark, make_document, make_mark
from llm_kb.texts.markup import FRONT_MATTER
from llm_kb.texts.outlines.html import ClosingTags, find_own_anchor, read_title

_BLOCKS = (
    "address|article|aside|blockquote|body|center|details|dialog|dd|dir|div|dl|dt|fieldset"
    "|figcaption|figure|footer|form|frame|header|html|iframe|legend|li|main|menu|nav|ol|p|section"
    "|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_MARKDOWN_LINE = re.compile(
    # A fence, which may be the first block of a list item.
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+){0,20})(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|^[ ]{0,3}(?P<hashes>\#{1,6})(?P<title>[ \t][^\n]*|\r?)$"
    r"|^[ ]{0,3}(?P<under>=+|-+)[ \t]*\r?$"
    r"|^[ ]{0,3}(?P<html><!--|<!\[CDATA\[|\{/\*|<(?:pre|script|style|textarea)\b)"
    # Markdown in a script, as a component of MDX has it.
    r"|^(?:export\s[^\n`]*|[^\n`]*\{)(?P<script>`)(?=[^\n`]*$)"
    # In a block of HTML, up to a blank line, only tags make headings.
    rf"|^[ ]{{0,3}}(?P<block></?(?:{_BLOCKS})(?=[\s/>]))"
    r"|^[ ]{0,3}<h(?P<level>[1-6])(?P<attributes>(?:\s[^<>]{0,1000})?)>"
    # What MkDocs calls an admonition, if its first line is indented.
    r"|^(?P<note>!!!|\?\?\?\+?)[ ]+\w[^\n]*\n(?=[ \t\r\n]*(?<=\n)[ ]{4})",
    re.MULTILINE | re.IGNORECASE,
)
_NOT_INDENTED = re.compile(r"^(?![ ]{4})[ \t]*\S", re.MULTILINE)
_NO_PARAGRAPH = re.compile(
    r"[ ]{0,3}(?:>|\#{1,6}(?:[ \t]|$)|(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)|[`~]{3}|<)|\t|[ ]{4}"
)


_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{0,500}\)")
_CLOSER = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t\r]*\n")
_LEAST_CODE = 3
"""Largest indentation that does not make a line code."""

_MOST_INSIDE = 200
"""Most lines within a fence that could close another one."""

_LONGEST_PARAGRAPH = 10
"""Most lines of a paragraph that an underline makes a heading."""

_HTML_ENDS = {
    name: re.compile(f"</{name}>", re.IGNORECASE) for name in ("pre", "script", "style", "textarea")
} | {"!--": re.compile("-->"), "![cdata[": re.compile(r"\]\]>"), "/*": re.compile(r"\*/\}")}


def outline_markdown(text: str) -> Document:
    """Return headings outside of fences and HTML, those of HTML too, and the fences and notes."""
    front = FRONT_MATTER.match(text)
    body = position = floor = front.end() if front else 0
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    fences, tags = _Fences(text), ClosingTags(text)
    html = 0  # the end of a block of HTML
    while match := _MARKDOWN_LINE.search(text, position):
        position = match.end()
        if match["fence"]:
            end = fences.find_end(match)
            if end is None:
                continue
            wholes.append((match.start(), end))
            position = end
        elif match["note"]:
            after = _NOT_INDENTED.search(text, position)
            position = after.start() if after else len(text)
            wholes.append((match.start(), position))
        elif match["block"]:
            if position > html:  # else it is inside of another one
                blank = _BLANK.search(text, position)
                html = blank.start() if blank else len(text)
            continue
        elif match["html"] or match["script"]:
            position = _html_end(text, match)
        elif match["level"]:
            mark, position = _read_tag(text, match, tags)
            marks += [mark] if mark.title else []
        elif match.start() < html or not (mark := _read_heading(text, match, floor)).title:
            continue
        else:
            marks.append(mark)
        floor = position
    return make_document(text, marks, wholes)._replace(body=body)


def _read_tag(text: str, match: re.Match[str], tags: ClosingTags) -> tuple[Mark, int]:
    """Return the heading of a tag, which has no title if it is none, and where it ends."""
    end = tags.find(f"h{match['level']}", match.end())
    title = read_title(text, match.end(), end)
    anchor = find_own_anchor(match["attributes"], text[match.end() : end]) if title else ""
    mark = Mark(match.start(), int(match["level"]), title, anchor)
    return mark, end if title else match.end()


def _read_heading(text: str, match: re.Match[str], floor: int) -> Mark:
    """Return the heading that signs make, before it or below it; without a title if it is none."""
    if hashes := match["hashes"]:
        return _make_mark(match.start(), len(hashes), _strip_hashes(match["title"]))
    depth = 1 if match["under"][0] == "=" else 2
    start = _paragraph_start(text, match.start(), floor)
    if start is None:
        return Mark(match.start(), depth, "")
    return _make_mark(start, depth, text[start : match.start()])


def _strip_hashes(title: str) -> str:
    """Return the text of an ATX heading without its closing hashes."""
    title = title.strip()
    bare = title.rstrip("#")
    return (bare if not bare or bare[-1] in " \t" else title) or "#"


def _make_mark(offset: int, depth: int, title: str) -> Mark:
    """Return the mark of a heading, with links as their text."""
    return make_mark(offset, depth, _LINK.sub(r"\1", title.rstrip()))


class _Fences:
    """Finds where the fences of a text end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = array("Q", (closer.start() for closer in _CLOSER.finditer(text)))
        self._passed: dict[tuple[str, bool], int] = {}
        """The number of first closers of which none closes such a fence."""

    def find_end(self, opener: re.Match[str]) -> int | None:
        """Return the start of the line after the closing fence; None if the opener is not a fence.

        An unclosed fence runs to the end of the document, unless its opener is indented like code;
        then it is text.
        """
        fence = opener["fence"]
        is_nested = opener["indent"].strip(" ") != "" or len(opener["indent"]) > _LEAST_CODE
        first = bisect_left(self._starts, opener.end())
        last = min(first + _MOST_INSIDE, len(self._starts))
        for at in range(max(first, self._passed.get((fence, is_nested), 0)), last):
            closer = cast("re.Match[str]", _CLOSER.match(self._text, self._starts[at]))
            is_flush = "\t" not in closer[1] and len(closer[1]) <= _LEAST_CODE
            if closer[2].startswith(fence) and (is_nested or is_flush):
                return closer.end()
        self._passed[fence, is_nested] = last
        return None if is_nested else len(self._text)


def _paragraph_start(text: str, underline: int, floor: int) -> int | None:
    """Return the start of the paragraph above a setext underline; None without one.

    It does not reach above `floor`, the end of the last heading, fence or note.
    """
    start = underline
    for _ in range(_LONGEST_PARAGRAPH + 1):
        if start <= floor:
            break
        previous = text.rfind("\n", 0, start - 1) + 1
        line = text[previous : start - 1]
        if previous < floor or not line.strip():
            break
        if _NO_PARAGRAPH.match(line) or _is_table(line):
            # After a list, a quotation, code or a table, a line of dashes is a rule.
            return None
        start = previous
    else:
        return None
    return start if start < underline else None


def _is_table(line: str) -> bool:
    """Tell whether a line divides the head of a table from its rows."""
    return "|" in line and "-" in line and not line.strip(" \t\r|:-")


def _html_end(text: str, opener: re.Match[str]) -> int:
    """Return the end of raw HTML: after the line with its closing tag; and that of a script."""
    if opener["script"]:
        return text.find("`", opener.end()) + 1 or opener.end()
    closing = _HTML_ENDS[opener["html"][1:].lower()].search(text, opener.end())
    line_end = text.find("\n", closing.start()) if closing else -1
    return len(text) if line_end == -1 else line_end + 1
