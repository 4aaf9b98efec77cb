"""A web page as Markdown: its main part, with headings, code, lists and tables kept.

Pure. What is invisible or only for moving about (navigation, forms, scripts) is
left out; the words, the code to the byte, and where links lead are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from llm_kb.references.sources.html.budget import Budget
from llm_kb.references.sources.html.page import absolute_link, find_main, page_base, page_title
from llm_kb.references.sources.html.tabs import TabLabels
from llm_kb.references.sources.html.tree import BLOCKS, Element, parse_html

_SKIPPED = frozenset(
    """
    script style template noscript svg nav form button input select textarea iframe object
    canvas audio video map head footer dialog menu title link meta
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_SKIPPED_ROLES = frozenset({"navigation", "search", "banner", "contentinfo", "dialog", "menu"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
# What documentation tools put beside a heading to link to it, and beside a name to its source.
_PERMALINKS = frozenset(
    {"headerlink", "permalink", "anchor", "anchor-link", "hash-link", "header-anchor", "src"}
)
_PERMALINK_TEXTS = frozenset({"¶", "#", "§", "[source]"})
# The frames of notes and warnings: Sphinx and MkDocs, Docusaurus, GitHub, VitePress.
_ADMONITIONS = frozenset({"admonition", "theme-admonition", "markdown-alert", "custom-block"})
_ADMONITION_TITLE = re.compile(r"(?:^|[-_ ])(?:title|admonitionHeading)")
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|highlight)-([A-Za-z0-9+#-]+)")
_NO_LANGUAGE = frozenset({"default", "none", "notranslate"})
_BLANK = re.compile(r"[ \t\r\n\f]+")
_BREAK = "\x00"
"""Stands for a forced line break while blanks are collapsed."""

MAX_NESTING = 20
"""Quotes and lists within one another that are written as such; deeper ones as plain blocks."""

MAX_COLUMNS = 100
"""Columns to which the short rows of a table are filled up."""


def html_to_markdown(html: str, url: str) -> str:
    """Return the main part of a page as Markdown; links become absolute by `url`.

    Raises PageTooComplexError.
    """
    budget = Budget(len(html))
    root = parse_html(html.replace(_BREAK, ""), budget)
    writer = _Writer(page_base(root, url), budget, TabLabels(root))
    blocks = list(writer.blocks(find_main(root).children))
    title = page_title(root)
    if title and not any(block.startswith("# ") for block in blocks):
        blocks.insert(0, f"# {title}")
    text = "\n\n".join(blocks)
    return f"{text}\n" if text else ""


def _is_skipped(element: Element) -> bool:
    attributes = element.attributes
    return (
        element.tag in _SKIPPED
        or (_is_hidden(element) and not _is_panel(element))
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in _SKIPPED_ROLES
        or (element.tag == "td" and "linenos" in element.classes())
        # VitePress names the language of a block of code above it.
        or (element.tag == "span" and element.classes() == ["lang"])
        # rustdoc's words for what hides nothing here: "Expand description".
        or (element.tag == "summary" and "hideme" in element.classes())
    )


def _is_hidden(element: Element) -> bool:
    style = element.attributes.get("style", "")
    return "hidden" in element.attributes or "display:none" in style.replace(" ", "").lower()


def _is_panel(element: Element) -> bool:
    """Tell whether an element is a panel of tabs or accordions, of which one at most is shown."""
    attributes = element.attributes
    return attributes.get("role") == "tabpanel" or attributes.get("hidden") == "until-found"


def _is_permalink(element: Element) -> bool:
    return element.tag == "a" and (
        not _PERMALINKS.isdisjoint(element.classes()) or element.text().strip() in _PERMALINK_TEXTS
    )


class _Writer:
    """Turns elements into blocks of Markdown; knows what is around them."""

    def __init__(self, base: str, budget: Budget, labels: TabLabels) -> None:
        self._base = base
        self._budget = budget
        self._labels = labels
        self._level = 1
        """The level of the last heading."""
        self._nesting = 0
        """How many quotes and lists are around."""
        self._keeps_links = True
        self._language = ""
        """What a highlighter says of the code around here."""

    def blocks(self, children: Sequence[Element | str]) -> Iterator[str]:
        """Yield the blocks of some children; neighbouring inline ones make a paragraph."""
        inline: list[Element | str] = []
        for child in children:
            self._budget.step()
            if isinstance(child, Element) and (child.tag in BLOCKS or child.holds_block):
                yield from self._paragraph(inline)
                inline = []
                if not _is_skipped(child):
                    yield from self._block(child)
            else:
                inline.append(child)
        yield from self._paragraph(inline)

    def _paragraph(self, children: Sequence[Element | str]) -> Iterator[str]:
        text = _tidy("".join(self._inline(child) for child in children))
        if text:
            # Escaped where a line of text would begin a heading, a list or a fence.
            yield re.sub(r"(?m)^(#{1,6} |>|[-+] |```|~~~)", r"\\\1", text)

    def _block(self, element: Element) -> Iterator[str]:  # noqa: C901 - one branch for each kind
        tag = element.tag
        if self._labels.take(element):
            return
        if label := self._labels.label_of(element):
            yield f"**{label}**"
        if tag in _HEADINGS:
            self._level = _HEADINGS[tag]
            yield from self._heading(element, self._level)
        elif tag == "pre":
            yield from _fence(element, self._language)
        elif tag in {"ul", "ol"}:
            yield from self._list(element)
        elif tag == "dl":
            yield from self._definitions(element)
        elif tag == "table":
            yield from self._table(element)
        elif tag == "blockquote":
            yield from self._quote(element.children)
        elif not _ADMONITIONS.isdisjoint(element.classes()):
            yield from self._admonition(element)
        elif tag == "hr":
            yield "---"
        else:
            outer = self._language
            self._language = _language(element) or outer
            yield from self.blocks(element.children)
            self._language = outer

    def _heading(self, element: Element, level: int) -> Iterator[str]:
        """Yield a heading; links in it are plain text unless it is one to another page.

        A signature is full of links to its types, and many headings lead to themselves.
        """
        whole = element.text().strip()
        self._keeps_links = any(
            e.tag == "a" and e.text().strip() == whole and e.attributes.get("href", "")[:1] != "#"
            for e in element.walk()
        )
        text = _tidy("".join(self._inline(child) for child in element.children))
        self._keeps_links = True
        if text:
            yield f"{'#' * level} {' '.join(text.split())}"

    def _nested(self, children: Sequence[Element | str]) -> list[str]:
        """Return blocks that will get a mark or an indent of their own."""
        self._nesting += 1
        blocks = list(self.blocks(children))
        self._nesting -= 1
        return blocks

    def _quote(self, children: Sequence[Element | str], title: str = "") -> Iterator[str]:
        blocks = [*([title] if title else []), *self._nested(children)]
        if self._nesting >= MAX_NESTING:
            yield from blocks
        elif blocks:
            text = "\n\n".join(blocks)
            self._budget.add(2 * (1 + text.count("\n")))
            yield re.sub(r"(?m)^> $", ">", "> " + text.replace("\n", "\n> "))

    def _admonition(self, element: Element) -> Iterator[str]:
        """Yield a note or warning as a quote that begins with its title."""
        children = list(element.children)
        first = next((child for child in children if isinstance(child, Element)), None)
        title = ""
        if first and (
            first.tag == "summary" or _ADMONITION_TITLE.search(" ".join(first.classes()))
        ):
            title = " ".join(first.text().split())
            children.remove(first)
        yield from self._quote(children, f"**{title}**" if title else "")

    def _definitions(self, element: Element) -> Iterator[str]:
        """Yield a list of terms with what is said of each below it.

        A term with an id documents a name: it is a heading, and what is defined below it one
        level deeper, as a method is below its class.
        """
        outer = self._level
        below = min(outer + 1, 6)
        terms: list[str] = []
        is_named = False
        for child in _members(element):
            if isinstance(child, str):
                yield from self._paragraph([child])
            elif child.tag == "dt":
                is_named = "id" in child.attributes
                if is_named:
                    yield from self._signature(child, below)
                else:
                    terms += [f"**{' '.join(t.split())}**" for t in self._nested(child.children)]
            elif is_named:
                self._level = below
                yield from self.blocks(child.children)
            else:
                yield from self._item("- ", [*terms, *self._nested(child.children)])
                terms = []
        yield from self._item("- ", terms)
        self._level = outer

    def _signature(self, element: Element, level: int) -> Iterator[str]:
        """Yield the heading of a documented name; its parts are not emphasised."""
        if "sig" not in element.classes():
            yield from self._heading(element, level)
            return
        parts = [c for c in element.children if isinstance(c, str) or not _is_permalink(c)]
        text = "".join(part if isinstance(part, str) else part.text() for part in parts)
        if text.strip():
            yield f"{'#' * level} {' '.join(text.split())}"

    def _list(self, element: Element) -> Iterator[str]:
        if element.holds_heading:
            # Sections of a page, as javadoc has them: a heading in an item begins no section.
            for child in element.children:
                yield from self.blocks(child.children if isinstance(child, Element) else [child])
            return
        items: list[str] = []
        for child in element.children:
            if isinstance(child, str) and not child.strip():
                continue
            marker = f"{len(items) + 1}. " if element.tag == "ol" else "- "
            if isinstance(child, Element) and child.tag == "li" and not _is_skipped(child):
                items += self._item(marker, self._nested(child.children))
            else:
                items += self._item(marker, self._nested([child]))
        if self._nesting >= MAX_NESTING:
            yield from items
        elif items:
            loose = any("\n\n" in item for item in items)
            yield ("\n\n" if loose else "\n").join(items)

    def _item(self, marker: str, parts: Sequence[str]) -> Iterator[str]:
        """Yield an item of a list, unless it is empty."""
        if self._nesting >= MAX_NESTING:
            yield from parts
        elif parts:
            simple = all("\n\n" not in part for part in parts)
            tight = simple and len(parts) == 2 and _is_list(parts[1])
            text = ("\n" if tight else "\n\n").join(parts)
            self._budget.add((1 + text.count("\n")) * len(marker))
            yield marker + _indent(text, len(marker))

    def _table(self, element: Element) -> Iterator[str]:
        rows = [cells for row in _rows(element) if (cells := _cells(row))]
        if element.holds_pre or max(map(len, rows), default=0) < 2:
            # A table for looks, such as code beside its line numbers.
            for row in rows:
                for cell in row:
                    yield from self.blocks(cell.children)
            return
        width = min(max(map(len, rows)), MAX_COLUMNS)
        lines = [
            [
                _tidy(" ".join(self.blocks(cell.children))).replace("\n", " ").replace("|", "\\|")
                for cell in row
            ]
            for row in rows
        ]
        for line in lines:
            self._budget.add(3 * max(width, len(line)))
            line.extend([""] * (width - len(line)))
        lines.insert(1, ["---"] * len(lines[0]))
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _inline(self, child: Element | str) -> str:  # noqa: PLR0911 - one for each kind
        self._budget.step()
        if isinstance(child, str):
            return _BLANK.sub(" ", child)
        if _is_skipped(child) or _is_permalink(child) or self._labels.take(child):
            return ""
        if child.tag == "br":
            return _BREAK
        if child.tag == "img":
            alt = " ".join(child.attributes.get("alt", "").split())
            return f"[{alt}]" if alt else ""
        if child.tag in _CODE:
            return _code_span(child.text())
        if child.tag == "math" and (formula := _tex(child)):
            return f"${formula}$"
        text = "".join(self._inline(inner) for inner in child.children)
        if child.tag in _MARKS:
            return _wrap(text, _MARKS[child.tag])
        if child.tag == "a":
            link = absolute_link(self._base, child.attributes.get("href", ""))
            if link and text.strip() and self._keeps_links:
                self._budget.add(len(link))
                return f"[{text.strip()}]({link})"
        return text


def _tex(math: Element) -> str:
    """Return the TeX that a formula in MathML carries beside itself."""
    found = (e for e in math.walk() if e.tag == "annotation")
    source = next((e for e in found if "tex" in e.attributes.get("encoding", "")), None)
    return " ".join(source.text().split()) if source else ""


def _members(definitions: Element) -> Iterator[Element | str]:
    """Yield the terms of a list and what is said of them, also those that a `div` groups."""
    for child in definitions.children:
        if isinstance(child, Element) and child.tag == "div" and not _is_skipped(child):
            yield from _members(child)
        elif isinstance(child, str) or not _is_skipped(child):
            yield child


def _rows(table: Element) -> Iterator[Element]:
    """Yield the rows of a table itself, not those of tables in its cells."""
    for child in table.children:
        if isinstance(child, Element):
            if child.tag == "tr":
                yield child
            elif child.tag in {"thead", "tbody", "tfoot"}:
                yield from _rows(child)


def _cells(row: Element) -> list[Element]:
    return [
        child
        for child in row.children
        if isinstance(child, Element) and child.tag in {"td", "th"} and not _is_skipped(child)
    ]


def _is_list(block: str) -> bool:
    return block.startswith(("- ", "1. "))


def _indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width).replace("\n" + " " * width + "\n", "\n\n")


def _tidy(text: str) -> str:
    """Collapse blanks, then put forced breaks where their marks are."""
    lines = [_BLANK.sub(" ", line).strip() for line in text.split(_BREAK)]
    return "\n".join(line for line in lines if line)


def _wrap(text: str, mark: str) -> str:
    inner = text.strip()
    if not inner:
        return text
    return text.replace(inner, f"{mark}{inner}{mark}", 1)


def _code_span(text: str) -> str:
    text = _BLANK.sub(" ", text).strip()
    if not text:
        return ""
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fence(element: Element, around: str) -> Iterator[str]:
    """Yield preformatted text, fenced by more backticks than it holds."""
    text = "".join(_verbatim(element)).strip("\n")
    if text.strip():
        fence = "`" * max(3, _longest_run(text) + 1)
        code = next((e for e in element.walk() if e.tag == "code"), element)
        language = _language(element) or _language(code) or around
        yield f"{fence}{'' if language in _NO_LANGUAGE else language}\n{text}\n{fence}"


def _verbatim(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        elif child.tag == "br":
            yield "\n"
        elif not _is_skipped(child):
            yield from _verbatim(child)


def _language(element: Element) -> str:
    named = element.attributes.get("data-lang") or element.attributes.get("data-language")
    found = _LANGUAGE.match(f"language-{named}" if named else "")
    found = found or next(filter(None, map(_LANGUAGE.match, element.classes())), None)
    return found[1].lower() if found else ""


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
