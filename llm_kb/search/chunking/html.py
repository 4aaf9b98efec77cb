"""Finding headings and defined terms in HTML."""

from __future__ import annotations

import re
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

_LONGEST = 2000
"""Most characters read of a heading, including its tags."""


def outline_html(text: str) -> Outline:
    """Return the headings and terms of a page, outside scripts, preformatted text and comments."""
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
    return Outline(marks=marks, wholes=wholes)


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
