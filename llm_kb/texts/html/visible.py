"""What a reader sees of a web page: its tree without controls and what is hidden. Pure.

Generators hide content (panels of tabs), put it into controls (headings in buttons), and add
what is none (links of headings to themselves, numbers of lines, copy buttons).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_kb.texts.html.code import is_code, is_copy_button, is_line_number, read_code
from llm_kb.texts.html.formulas import as_tex, formula_text
from llm_kb.texts.html.tabs import find_tabs
from llm_kb.texts.html.tree import BLOCKS, HEADINGS, TEXT, WORDS, Element, is_hidden
from llm_kb.texts.safe import INVISIBLE

_NEVER = frozenset(
    """
    script style template noscript svg iframe object canvas audio video map head title link meta
    input
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_CONTROLS = frozenset({"nav", "form", "button", "select", "textarea", "dialog", "menu", "search"})
_CONTROL_ROLES = frozenset({"navigation", "search", "banner", "contentinfo", "dialog", "menu"})
_TITLES = HEADINGS | {"summary", "caption", "figcaption", "legend", "dt"}
_NAMED = _TITLES | {"th", "td", "li"}
"""Elements that keep the text of controls where they have no other."""
_IN_NAMED = frozenset({"div", "p", "nav", "header", "section"})
"""Blocks inside which a control may still be all that such an element has."""

_PERMALINK = re.compile(
    r"anchor|perma-?link|(?:header|heading|hash|self)-?link|idlink|link-?icon", re.IGNORECASE
)
_SIGNS = frozenset("¶#§◆◇🔗⚓∞⛓🔖⌗↩⤴")
"""Texts of links to a heading from itself, and from a footnote back."""
_UNSEEN = re.compile(rf"[\s{INVISIBLE}]+")
_PERMALINK_WORDS = re.compile(
    r"(?:link|anchor|heading anchor|anchor link|permalink|permanent link|direct link|copy link)"
    r"|(?:permalink|permanent link|direct link|link|anchor) (?:to|for|of) .*|section titled .*",
    re.IGNORECASE,
)
_SOURCES = frozenset({"[source]", "[docs]", "[src]"})
_UNREAD = re.compile(
    r"(?:^|[-_ ])(?:sr-only|visually-?hidden|screen-?reader-text)(?: |$)", re.IGNORECASE
)
_FOOTER = re.compile(r"foot|meta|nav|edit|share|tags", re.IGNORECASE)
_CONTROL = "#control"
"""The tag of a control until it is known whether its text is needed."""


def find_visible(root: Element) -> Element:
    """Return the visible part of a page, or of an element of it, as a tree of its own."""
    return _Reader(root).read(root)


class _Reader:
    """Copies the visible part of a tree."""

    def __init__(self, root: Element) -> None:
        self._tabs = find_tabs(root)
        self._wrappers = _find_wrappers(root)
        self._contents = _find_contents(root)

    def read(self, root: Element) -> Element:
        """Return the copy of the whole tree."""
        return _copy(root, self._read_children(root, "", ()))

    def _read_children(
        self, element: Element, named: str, around: tuple[str, ...]
    ) -> list[Element | str]:
        """Return what is seen of the children of an element.

        `named` is the tag of the heading, cell or the like that they are in; `around` are those
        of the quotations and articles.
        """
        seen: list[Element | str] = []
        shown = {name for e in element.elements() if not is_hidden(e) for name in e.classes()}
        label = element.attributes.get("aria-label", "").strip()
        for child in element.children:
            if isinstance(child, str):
                seen.append(child)
                continue
            labels = self._tabs.labels.get(id(child), ())
            seen += map(_strong_line, labels)
            if id(child) in self._tabs.loose:
                seen.append(_strong_line(child.peek()))
            elif id(child) not in self._tabs.placed:
                is_shown = (
                    bool(labels)
                    or id(child) in self._wrappers
                    or _is_other(child, shown)
                    or _is_title(child, label)
                )
                if not is_hidden(child) or is_shown:
                    seen += self._read(child, named, around)
                elif child.holds({"math"}):  # beside a picture of it
                    seen += map(_as_text, child.find_outermost("math"))
        return seen

    def _read(
        self, element: Element, named: str, around: tuple[str, ...]
    ) -> Sequence[Element | str]:
        """Return what is seen of an element: nothing, itself, or something in its place."""
        tag = element.tag
        if tag == "template" and "shadowrootmode" in element.attributes:
            return [_copy(Element("div"), self._read_children(element, named, around))]
        if (instead := _find_instead(element, named)) is not None:
            return instead
        if is_code(element):
            return read_code(element)
        is_control = self._is_control(element, around)
        if is_control and not named:
            return ()
        inner = tag if tag in _NAMED else named if tag not in BLOCKS - _IN_NAMED else ""
        beyond = (*around, tag) if tag in {"blockquote", "figure", "article"} else around
        copy = _copy(element, self._read_children(element, inner, beyond))
        if tag in _NAMED:
            _settle_controls(copy)
        is_control |= tag == "a" and _is_control_link(copy, named)
        # Expressive Code's "Terminal window".
        is_control |= tag == "figcaption" and all(map(_is_unread, copy.children))
        if not is_control:
            is_apart = tag not in BLOCKS and _UNREAD.search(element.attributes.get("class", ""))
            return [" ", copy, " "] if is_apart else [copy]
        return [_as_control(copy)] if named and not _is_marked_sign(copy) else ()

    def _is_control(self, element: Element, around: tuple[str, ...]) -> bool:
        """Tell whether an element operates or surrounds the page, and is not part of its text."""
        tag, role = element.tag, element.attributes.get("role")
        if id(element) in self._wrappers or role == "tab":
            return False
        if tag == "label":
            return not _holds_choice(element)
        names = {element.attributes.get("id"), *element.classes()}
        if tag == "footer" or "footer" in names:
            return not _is_part_of_text(element, around)
        return id(element) in self._contents or tag in _CONTROLS or role in _CONTROL_ROLES


