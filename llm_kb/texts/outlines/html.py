"""Finding headings and defined terms in HTML, and where a page's own text is."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence
from html import unescape

from llm_kb.texts.document import LONGEST_HEADING, Document, Mark, make_document, shorten_title
from llm_kb.texts.markup import TAG

_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|textarea)(?![\w-])[^<>]*(?<!/)>.*?(?:</\1(?![\w-])[^<>]*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(
    r"<(?P<name>h[1-6]|dt)(?![\w-])[^<>]{0,2000}>"
    # Or preformatted text, where tags are examples.
    r"|(?:<pre(?![\w-])[^<>]{0,2000}>.*?(?:</pre(?![\w-])[^<>]{0,100}>|\Z)"
    # Or a paragraph, an item or a row, with no other block inside.
    r"|<(?P<block>p|li|tr)(?![\w-])[^<>]{0,2000}>"
    r"[^<]*(?:<(?!/?(?:p|li|tr|div|h[1-6]|[ou]l|d[ltd]|table|pre)\b)[^<]*){0,2000}</(?P=block)>)"
    r"[ \t]*(?:\r?\n)?",
    re.IGNORECASE | re.DOTALL,
)
_DEPTHS = {**{f"h{depth}": depth for depth in range(1, 7)}, "dt": 7}
"""Depth of each tag that names a section; defined terms are below all headings."""

_PERMALINK = re.compile(r"(?<!\s)(?:\s*[\u00b6\u00a7\U0001f517]|\s+#)\s*\Z")
"""The sign of a heading's link to itself."""

_BODY = re.compile(r"<body\b", re.IGNORECASE)
_MAIN = re.compile(
    r"<(main(?![\w-])"
    r"|(?:div|section|article|td)(?=\s[^<>]{0,1000}?(?<=\s)(?:role=[\"']?main"
    r"|id=[\"']?(?:(?:main|page|body|article|doc)[-_]?)?(?:content|main)"
    r"|id=[\"']?_?footnotes)[\"'\s>]))",
    re.IGNORECASE,
)
"""The start of a main element, or of the footnotes that AsciiDoctor puts below it."""

_TITLE = re.compile(r"<svg\b|<title\b[^<>]{0,100}>([^<{]{1,500})</title", re.IGNORECASE)
_SHOWN_CODE = re.compile(
    r"<(pre|code|kbd|samp|tt)(?![\w-])[^<>]*>.*?(?:</\1(?![\w-])|\Z)", re.IGNORECASE | re.DOTALL
)
_ANCHOR = re.compile(r"\s(?:id|name)=[\"']?([\w.:-]{1,200})", re.IGNORECASE)
_NAMED = re.compile(r"\s*<a\s[^<>]{0,200}?\b(?:id|name)=[\"']?([\w.:-]{1,200})", re.IGNORECASE)
_CLOSINGS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in _DEPTHS}
_TEMPLATE = re.compile(r"\{[{%]|<[?%](?!xml)")


def outline_html(text: str) -> Document:
    """Return the headings and terms of a page, outside scripts, preformatted text and comments.

    A page whose own text has no `h1` is named by its title.
    """
    # Spaces in place of what is hidden keep all offsets.
    shown = _HIDDEN.sub(lambda match: " " * len(match[0]), text)
    marks: list[Mark] = []
    wholes: list[tuple[int, int]] = []
    tags = ClosingTags(shown)
    position = 0
    while match := _PART.search(shown, position):
        position = match.end()
        name = (match["name"] or "").lower()
        if not name:
            wholes.append(match.span())
            continue
        end = tags.find(name, position)
        if title := read_title(shown, position, end):
            anchor = find_own_anchor(match[0], shown[position:end])
            marks.append(Mark(match.start(), _DEPTHS[name], title, anchor))
            position = end
    start, end = _find_own_text(shown, marks)
    if not any(mark.depth == 1 and start <= mark.offset < end for mark in marks):
        named = _TITLE.search(shown, 0, marks[0].offset if marks else len(text))
        if named and named[1]:
            insort(marks, Mark(start, 1, shorten_title(unescape(named[1]))))
    return make_document(text, marks, wholes)._replace(start=start, end=end)


class ClosingTags:
    """Where elements end: the next closing tag of a name, for which no character is read twice."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next: dict[str, int] = {}

    def find(self, name: str, start: int) -> int:
        """Return the offset of the next closing tag, or the end of the text."""
        if self._next.get(name, -1) < start:
            found = _CLOSINGS[name].search(self._text, start)
            self._next[name] = found.start() if found else len(self._text)
        return self._next[name]


def read_title(text: str, start: int, end: int) -> str:
    """Return the words between a heading's tags; empty if it is too long, or not closed."""
    if end - start > LONGEST_HEADING or end == len(text):
        return ""
    title = unescape(TAG.sub("", text[start:end]))
    return shorten_title(_PERMALINK.sub("", title))


def find_own_anchor(opening: str, inner: str) -> str:
    """Return the anchor that a heading's tag sets, or a link in it; empty if none does."""
    found = _ANCHOR.search(opening) or _NAMED.match(inner[:LONGEST_HEADING])
    return found[1].lower() if found else ""


def _find_own_text(text: str, marks: Sequence[Mark]) -> tuple[int, int]:
    """Return the span of a page without its head, menus and footer.

    That is its main element with the title above it, else its body. A template is source code,
    and a page without headings may be anything: both are their own text.
    """
    if not marks or _TEMPLATE.search(_SHOWN_CODE.sub("", text)):
        return 0, len(text)
    body = _BODY.search(text, 0, marks[0].offset)
    start = body.start() if body else 0
    main = _find_main(text, marks)
    # An element with less than half of the text is something else, such as a place for scripts.
    if main and _count_shown(text[slice(*main)]) * 2 >= _count_shown(text[start:]):
        return main
    return start, len(text)


def _find_main(text: str, marks: Sequence[Mark]) -> tuple[int, int] | None:
    """Return the span from the first main element, or a title above it, to the end of the last."""
    if not (main := _MAIN.search(text)):
        return None
    start = end = main.start()
    while main:
        end = _find_end(text, main)
        main = _MAIN.search(text, end)
    titles = [mark.offset for mark in marks if mark.depth == 1 and mark.offset < end]
    above = [offset for offset in titles if offset < start]
    return (above[-1] if above and above == titles else start), end


def _find_end(text: str, opening: re.Match[str]) -> int:
    """Return the end of an element that may hold others of its name, else that of the text."""
    depth = 0
    tags = re.compile(rf"<(/?){opening[1]}(?![\w-])[^<>]{{0,2000}}>", re.IGNORECASE)
    for tag in tags.finditer(text, opening.start()):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.end()
    return len(text)


def _count_shown(text: str) -> int:
    """Return the number of characters of a text outside its tags, without spaces."""
    return sum(map(len, TAG.sub("", text).split()))
