"""HTML as a tree, in linear time whatever the page: a page is hostile input.

The standard library's parser takes quadratic time on some malformed pages in
the Pythons we support. Here whatever is never closed ends with the page, as the
HTML standard has it, so every byte is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

MAX_DEPTH = 120
"""Deeper elements are taken for their parent: a bound for whoever walks the tree."""

MAX_ELEMENTS = 200_000
"""What comes after so many is taken for text of its parent: a bound for memory."""

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

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(c for c in reversed(element.children) if isinstance(c, Element))

    def text(self) -> str:
        """Return the text of this element and all below it."""
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)

    def classes(self) -> list[str]:
        """Return the names of its classes."""
        return self.attributes.get("class", "").split()


class _Token(NamedTuple):
    """A start tag (`attributes` is a dict), an end tag (None), or a text (no name)."""

    name: str
    attributes: dict[str, str] | None
    text: str = ""


def parse_html(text: str) -> Element:
    """Return the root of a page's tree; anything is a page."""
    root = Element("html")
    stack = [root]
    left = MAX_ELEMENTS
    for token in _tokens(text):
        if not token.name:
            stack[-1].children.append(unescape(token.text))
        elif token.attributes is None:
            _close(stack, token.name)
        else:
            _close_implied(stack, token.name)
            if token.name == "html" or not left:
                continue
            left -= 1
            element = Element(token.name, token.attributes)
            stack[-1].children.append(element)
            _mark_ancestors(stack, token.name)
            if token.name not in VOID and len(stack) < MAX_DEPTH:
                stack.append(element)
    return root


def _mark_ancestors(stack: list[Element], name: str) -> None:
    """Note in the open elements what they hold; each is marked once, so this is linear."""
    if name in BLOCKS:
        for element in reversed(stack):
            if element.holds_block:
                break
            element.holds_block = True
    if name in {"pre", "table"}:
        for element in reversed(stack):
            if element.holds_pre:
                break
            element.holds_pre = True


def _close(stack: list[Element], name: str) -> None:
    for depth in range(len(stack) - 1, 0, -1):
        if stack[depth].tag == name:
            del stack[depth:]
            return
        # An end tag reaches through open paragraphs and the like, not out of a table.
        if stack[depth].tag == "table" and name not in {"body", "html", "main", "article"}:
            return


def _close_implied(stack: list[Element], name: str) -> None:
    if name in BLOCKS and stack[-1].tag == "p":
        stack.pop()
    ended = _ENDS.get(name)
    if not ended:
        return
    for depth in range(len(stack) - 1, 0, -1):
        if stack[depth].tag in _BOUNDARIES:
            return
        if stack[depth].tag in ended:
            above = stack[depth - 1].tag
            if above not in ended or above in _BOUNDARIES:
                del stack[depth:]
                return


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a page; what is never closed takes the rest of it."""
    position = 0
    while (start := text.find("<", position)) != -1:
        found = _TAG.match(text, start)
        if not found:
            end = _skip_declaration(text, start)
            # A lone `<` is a text.
            yield _Token("", None, text[position : start if end else start + 1])
            position = end or start + 1
            continue
        if start > position:
            yield _Token("", None, text[position:start])
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
    yield _Token("", None, text[position:])


def _skip_declaration(text: str, start: int) -> int:
    """Return where a comment, doctype or instruction ends; 0 when none starts here."""
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return len(text) if end == -1 else end + 3
    if text.startswith(("<!", "<?", "</"), start):
        end = text.find(">", start)
        return len(text) if end == -1 else end + 1
    return 0


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
        attributes.setdefault(found[1].lower(), unescape(value))
        position = found.end()
    return attributes, length