def _copy(element: Element, children: list[Element | str]) -> Element:
    """Return an element with other children, and with what these contain."""
    if element.tag == "i" and not children:  # an icon of a font
        children = [element.attributes.get("title", "")]
    inside: set[str] = set()
    for child in children:
        if isinstance(child, str):
            inside |= set() if child.isspace() or not child else {TEXT, WORDS}
        elif child.tag == _CONTROL:
            inside |= {_CONTROL} if child.inside else set()
        else:
            inside |= child.inside | ({child.tag} if child.tag in BLOCKS else set())
    return Element(_read_tag(element), element.attributes, children, frozenset(inside))


def _read_tag(element: Element) -> str:
    """Return the tag of an element, or of the heading that it is without one."""
    if element.attributes.get("role") == "heading":
        level = element.attributes.get("aria-level", "2")
        return f"h{level}" if f"h{level}" in HEADINGS else "h2"
    return "h1" if "headertitle" in element.classes() else element.tag  # Doxygen's


def _settle_controls(named: Element) -> None:
    """Keep the text of the controls in an element if it has no other; else drop them."""
    if _CONTROL not in named.inside:
        return
    is_kept = not named.holds({TEXT})
    only_labels = named.tag == "li"
    no_blocks = named.tag in {"td", "th", "dt", "li"}
    stack = [named]
    while stack:
        element = stack.pop()
        children: list[Element | str] = []
        for child in element.children:
            if not isinstance(child, Element) or child.tag != _CONTROL:
                children.append(child)
                continue
            is_fit = not (only_labels and child.attributes.get("tag") != "label")
            if is_kept and is_fit and not (no_blocks and child.holds(BLOCKS)):
                children += [child, " "]
        element.children = children
        for child in element.elements():
            if child.tag == _CONTROL:
                child.tag = "span"
            if _CONTROL in child.inside:
                stack.append(child)
    copy = _copy(named, named.children)
    named.inside = (named.inside | copy.inside | ({TEXT} if is_kept else frozenset())) - {_CONTROL}


def _as_control(copy: Element) -> Element:
    return Element(_CONTROL, {"tag": copy.tag}, copy.children, copy.inside)


def _strong_line(text: str) -> Element:
    inside = frozenset({TEXT, WORDS})
    return Element("p", {}, [Element("strong", {}, [text], inside)], inside)


def _as_text(math: Element) -> Element | str:
    """Return a formula: a paragraph if it stands alone."""
    text = formula_text(math)
    return Element("p", {}, [text], frozenset({TEXT})) if text.startswith("$$") else text


def _script_formula(element: Element) -> Sequence[Element | str]:
    """Return the formula that MathJax 2 reads from a script."""
    kind = element.attributes.get("type", "") if element.tag == "script" else ""
    if not kind.startswith("math/tex"):
        return ()
    text = as_tex(element.text(), is_display := "mode=display" in kind)
    return [Element("p", {}, [text], frozenset({TEXT}))] if is_display and text else [text]


def _find_instead(element: Element, named: str) -> Sequence[Element | str] | None:
    """Return what is seen in place of an element; None for the element itself."""
    if element.tag == "math" or _is_typeset(element):
        return [_as_text(next(element.find("math")))]
    is_empty = element.tag == "span" and not element.children
    if element.tag in _NEVER or is_empty or _is_useless(element):
        return _find_sign(element, named) or _script_formula(element)
    return None


def _find_sign(element: Element, named: str) -> Sequence[Element | str]:
    """Return what stands for a box to tick in a list or a cell, or for a picture in a cell."""
    attributes, sign = element.attributes, ""
    is_box = element.tag == "input" and attributes.get("type", "").lower() == "checkbox"
    if is_box and (named in {"li", "td", "th"} or "disabled" in attributes):
        sign = "x" if "checked" in attributes else " "
    elif named in {"td", "th"} and (element.tag == "svg" or attributes.get("role") == "img"):
        sign = " ".join(attributes.get("aria-label", "").split())
    # Nothing is noted inside: beside it, the text of a control still counts.
    return [Element("span", {}, [f"[{sign}] "])] if sign else ()


