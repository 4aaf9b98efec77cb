"""Code in a web page: its lines, without their numbers and buttons. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llm_kb.texts.html.tree import BLOCKS, TEXT, WORDS, Element, has_style, is_hidden

_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|highlight)-([A-Za-z0-9+#-]{1,40})")
# Pygments, Hugo, Rouge, Expressive Code, javadoc, Doxygen, GitHub, GitLab, gitweb and others.
_NUMBERS = re.compile(
    r"(?:^|[-_ ])(?:ln|lnt|lnlinks|gutter|gl|linenodiv|blob-num|ln-n|ln-num|ln-numbers"
    r"|line-?(?:no|nos|nr|num|number|numbers)(?:[-_]\w{1,40})?"
    r"|source-?line-?no|code-?line-?number\w{0,40})(?: |$)",
    re.IGNORECASE,
)
_LINE = re.compile(r"(?:^|[-_ ])line(?: |$)", re.IGNORECASE)
_REMOVED = frozenset({"remove", "removed", "del", "line-removed", "diff-removed"})
"""Classes of lines that a change takes out; their signs are drawn, not written."""
_COPY = re.compile(r"copy|clipboard", re.IGNORECASE)
_COPY_TEXTS = frozenset({"copy", "copied", "copied!", "copy code", "copy to clipboard"})
_CONTROLS = frozenset(
    """
    button clipboard-copy head iframe input label noscript object script select style svg
    template textarea title
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_LINES = BLOCKS | {"tr", "caption"}
_LINE_BLOCKS = frozenset({"div", "li", "ol", "p", "pre", "ul"})
_STRUCTURE = frozenset({"ol", "ul", "table", "tbody", "thead", "tr"})


def is_code(element: Element) -> bool:
    """Tell whether an element shows its text as it is written."""
    if element.tag in {"pre", "listing", "xmp"}:
        return True
    if element.tag == "textarea":  # an editor that begins with an example, as on pkg.go.dev
        return element.attributes.get("spellcheck") == "false" and element.holds({TEXT})
    if element.tag == "code":
        is_block = has_style(element, "display:block", "white-space:pre")
        return (is_block or element.holds(BLOCKS)) and not element.holds(BLOCKS - _LINE_BLOCKS)
    if element.tag == "table":
        return _is_numbered_table(element)
    # Doxygen's, and those of editors.
    is_marked = "fragment" in element.classes() or has_style(element, "white-space:pre")
    return element.tag == "div" and is_marked and not element.holds(BLOCKS - _LINE_BLOCKS | {"pre"})


def is_line_number(element: Element) -> bool:
    """Tell whether an element numbers lines of code."""
    attributes = element.attributes
    is_marked = (
        _NUMBERS.search(attributes.get("class", "")) is not None
        or "data-line-number" in attributes
        or (element.tag == "a" and "data-nosnippet" in attributes)  # rustdoc
        or has_style(element, "user-select:none")  # Hugo without classes
    )
    return is_marked and not element.holds({WORDS})


def is_copy_button(element: Element) -> bool:
    """Tell whether an element copies the code beside it."""
    name = element.attributes.get("class", "")
    return bool(_COPY.search(name)) and element.peek().lower() in _COPY_TEXTS


def find_language(element: Element) -> str:
    """Return the language that an element states for its code; empty without one."""
    named = element.attributes.get("data-lang") or element.attributes.get("data-language")
    found = _LANGUAGE.match(f"language-{named}" if named else "")
    found = found or next(filter(None, map(_LANGUAGE.match, element.classes())), None)
    return found[1].lower() if found else ""


def read_code(element: Element) -> list[Element]:
    """Return the blocks of code in an element, each with one text.

    Several in one element are the same in several languages.
    """
    parts = [child for child in element.elements() if child.tag == "code"]
    if len(parts) > 1 and not _has_own_words(element) and _are_whole(parts):
        return [_as_block(part, find_language(part)) for part in parts]
    inner = next(element.find("code"), element)
    return [_as_block(element, find_language(element) or find_language(inner))]


def _as_block(element: Element, language: str) -> Element:
    lines = _Lines()
    lines.add_children(element)
    text = lines.text().strip("\n")
    inside = frozenset({TEXT, WORDS, "pre"} if text.strip() else {"pre"})
    return Element("pre", {"data-language": language} if language else {}, [text], inside)


def _are_whole(parts: Sequence[Element]) -> bool:
    """Tell whether elements are blocks of their own, not lines or words of one."""
    languages = {find_language(part) for part in parts}
    return len(languages) > 1 or all("\n" in part.text().strip() for part in parts)


def _is_numbered_table(table: Element) -> bool:
    """Tell whether each row of a table is a number and a line of code, as on GitHub."""
    rows = [row for row in find_rows(table) if row.children]
    return bool(rows) and not table.holds({"pre"}) and all(map(_is_numbered, rows))


def _is_numbered(row: Element) -> bool:
    cells = row.elements()
    return (
        len(cells) > 1
        and is_line_number(cells[0])
        and "code" in cells[-1].attributes.get("class", "")
    )


def find_rows(table: Element) -> list[Element]:
    """Return the rows of a table, without those of nested tables."""
    return [row for group in find_row_groups(table) for row in group]


def find_row_groups(table: Element) -> list[list[Element]]:
    """Return the rows of a table, a list for each of its heads and bodies."""
    groups: list[list[Element]] = []
    is_open = False
    for child in table.elements():
        if child.tag in {"thead", "tbody", "tfoot"}:
            groups.append([row for row in child.elements() if row.tag == "tr"])
            is_open = False
        elif child.tag == "tr":
            if not is_open:
                groups.append([])
            groups[-1].append(child)
            is_open = True
    return groups


