"""HTML as a tree, in linear time whatever the page: a page is hostile input.

The standard library's parser takes quadratic time on some malformed pages in
the Pythons we support. Here an element that is never closed ends with the page, as
the HTML standard has it, so every byte is looked at a bounded number of times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

MAX_DEPTH = 120
"""Deepest nesting parsed; deeper elements become text of their parent."""

MAX_ELEMENTS = 200_000
"""Elements parsed; the text of later ones is that of their parent."""

PAGE_SECONDS = 20.0
"""Processor time that one page may take; the largest pages allowed take about five."""

ADDED_PER_CHARACTER = 5
"""Characters of markup (links, quotes, indents) that Markdown may have for each of the page."""

VOID = frozenset(
    """
    area base br col embed hr img input link meta param source track wbr
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html li main menu nav ol p pre
    section summary table ul
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
# A start tag on the left ends an open element on the right, up to a boundary.
_ENDS: dict[str, frozenset[str]] = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "tr": frozenset({"tr", "td", "th"}),
    "td": frozenset({"td", "th"}),
    "th": frozenset({"td", "th"}),
    "tbody": frozenset({"thead", "tbody", "tr", "td", "th"}),
    "thead": frozenset({"caption", "colgroup"}),
    "option": frozenset({"option"}),
}
_BOUNDARIES = frozenset({"ul", "ol", "dl", "table", "select"})

_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_OPENING = re.compile(r"<(?=[a-zA-Z/!?])")
# Python turns digits into a number, and refuses over 4,300 of them.
_LONG_REFERENCE = re.compile(r"&#(?:([0-9]{8,})|[xX]([0-9a-fA-F]{8,}));?")
_ATTRIBUTE = re.compile(r"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?""")


class PageTooComplexError(ValueError):
    """A page that takes more time or memory than its size can explain."""


class Budget:
    """What one page may cost: processor time, and markup that is added to its text."""

    def __init__(self, size: int) -> None:
        self._characters = ADDED_PER_CHARACTER * size + 100_000
        self._end = time.thread_time() + PAGE_SECONDS
        self._steps = 0

    def step(self) -> None:
        """Count a step of work; raise PageTooComplexError when the time is over."""
        self._steps += 1
        if not self._steps % 256 and time.thread_time() > self._end:
            raise PageTooComplexError(f"it takes over {PAGE_SECONDS:g} s of processor time")

    def add(self, characters: int) -> None:
        """Count added markup; raise PageTooComplexError when it is out of proportion."""
        self.step()
        self._characters -= characters
        if self._characters < 0:
            raise PageTooComplexError("as Markdown it would be many times its size")


@dataclass(slots=True)
class Element:
    """An element, its attributes, and its children in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(c for c in reversed(element.children) if isinstance(c, Element))

    def find(self, *tags: str) -> Iterator[Element]:
        """Yield the elements of these tags: this one and all below it."""
        return (element for element in self.walk() if element.tag in tags)

    def holds(self, tags: Collection[str]) -> bool:
        """Tell whether an element of one of these tags is somewhere below."""
        return any(element.tag in tags for element in self.walk() if element is not self)

    def text(self) -> str:
        """Return the text of this element and all below it."""
        parts: list[str] = []
        stack: list[Element | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            else:
                stack.extend(reversed(node.children))
        return "".join(parts)

    def line(self) -> str:
        """Return that text in one line."""
        return " ".join(self.text().split())

    def classes(self) -> list[str]:
        """Return the names of its classes."""
        return self.attributes.get("class", "").split()


class _Token(NamedTuple):
    """A start tag (`attributes` is a dict), an end tag (None), or a text (no name)."""

    name: str
    attributes: dict[str, str] | None
    text: str = ""


def parse_html(text: str, budget: Budget | None = None) -> Element:
    """Return the root of a page's tree; anything is a page. Raises PageTooComplexError."""
    budget = budget or Budget(len(text))
    root = Element("html")
    open_elements = [root]
    left = MAX_ELEMENTS
    for token in _tokens(text):
        budget.step()
        if not token.name:
            open_elements[-1].children.append(_unescape(token.text))
        elif token.attributes is None:
            _close(open_elements, token.name)
        else:
            _close_implied(open_elements, token.name)
            if token.name == "html" or not left:
                continue
            left -= 1
            element = Element(token.name, token.attributes)
            open_elements[-1].children.append(element)
            if token.name not in VOID and len(open_elements) < MAX_DEPTH:
                open_elements.append(element)
    return root