def _is_typeset(element: Element) -> bool:
    """Tell whether an element is a formula in several forms, one of them MathML."""
    return element.holds({"math"}) and not {"katex", "mjx-container"}.isdisjoint(
        [element.tag, *element.classes()]
    )


def _is_useless(element: Element) -> bool:
    """Tell whether an element repeats or describes what is beside it."""
    classes = element.classes()
    return (
        not {"MathJax_Preview", "MathJax", "MathJax_Display", "MathJax_SVG"}.isdisjoint(classes)
        or (element.tag in {"td", "th", "pre", "div", "ol", "ul"} and is_line_number(element))
        or is_copy_button(element)
        # VitePress's name of the language above a code block.
        or (element.tag == "span" and classes == ["lang"])
        # rustdoc's "Expand description".
        or (element.tag == "summary" and "hideme" in classes)
    )


def _holds_choice(label: Element) -> bool:
    """Tell whether a label is the text of a box to tick, as in a list of tasks."""
    controls = list(label.find("input", "select", "textarea"))
    kinds = {e.attributes.get("type", "").lower() if e.tag == "input" else e.tag for e in controls}
    return bool(kinds) and kinds <= {"checkbox", "radio"}


def _is_part_of_text(footer: Element, around: tuple[str, ...]) -> bool:
    """Tell whether a footer is that of a quotation, or holds the notes of an article."""
    if not around:
        return False
    name = f"{footer.attributes.get('class', '')} {footer.attributes.get('id', '')}"
    return around[-1] != "article" or "footnote" in name or not _FOOTER.search(name)


def _is_control_link(link: Element, named: str) -> bool:
    """Tell whether a link leads from a heading to itself, or to its source code.

    `link` is a copy: what is hidden is not in it.
    """
    if link.holds(BLOCKS):
        return False
    text = link.peek()
    if text in _SOURCES or (text.lower() in {"source", "src"} and "src" in link.classes()):
        return True
    if _is_marked_sign(link):
        return True
    if "#" not in link.attributes.get("href", ""):
        return False
    is_marked = _is_marked(link)
    if _is_sign(text):
        return named in _TITLES or text != "#"
    is_told = is_marked or not {"aria-label", "title"}.isdisjoint(link.attributes)
    is_unread = bool(text) and all(map(_is_unread, link.children))
    return (
        (is_told or is_unread)
        and (named in _TITLES or is_marked)
        and (is_unread or _PERMALINK_WORDS.fullmatch(text) is not None)
    )


def _is_marked_sign(link: Element) -> bool:
    """Tell whether a link without words has a name that says that it leads to this place.

    Icons of fonts are characters for private use.
    """
    text = link.peek(8)
    return link.tag == "a" and bool(text) and not any(map(str.isalnum, text)) and _is_marked(link)


def _is_marked(link: Element) -> bool:
    return _PERMALINK.search(link.attributes.get("class", "")) is not None


def _is_sign(text: str) -> bool:
    return bool(text) and set(_UNSEEN.sub("", text)) <= _SIGNS


def _is_unread(node: Element | str) -> bool:
    """Tell whether a node is a text for those who do not see the page."""
    if isinstance(node, str):
        return not node.strip()
    return _UNREAD.search(node.attributes.get("class", "")) is not None or not node.holds({TEXT})


def _is_title(element: Element, label: str) -> bool:
    """Tell whether an element is seen as its parent's label, which is read out in its place."""
    return bool(label) and element.peek() == label


def _is_other(element: Element, shown: set[str]) -> bool:
    """Tell whether a hidden block is another of those that are shown, like a panel of tabs."""
    is_block = element.tag in BLOCKS and element.attributes.get("aria-hidden") != "true"
    return is_block and not shown.isdisjoint(element.classes())


def _find_contents(root: Element) -> set[int]:
    """Return the identities of the tables of contents of the page itself."""
    found: set[int] = set()
    stack = [root]
    while stack:
        element = stack.pop()
        if "toc" in {element.attributes.get("id"), *element.classes()}:
            links = (link.attributes.get("href", "#") for link in element.find("a"))
            found |= {id(element)} if all(link[:1] == "#" for link in links) else set()
        else:
            stack += element.elements()
    return found


def _find_wrappers(root: Element) -> set[int]:
    """Return the identities of forms and hidden elements with most of the text of a page."""
    weights: dict[int, tuple[Element, int]] = {}
    total = _weigh(root, weights)
    return {
        key
        for key, (element, weight) in weights.items()
        if weight * 2 > total and (element.tag in {"form", "dialog"} or weight * 10 > total * 9)
    }


def _weigh(element: Element, weights: dict[int, tuple[Element, int]]) -> int:
    """Return how many characters an element shows; note those that may be wrappers."""
    if element.tag in _NEVER or element.tag in {"select", "textarea"}:
        return 0
    weight = 0
    for child in element.children:
        weight += len(child.strip()) if isinstance(child, str) else _weigh(child, weights)
    if element.tag in {"form", "dialog"} or is_hidden(element):
        weights[id(element)] = (element, weight)
    return weight
