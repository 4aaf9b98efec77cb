"""HTML as a tree, in linear time whatever the page: a page is hostile input.

The standard library's parser takes quadratic time on some malformed pages in
the Pythons we support. Here an element that is never closed ends with the page, as
the HTML standard has it, so every byte is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from llm_kb.references.sources.html.budget import Budget

MAX_DEPTH = 120
"""Deepest nesting parsed; deeper elements become text of their parent."""

MAX_ELEMENTS = 200_000
"""Elements parsed; the text of later ones is that of their parent."""

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

HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_OPENING = re.compile(r"<(?=[a-zA-Z/!?])")
# Python turns digits into a number, and refuses over 4,300 of them.
_LONG_REFERENCE = re.compile(r"&#(?:([0-9]{8,})|[xX]([0-9a-fA-F]{8,}));?")
_ATTRIBUTE = re.compile(r"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?""")


@dataclass(slots=True)
class Element:
    """An element, its attributes, and its children in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)
    holds_block: bool = False
    """Whether a block is somewhere below, as in a link around a card."""
    holds_pre: bool = False
    """Whether preformatted text or a table is somewhere below."""
    holds_heading: bool = False
    """Whether a heading is somewhere below."""

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(c for c in reversed(element.children) if isinstance(c, Element))

    def text(self) -> str:
        """Return the text of this element and all below it."""
        return "".join(self._texts())

    def _texts(self) -> Iterator[str]:
        stack: list[Element | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                yield node
            else:
                stack.extend(reversed(node.children))

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
    open_elements = _OpenElements(root)
    left = MAX_ELEMENTS
    for token in _tokens(text):
        budget.step()
        if not token.name:
            open_elements.last.children.append(_unescape(token.text))
        elif token.attributes is None:
            open_elements.close(token.name)
        else:
            open_elements.close_implied(token.name)
            if token.name == "html" or not left:
                continue
            left -= 1
            element = Element(token.name, token.attributes)
            open_elements.last.children.append(element)
            _mark_ancestors(open_elements.stack, token.name)
            if token.name not in VOID:
                open_elements.open(element)
    return root


def _unescape(text: str) -> str:
    """Replace character references; one that is too long for any character by U+FFFD."""
    return unescape(_LONG_REFERENCE.sub(_shorten_reference, text))


def _shorten_reference(found: re.Match[str]) -> str:
    digits = (found[1] or found[2]).lstrip("0") or "0"
    return "\ufffd" if len(digits) > 7 else f"&#{'' if found[1] else 'x'}{digits};"


def _mark_ancestors(stack: list[Element], name: str) -> None:
    """Note in the open elements what they hold; each is marked once, so this is linear."""
    if name in BLOCKS:
        for element in reversed(stack):
            if element.holds_block:
                break
            element.holds_block = True
    if name in HEADINGS:
        for element in reversed(stack):
            if element.holds_heading:
                break
            element.holds_heading = True
    if name in {"pre", "table"}:
        for element in reversed(stack):
            if element.holds_pre:
                break
            element.holds_pre = True


class _OpenElements:
    """The elements that are open, innermost last, each found by its name in constant time."""

    def __init__(self, root: Element) -> None:
        self.stack = [root]
        self._depths: dict[str, list[int]] = {}

    @property
    def last(self) -> Element:
        """The innermost open element."""
        return self.stack[-1]

    def open(self, element: Element) -> None:
        """Open an element, unless it is too deep."""
        if len(self.stack) < MAX_DEPTH:
            self._depths.setdefault(element.tag, []).append(len(self.stack))
            self.stack.append(element)

    def close(self, name: str) -> None:
        """Close the innermost element of a name, if there is one, and all within it."""
        depth = self._deepest((name,))
        # An end tag reaches through open paragraphs and the like, not out of a table.
        if depth and (
            name in {"body", "html", "main", "article"}
            or name == "table"
            or depth > self._deepest(("table",))
        ):
            self._close_from(depth)

    def close_implied(self, name: str) -> None:
        """Close the elements that a start tag ends."""
        if name in BLOCKS and self.last.tag == "p":
            self._close_from(len(self.stack) - 1)
        ended = _ENDS.get(name)
        depth = self._deepest(ended) if ended else 0
        if ended and depth > self._deepest(_BOUNDARIES):
            while self.stack[depth - 1].tag in ended:
                depth -= 1
            self._close_from(depth)

    def _deepest(self, names: Iterable[str]) -> int:
        """Return the depth of the innermost open element of these names; 0 without one."""
        return max((self._depths[name][-1] for name in names if self._depths.get(name)), default=0)

    def _close_from(self, depth: int) -> None:
        for element in reversed(self.stack[depth:]):
            self._depths[element.tag].pop()
        del self.stack[depth:]


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
