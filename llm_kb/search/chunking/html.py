"""Finding headings and defined terms in HTML, and where a page's own text is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

from llm_kb.search.chunking.documents import Mark, Outline, shorten_label

_TAG = re.compile(
    r"<(?P<closing>/?)(?P<name>h[1-6]|dt|script|style|textarea|pre)\b[^<>]{0,2000}>|(?P<comment><!--)",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_DEPTHS = {**{f"h{depth}": depth for depth in range(1, 7)}, "dt": 7}
"""Depth of each tag that names a section; defined terms are below all headings."""

_PERMALINK = re.compile(r"\s*[\u00b6\u00a7\U0001f517]\s*\Z|\s+#\s*\Z")
"""The sign of a heading's link to itself."""

_BODY = re.compile(r"<body\b", re.IGNORECASE)
_MAIN = re.compile(
    r"<(main|(?:div|section|article|td)(?=\s[^<>]{0,1000}?(?:\brole=[\"']?main\b"
    r"|\bid=[\"']?(?:(?:main|page|body|article|doc)[-_]?)?(?:content|main)[\"'\s>])))\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title\b[^<>]{0,100}>([^<]{1,500})</title", re.IGNORECASE)
_BLOCK = re.compile(
    # A paragraph, an item or a row, with no other block inside.
    r"<(p|li|tr)\b[^<>]{0,2000}>"
    r"[^<]*(?:<(?!/?(?:p|li|tr|div|h[1-6]|[ou]l|d[ltd]|table|pre)\b)[^<]*)*</\1>[ \t]*\n?",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\{[{%]|<[?%](?!xml)")

_LONGEST = 2000
"""Most characters read of a heading, including its tags."""


def outline_html(text: str) -> Outline:
    """Return the headings and terms of a page, outside scripts, preformatted text and comments.

    A page that has no `h1` is named by its title.
    """
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    position = 0
    while match := _TAG.search(text, position):
        position = match.end()
        name = (match["name"] or "").lower()
        if match["comment"]:
            position = text.find("-->", position)
        elif match["closing"]:
            continue
        elif name in _DEPTHS:
            title = _read_title(text, position, name)
            if title:
                marks.append(Mark(match.start(), _DEPTHS[name], title))
        else:
            position = _find_closing(text, position, name)
            if position != -1:
                wholes.append((match.start(), position))
        if position == -1:
            break
    start, end = _find_own_text(text, marks)
    inside = [mark for mark in marks if start <= mark.offset < end]
    named = _TITLE.search(text, 0, start)
    if named and not any(mark.depth == 1 for mark in inside):
        inside.insert(0, Mark(start, 1, shorten_label(unescape(named[1]))))
    wholes += [match.span() for match in _BLOCK.finditer(text, start, end)]
    return Outline(marks=inside, wholes=sorted(wholes), start=start, end=end)


def _find_own_text(text: str, marks: Sequence[Mark]) -> tuple[int, int]:
    """Return the span of a page without its head, menus and footer.

    That is its main element with the headings above it, else its body. A template is source code,
    and a page without headings may be anything: both are their own text.
    """
    whole = 0, len(text)
    first = next((mark.offset for mark in marks), None)
    if first is None or _TEMPLATE.search(text):
        return whole
    if main := _MAIN.search(text):
        start, end = min(first, main.start()), _find_end(text, main)
        if sum(start <= mark.offset < end for mark in marks) * 2 >= len(marks):
            return start, end
    body = _BODY.search(text, 0, first)
    return body.start() if body else 0, len(text)


def _find_end(text: str, opening: re.Match[str]) -> int:
    """Return the end of an element that may hold others of its name, else that of the text."""
    depth = 0
    name = re.escape(opening[1])
    for tag in re.compile(
        rf"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script|\Z)|<(/?){name}\b[^<>]{{0,2000}}>",
        re.IGNORECASE | re.DOTALL,
    ).finditer(text, opening.start()):
        if tag[1] is not None:
            depth += -1 if tag[1] else 1
            if not depth:
                return tag.end()
    return len(text)


def _read_title(text: str, start: int, name: str) -> str:
    """Return the words between a heading's tags; empty if it is not closed."""
    inner = text[start : start + _LONGEST]
    end = inner.lower().find(f"</{name}")
    title = unescape(_ANY_TAG.sub("", inner[: max(end, 0)]))
    return shorten_label(title[:-20] + _PERMALINK.sub("", title[-20:]))


def _find_closing(text: str, start: int, name: str) -> int:
    """Return the end of an element; -1 if it is not closed."""
    match = re.compile(rf"</{name}\b[^<>]{{0,100}}>", re.IGNORECASE).search(text, start)
    return match.end() if match else -1
