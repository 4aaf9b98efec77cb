"""Finding headings and fences in Markdown."""

from __future__ import annotations

import re

from llm_kb.search.chunking.documents import Mark, Outline, shorten_label

FRONT_MATTER = re.compile(
    r"\A(?:\ufeff)?(---|\+\+\+)[ \t]*\r?\n(?:.*?\n)??\1[ \t]*(?:\r?\n|\Z)", re.DOTALL
)

_MARKDOWN_LINE = re.compile(
    # A fence, which may be the first block of a list item.
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|^[ ]{0,3}(?P<hashes>\#{1,6})(?P<title>[ \t][^\n]*|\r?)$"
    r"|^[ ]{0,3}(?P<under>=+|-+)[ \t]*\r?$"
    r"|^[ ]{0,3}(?P<html><!--|<(?:pre|script|style|textarea)\b)"
    # What MkDocs calls an admonition, with its indented body.
    r"|^(?:!!!|\?\?\?\+?)[ ]+\w[^\n]*\n"
    r"(?P<body>(?:[ \t]*\r?\n)*(?:[ ]{4}[^\n]*(?:\n(?:[ \t]*\r?\n)*|\Z))+)",
    re.MULTILINE | re.IGNORECASE,
)
_NO_PARAGRAPH = re.compile(
    r"[ ]{0,3}(?:>|\#{1,6}(?:[ \t]|$)|(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)|[`~]{3}|<)|\t|[ ]{4}"
)


_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{0,500}\)")
_LONGEST_HEADING = 2_000
"""Most characters read of a heading."""

_LONGEST_PARAGRAPH = 10
"""Most lines of a paragraph that an underline makes a heading."""

_HTML_ENDS = {
    name: re.compile(f"</{name}>", re.IGNORECASE) for name in ("pre", "script", "style", "textarea")
} | {"!--": re.compile("-->")}


def outline_markdown(text: str) -> Outline:
    """Return ATX and setext headings outside of fences and HTML, and the fences and notes."""
    front = FRONT_MATTER.match(text)
    position = front.end() if front else 0
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    unclosed: dict[str, int] = {}
    while match := _MARKDOWN_LINE.search(text, position):
        position = match.end()
        if match["fence"]:
            end = _fence_end(text, match, unclosed)
            if end is not None:
                wholes.append((match.start(), end))
                position = end
        elif hashes := match["hashes"]:
            marks.append(Mark(match.start(), len(hashes), _heading_text(match["title"])))
        elif under := match["under"]:
            start = _paragraph_start(text, match.start(), marks)
            if start is not None:
                label = _make_label(text[start : match.start()])
                marks.append(Mark(start, 1 if under[0] == "=" else 2, label))
        elif match["body"]:
            wholes.append(match.span())
        else:
            position = _html_end(text, match)
    return Outline(marks=marks, wholes=wholes)


def _heading_text(title: str) -> str:
    """Return the text of an ATX heading without its closing hashes."""
    title = title.strip()
    bare = title.rstrip("#")
    return _make_label(bare if not bare or bare[-1] in " \t" else title) or "#"


def _make_label(text: str) -> str:
    """Return the text of a heading on one line, with links as their text."""
    return shorten_label(_LINK.sub(r"\1", text[:_LONGEST_HEADING]))


def _fence_end(text: str, opener: re.Match[str], unclosed: dict[str, int]) -> int | None:
    """Return the start of the line after the closing fence; None if the opener is not a fence.

    An unclosed fence runs to the end of the document, unless its opener is indented like code;
    then it is text. `unclosed` holds the shortest unclosed fence of each kind, so that no end
    is searched for twice.
    """
    fence = opener["fence"]
    nested = opener["indent"].strip(" ") != "" or len(opener["indent"]) > 3
    if nested and len(fence) >= unclosed.get(fence[0], len(text)):
        return None
    indent = r"[ \t]*" if nested else r"[ ]{0,3}"
    closer = re.compile(
        rf"^{indent}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?(?:\n|\Z)", re.MULTILINE
    )
    line_end = text.find("\n", opener.end())
    found = closer.search(text, line_end + 1) if line_end != -1 else None
    if found:
        return found.end()
    unclosed[fence[0]] = len(fence)
    return None if nested else len(text)


def _paragraph_start(text: str, underline: int, marks: list[Mark]) -> int | None:
    """Return the start of the paragraph above a setext underline; None without one."""
    floor = marks[-1].offset if marks else 0
    start = underline
    for _ in range(_LONGEST_PARAGRAPH + 1):
        if start <= floor:
            break
        previous = text.rfind("\n", 0, start - 1) + 1
        line = text[previous : start - 1]
        if not line.strip() or (marks and previous <= floor and text[floor] == "#"):
            break
        if _NO_PARAGRAPH.match(line):
            # After a list, a quotation or code, a line of dashes is a rule.
            return None
        start = previous
    else:
        return None
    return start if start < underline else None


def _html_end(text: str, opener: re.Match[str]) -> int:
    """Return the end of raw HTML: after the line with its closing tag."""
    closing = _HTML_ENDS[opener["html"][1:].lower()].search(text, opener.end())
    line_end = text.find("\n", closing.start()) if closing else -1
    return len(text) if line_end == -1 else line_end + 1