def _close(open_elements: list[Element], name: str) -> None:
    """Close the innermost element of a name, if there is one, and all within it."""
    depth = _find_open(open_elements, {name})
    # An end tag reaches through open paragraphs and the like, not out of a table; that of an item
    # not out of its list.
    reaches_far = name in {"body", "html", "main", "article", "table"}
    scope = {"table", "ul", "ol"} if name == "li" else {"table"}
    if depth and (reaches_far or depth > _find_open(open_elements, scope)):
        del open_elements[depth:]


def _close_implied(open_elements: list[Element], name: str) -> None:
    """Close the elements that a start tag ends."""
    if name in BLOCKS and open_elements[-1].tag == "p":
        open_elements.pop()
    ended = _ENDS.get(name, frozenset())
    depth = _find_open(open_elements, ended) if ended else 0
    if depth and depth > _find_open(open_elements, _BOUNDARIES):
        while open_elements[depth - 1].tag in ended:
            depth -= 1
        del open_elements[depth:]


def _find_open(open_elements: list[Element], names: Collection[str]) -> int:
    """Return the place of the innermost open element of these names; 0 without one."""
    place = len(open_elements) - 1
    while place and open_elements[place].tag not in names:
        place -= 1
    return place


def _unescape(text: str) -> str:
    """Replace character references; one that is too long for any character by U+FFFD."""
    return unescape(_LONG_REFERENCE.sub(_shorten_reference, text))


def _shorten_reference(found: re.Match[str]) -> str:
    digits = (found[1] or found[2]).lstrip("0") or "0"
    return "\ufffd" if len(digits) > 7 else f"&#{'' if found[1] else 'x'}{digits};"


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a page; what is never closed takes the rest of it."""
    position = 0
    # A `<` before anything else is text.
    while opening := _OPENING.search(text, position):
        start = opening.start()
        if start > position:
            yield _Token("", None, text[position:start])
        found = _TAG.match(text, start)
        if not found:
            position = _skip_declaration(text, start)
            continue
        name = found[1].lower()
        attributes, position = _attributes(text, found.end())
        if text.startswith("</", start):
            yield _Token(name, None)
            continue
        yield _Token(name, attributes)
        if name in _RAW:
            end = _find_end_tag(text, name, position)
            yield _Token("", None, text[position:end])
            yield _Token(name, None)
            position = end
    if position < len(text):
        yield _Token("", None, text[position:])


def _skip_declaration(text: str, start: int) -> int:
    """Return where a comment, doctype or instruction ends: with the page if nowhere before."""
    mark, begin = ("-->", start + 4) if text.startswith("<!--", start) else (">", start)
    end = text.find(mark, begin)
    return len(text) if end == -1 else end + len(mark)


def _find_end_tag(text: str, name: str, position: int) -> int:
    found = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.IGNORECASE).search(text, position)
    return found.start() if found else len(text)


def _attributes(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return a tag's attributes and where the tag ends.

    A quote that is never closed is ordinary text of an attribute: it stops at the
    next blank or `>`, and every character is passed once.
    """
    attributes: dict[str, str] = {}
    length = len(text)
    while position < length:
        if text[position] == ">":
            return attributes, position + 1
        found = _ATTRIBUTE.match(text, position)
        if not found:
            position += 1
            continue
        value = next((v for v in found.group(2, 3, 4) if v is not None), "")
        attributes.setdefault(found[1].lower(), _unescape(value))
        position = found.end()
    return attributes, length
