"""The tree of a web page. Pure.

The standard library's parser takes quadratic time on some malformed pages in
the Pythons we support. Here an element that is never closed ends with the page, as
the HTML standard has it, so every byte is looked at a bounded number of times.
What an element contains is noted while it is open: nothing is searched for at each level.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import TypeGuard

MAX_DEPTH = 120
"""Deepest nesting parsed; deeper elements become text of their parent."""

GROUPING_DEPTH = 100
"""Deepest nesting of elements that only group or format; the content of deeper ones is their
parent's. So on pages that leave such elements open, headings and code stay what they are."""

MAX_ELEMENTS = 75_000
"""Most elements parsed; the text of later ones becomes text of their parent."""

MAX_ATTRIBUTES = 100
"""Most attributes of an element that are kept."""

VOID = frozenset(
    """
    area base br col embed hr img input link meta param source track wbr
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol
    p pre search section summary table ul xmp
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
TEXT = "#text"
"""What an element with words in it is noted to contain, like the name of a tag."""

END_OF_STREAMED = "/$"
"""The id of a template that stands for React's comment behind what is shown meanwhile."""

WORDS = "#words"
"""The same for text other than digits and blanks, which a column of line numbers lacks."""

_NOTED = BLOCKS | {TEXT, WORDS, "math", "br"}
_NUMBERS = re.compile(r"[\d\s]*")
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
# A block ends an open paragraph, also through what is open inside it, up to one of these.
_PARAGRAPH_BOUNDARIES = frozenset({"table", "td", "th", "caption", "button", "object", "template"})
_GROUPING = frozenset(
    """
    a abbr article b bdi bdo big center cite del div em fieldset figure font header i ins mark s
    section small span strong sub sup tt u
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_STATED = frozenset({"aria-hidden", "hidden", "role", "style"})
"""Attributes that make an element more than a group."""

# A tag, or what begins a comment, a doctype or an instruction. A `<` before anything else is text.
_MARKUP = re.compile(r"<(?:(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*)|[/!?])")
_ATTRIBUTE = re.compile(
    r"""(?P<end>>)|(?P<name>[^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']*)))?"""
)
# Python turns digits into a number, and refuses over 4,300 of them.
_LONG_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


class PageTooComplexError(ValueError):
    """A page whose Markdown would be many times its size."""


@dataclass(slots=True)
class Element:
    """An element, its attributes, and its children in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)
    inside: frozenset[str] = frozenset()
    """The tags of the blocks below it, and `TEXT` if there are words."""

    def nodes(self) -> Iterator[Element | str]:
        """Yield this element, and all elements and texts below it, in document order."""
        stack: list[Element | str] = [self]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, Element):
                stack.extend(reversed(node.children))

    def elements(self) -> list[Element]:
        """Return the children that are elements."""
        return [child for child in self.children if isinstance(child, Element)]

    def all_elements(self) -> Iterator[Element]:
        """Yield this element and all below it, in document order."""
        return (node for node in self.nodes() if isinstance(node, Element))

    def find(self, *tags: str) -> Iterator[Element]:
        """Yield the elements of these tags: this one and all below it."""
        return (e for e in self.all_elements() if e.tag in tags)

    def find_outermost(self, tag: str) -> list[Element]:
        """Return the elements of a tag that are in no other one of it, in document order."""
        if self.tag == tag:
            return [self]
        return [found for child in self.elements() for found in child.find_outermost(tag)]

    def holds(self, tags: Collection[str]) -> bool:
        """Tell whether a block with one of these tags, or text, is below this element."""
        return not self.inside.isdisjoint(tags)

    def text(self) -> str:
        """Return the text of this element and all below it."""
        return "".join(node for node in self.nodes() if isinstance(node, str))

    def line(self) -> str:
        """Return that text in one line."""
        return " ".join(self.text().split())

    def peek(self, most: int = 80) -> str:
        """Return that line; empty if there are more characters, or very many elements."""
        parts: list[str] = []
        stack = [iter(self.children)]
        for _ in range(4 * most):
            node = next(stack[-1], None)
            if isinstance(node, Element):
                stack.append(iter(node.children))
            elif node is not None:
                parts.append(node[: 4 * most])
            else:
                stack.pop()
            if not stack:
                line = " ".join("".join(parts).split())
                return line if len(line) <= most else ""
        return ""

    def classes(self) -> list[str]:
        """Return the names of its classes."""
        return self.attributes.get("class", "").split()


def has_style(element: Element, *styles: str) -> bool:
    """Tell whether an element's own style has one of these declarations."""
    style = element.attributes.get("style", "").replace(" ", "").lower()
    return bool(style) and any(
        part.removesuffix("!important") in styles for part in style.split(";")
    )


def is_hidden(element: Element) -> bool:
    """Tell whether an element is hidden, and no panel that a reader can open."""
    attributes = element.attributes
    # Panels of tabs and accordions count as visible, though most are hidden at first.
    is_panel = attributes.get("role") == "tabpanel" or attributes.get("hidden") == "until-found"
    if attributes.get("aria-hidden") == "true":
        return not is_panel
    return not is_panel and ("hidden" in attributes or has_style(element, "display:none"))


def is_template(node: Element | str) -> TypeGuard[Element]:
    """Tell whether a node is a template."""
    return isinstance(node, Element) and node.tag == "template"


def parse_html(text: str, most: int = MAX_ELEMENTS) -> Element:
    """Return the root of a page's tree of at most so many elements, without NUL characters."""
    text = text.replace("\0", "")
    tree = _Tree(most)
    position = 0
    while found := _MARKUP.search(text, position):
        tree.add_text(text[position : found.start()])
        if not found["name"]:
            if text.startswith("<!--/$-->", found.start()):
                tree.end_streamed()
            position = _skip_declaration(text, found.start())
            continue
        name = found["name"].lower()
        attributes, position = _read_attributes(text, found.end())
        if found["end"]:
            tree.close(name)
            continue
        tree.open(name, attributes)
        if name in _RAW:
            end = _find_end_tag(text, name, position)
            tree.add_text(text[position:end])
            tree.close(name)
            position = end
    tree.add_text(text[position:])
    return tree.root


class _Tree:
    """The tree of a page during parsing; an element that is not closed ends with the page."""

    def __init__(self, most: int) -> None:
        self.root = Element("html")
        self._open = [self.root]
        self._places: dict[str, list[int]] = {}
        """The places of the open elements, by their tags; the root is not among them."""
        self._left = most
        self._merged: dict[str, int] = {}
        """How many open elements of a tag are part of their parents, being too deep."""

    def add_text(self, text: str) -> None:
        """Add a text to the innermost open element."""
        if text:
            self._open[-1].children.append(_unescape(text))
            if not text.isspace():
                self._note(TEXT)
            if not _NUMBERS.fullmatch(text):
                self._note(WORDS)

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element, and close those that its start tag ends."""
        self._end_open(name)
        if name == "html" or not self._left or self._merge(name, attributes):
            return
        self._left -= 1
        element = Element(name, attributes)
        self._open[-1].children.append(element)
        self._note(name)
        if name not in VOID and len(self._open) < MAX_DEPTH:
            self._places.setdefault(name, []).append(len(self._open))
            self._open.append(element)

    def end_streamed(self) -> None:
        """Note where what is shown until a streamed part arrives ends."""
        self._open[-1].children.append(Element("template", {"id": END_OF_STREAMED}))

    def _end_open(self, name: str) -> None:
        """Close the elements that a start tag ends."""
        paragraph = self._find({"p"}) if name in BLOCKS else 0
        if paragraph and paragraph > self._find(_PARAGRAPH_BOUNDARIES):
            self._cut(paragraph)
        if self._open[-1].tag == name == "a":
            self._cut(len(self._open) - 1)
        ended = _ENDS.get(name, frozenset())
        depth = self._find(ended)
        if depth and depth > self._find(_BOUNDARIES):
            while self._open[depth - 1].tag in ended:
                depth -= 1
            self._cut(depth)

    def _merge(self, name: str, attributes: dict[str, str]) -> bool:
        """Make an element part of its parent if it is too deep and only groups."""
        if len(self._open) < GROUPING_DEPTH or name not in _GROUPING or attributes.keys() & _STATED:
            return False
        self._merged[name] = self._merged.get(name, 0) + 1
        self.add_text("\n" if name in BLOCKS else "")
        return True

    def close(self, name: str) -> None:
        """Close the innermost open element with a name, if there is one, and those inside it."""
        if self._merged.get(name):
            self._merged[name] -= 1
            self.add_text("\n" if name in BLOCKS else "")
            return
        depth = self._find({name})
        # An end tag reaches through open paragraphs and the like, not out of a table; that of an
        # item not out of its list.
        reaches_far = name in {"body", "html", "main", "article", "table"}
        scope = {"table", "ul", "ol"} if name == "li" else {"table"}
        if depth and (reaches_far or depth > self._find(scope)):
            self._cut(depth)

    def _note(self, name: str) -> None:
        """Note what the open elements contain; each notes a name once."""
        for element in reversed(self._open if name in _NOTED else ()):
            if name in element.inside:
                break
            element.inside |= {name}

    def _cut(self, depth: int) -> None:
        """Close the elements from a place on."""
        while len(self._open) > depth:
            self._places[self._open.pop().tag].pop()
        if depth < GROUPING_DEPTH:
            self._merged.clear()

    def _find(self, names: Collection[str]) -> int:
        """Return the place of the innermost open element with one of these names; 0 without one."""
        found = (places[-1] for name in names if (places := self._places.get(name)))
        return max(found, default=0)


def _unescape(text: str) -> str:
    """Return a text with character references replaced; overlong ones become U+FFFD."""
    return unescape(_LONG_REFERENCE.sub("\ufffd", text))


def _skip_declaration(text: str, start: int) -> int:
    """Return where a comment, doctype or instruction ends; at the latest with the page."""
    mark, begin = ("-->", start + 4) if text.startswith("<!--", start) else (">", start)
    end = text.find(mark, begin)
    return len(text) if end == -1 else end + len(mark)


def _find_end_tag(text: str, name: str, position: int) -> int:
    found = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.IGNORECASE).search(text, position)
    return found.start() if found else len(text)


def _read_attributes(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return a tag's attributes and where the tag ends.

    A value whose quote is never closed ends at the next blank or `>`, so that every character
    is read once.
    """
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(text, position):
        if found["end"]:
            return attributes, found.end()
        value = next((v for v in found.groups()[2:] if v is not None), "")
        if len(attributes) < MAX_ATTRIBUTES:
            attributes.setdefault(found["name"].lower(), _unescape(value))
    return attributes, len(text)