@dataclass(slots=True)
class _Lines:
    """Lines of code that are being written."""

    _parts: list[str] = field(default_factory=list)
    _numbers: list[int] = field(default_factory=list)
    """Where the text behind each line number begins."""
    _is_at_start: bool = True
    _is_after_line: bool = False
    """Whether an element that is a line has just ended: a line end behind it is the same one."""

    def text(self) -> str:
        """Return the text, without the blank that some tools put behind each number."""
        behind = [self._parts[at] for at in self._numbers if at < len(self._parts)]
        behind = [text for text in behind if text.strip("\n")]
        is_apart = all(text[0] in " \xa0" for text in behind) and any(
            len(text) == 1 or text[1] not in " \xa0" for text in behind
        )
        for at in self._numbers if is_apart else ():
            if at < len(self._parts) and self._parts[at][:1] in {" ", "\xa0"}:
                self._parts[at] = self._parts[at][1:]
        return "".join(self._parts)

    def add_children(self, element: Element) -> None:
        """Add the text of an element; elements that are blocks begin and end lines."""
        children = _keep_lines(element.children)
        shown = [each for each in children if isinstance(each, str) or not _is_left_out(each)]
        kinds = _find_line_kinds(element, shown)
        has_lines = any(isinstance(child, Element) and _kind(child) in kinds for child in shown)
        is_structure = element.tag in _STRUCTURE
        for child in children:
            if isinstance(child, str):
                if not (is_structure and child.isspace()):
                    self._add_text(child, has_lines=has_lines)
            elif is_line_number(child):
                self._numbers.append(len(self._parts))
            elif child.tag == "br":
                self._add_break()
            elif not _is_left_out(child):
                self._add_element(child, kinds)

    def _add_element(self, child: Element, kinds: Mapping[tuple[str, str], int]) -> None:
        if _kind(child) not in kinds:
            self.add_children(child)
            return
        self._begin_line()
        count = len(self._parts)
        self.add_children(child)
        is_line = kinds[_kind(child)] > 1 or child.tag in {"li", "tr"}
        if is_line and not "".join(self._parts[count:]).strip(" \xa0"):
            del self._parts[count:]
            self._add("\n")
        self._begin_line()
        self._is_after_line = True

    def _add_text(self, text: str, *, has_lines: bool) -> None:
        if self._is_after_line:
            blank, end, rest = text.partition("\n")
            text = rest if end and not blank.strip() else text
        if has_lines and text.isspace() and self._is_at_start:
            text = "\n" * text.count("\n") if self._parts else ""
        self._add(text)

    def _add_break(self) -> None:
        if self._is_after_line:
            self._is_after_line = False
        else:
            self._add("\n")

    def _begin_line(self) -> None:
        if not self._is_at_start:
            self._add("\n")

    def _add(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._is_at_start = text.endswith("\n")
            self._is_after_line = False


def _keep_lines(children: Sequence[Element | str]) -> list[Element | str]:
    """Return what is code of the children of an element: not what a change took out of it.

    Where lines have names, a block between them is a tooltip or the like.
    """
    has_named = any(isinstance(each, Element) and _is_named_line(each) for each in children)
    kept: list[Element | str] = []
    was_removed = False
    for child in children:
        if isinstance(child, str):
            kept.append(child.removeprefix("\n") if was_removed else child)
            was_removed = False
            continue
        was_removed = child.tag == "del" or not _REMOVED.isdisjoint(child.classes())
        inner = (child, *child.elements())
        is_between = has_named and child.tag == "div" and not any(map(_is_named_line, inner))
        if not (was_removed or is_between):
            kept.append(child)
    return kept


def _find_line_kinds(
    element: Element, shown: Sequence[Element | str]
) -> Mapping[tuple[str, str], int]:
    """Return the kinds of the children that are lines or hold some, with how many there are.

    A single child counts only if it is a block: an inline one is part of the text, as in DocBook's
    `<em><code>name</code></em>`.
    """
    guess = not _has_own_words(element)
    children = [child for child in shown if isinstance(child, Element)]
    lines = [child for child in children if _is_line(child, guess=guess)]
    if len(lines) == 1:
        lines = [child for child in lines if _is_line(child, guess=False)]
    return Counter(map(_kind, lines))


def _kind(element: Element) -> tuple[str, str]:
    return element.tag, next(iter(element.classes()), "")


def _is_line(element: Element, *, guess: bool) -> bool:
    """Tell whether an element is a block; a guess goes by the names that generators give lines."""
    if element.tag in _LINES or has_style(element, "display:block", "display:table-row"):
        return True
    if element.tag not in {"span", "code"} or not guess:
        return False
    return _is_named_line(element) or "data-line" in element.attributes or element.tag == "code"


def _is_named_line(element: Element) -> bool:
    return _LINE.search(element.attributes.get("class", "")) is not None


def _has_own_words(element: Element) -> bool:
    """Tell whether an element has text, or blanks between words, beside that of its children."""
    return any(
        isinstance(child, str) and (not child.isspace() or "\n" not in child)
        for child in element.children
    )


def _is_left_out(element: Element) -> bool:
    return (
        element.tag in _CONTROLS
        or is_hidden(element)
        or element.attributes.get("role") in {"button", "tablist", "toolbar"}
        or is_line_number(element)
        or is_copy_button(element)
    )
