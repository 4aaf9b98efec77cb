"""Converting the main part of a web page to Markdown. Pure.

Words, headings, lists, tables, links, and code to the byte are kept. Invisible elements,
navigation, forms and scripts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from llm_kb.texts.html import page
from llm_kb.texts.html.tree import BLOCKS, HEADINGS, Element, PageTooComplexError, parse_html

_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
# Classes of notes and warnings: Sphinx and MkDocs, Docusaurus, GitHub, VitePress.
_ADMONITIONS = frozenset({"admonition", "theme-admonition", "markdown-alert", "custom-block"})
_ADMONITION_TITLE = re.compile(r"(?:^|[-_ ])(?:title|admonitionHeading)")
_NO_LANGUAGE = frozenset({"default", "none", "notranslate"})
_BLANK = re.compile(r"[ \t\r\n\f]+")
_BREAK = "\x00"
"""Placeholder for a line break while blanks are collapsed."""

_SKIPPED = frozenset(
    """
    script style template noscript svg nav form button input select textarea iframe object
    canvas audio video map head footer dialog menu title link meta label
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_SKIPPED_ROLES = frozenset(
    {"navigation", "search", "banner", "contentinfo", "dialog", "menu", "tablist"}
)
# Classes of links that documentation tools add to headings, and to source code.
_PERMALINKS = frozenset(
    {"headerlink", "permalink", "anchor", "anchor-link", "hash-link", "header-anchor", "src"}
)
_PERMALINK_TEXTS = frozenset({"¶", "#", "§", "[source]"})
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|highlight)-([A-Za-z0-9+#-]{1,40})")

ADDED_PER_CHARACTER = 5
"""Characters of markup that Markdown may add for each character of the page."""

MAX_COLUMNS = 100
"""Most columns to which short rows of a table are filled up."""


def html_to_markdown(html: str, url: str) -> str:
    """Return the main part of a page as Markdown, with links made absolute by `url`.

    Raises PageTooComplexError.
    """
    return tree_to_markdown(parse_html(html), url, len(html))


def tree_to_markdown(root: Element, url: str, size: int) -> str:
    """Return the main part of a parsed page of a size, as `html_to_markdown` does."""
    writer = _Writer(page.page_base(root, url), size)
    blocks = list(writer.blocks(page.find_main(root).children))
    title = page.page_title(root)
    if title and not any(block.startswith("# ") for block in blocks):
        blocks.insert(0, f"# {title}")
    text = "\n\n".join(blocks)
    return f"{text}\n" if text else ""


class _Writer:
    """Turns elements into blocks of Markdown; holds the state around the current element."""

    def __init__(self, base: str, size: int) -> None:
        self._base = base
        self._left = ADDED_PER_CHARACTER * size + 100_000
        """Characters of markup that may still be added."""
        self._level = 1
        """The level of the last heading."""
        self._language = ""
        """The language that a highlighter states for the code in this element."""

    def blocks(self, children: Sequence[Element | str]) -> Iterator[str]:
        """Yield the blocks of children; adjacent inline ones form a paragraph."""
        inline: list[Element | str] = []
        for child in children:
            if isinstance(child, Element) and (child.tag in BLOCKS or child.holds(BLOCKS)):
                yield from self._paragraph(inline)
                inline = []
                if not _is_skipped(child):
                    yield from self._block(child)
            else:
                inline.append(child)
        yield from self._paragraph(inline)

    def _paragraph(self, children: Sequence[Element | str]) -> Iterator[str]:
        if text := self._text(children):
            # Escape lines that would begin a heading, a list or a fence.
            yield re.sub(r"(?m)^(#{1,6} |>|[-+] |```|~~~)", r"\\\1", text)

    def _block(self, element: Element) -> Iterator[str]:
        tag = element.tag
        if tag in HEADINGS:
            self._level = int(tag[1])
            yield from self._heading(element, self._level)
        elif tag == "pre":
            yield from self._fence(element)
        elif tag in {"ul", "ol"}:
            yield from self._list(element)
        elif tag == "dl":
            yield from self._definitions(element)
        elif tag == "table":
            yield from self._table(element)
        elif tag == "blockquote":
            yield from self._quote(list(self.blocks(element.children)))
        elif not _ADMONITIONS.isdisjoint(element.classes()):
            yield from self._admonition(element)
        elif tag == "hr":
            yield "---"
        else:
            outer = self._language
            self._language = _find_language(element) or outer
            yield from self.blocks(element.children)
            self._language = outer

    def _heading(self, element: Element, level: int) -> Iterator[str]:
        """Yield a heading as plain text: signatures are full of links to types."""
        if text := " ".join(_plain(element).split()):
            yield f"{'#' * level} {text}"

    def _fence(self, element: Element) -> Iterator[str]:
        """Yield preformatted text as a fence of more backticks than the text has in a row."""
        text = "".join(_verbatim(element)).strip("\n")
        if text.strip():
            fence = "`" * max(3, _longest_run(text) + 1)
            code = next(element.find("code"), element)
            language = _find_language(element) or _find_language(code) or self._language
            self._add(2 * len(fence) + len(language))
            yield f"{fence}{'' if language in _NO_LANGUAGE else language}\n{text}\n{fence}"

    def _quote(self, blocks: Sequence[str]) -> Iterator[str]:
        if blocks:
            text = "\n\n".join(blocks)
            self._add(2 * (1 + text.count("\n")))
            yield re.sub(r"(?m)^> $", ">", "> " + text.replace("\n", "\n> "))

    def _admonition(self, element: Element) -> Iterator[str]:
        """Yield a note or warning as a quote that begins with its title."""
        children = list(element.children)
        title: list[str] = []
        for first in element.elements()[:1]:
            if first.tag == "summary" or _ADMONITION_TITLE.search(" ".join(first.classes())):
                title = [f"**{line}**"] if (line := first.line()) else []
                children.remove(first)
        yield from self._quote([*title, *self.blocks(children)])

    def _definitions(self, element: Element) -> Iterator[str]:
        """Yield a list of definitions.

        A term with an id documents a name: it becomes a heading, and definitions inside it are
        one level deeper, as a method is below its class.
        """
        outer = self._level
        below = min(outer + 1, 6)
        terms: list[str] = []
        is_named = False
        for child in _find_members(element):
            if child.tag == "dt":
                is_named = "id" in child.attributes
                if is_named:
                    yield from self._heading(child, below)
                else:
                    terms += [f"**{' '.join(t.split())}**" for t in self.blocks(child.children)]
            elif is_named:
                self._level = below
                yield from self.blocks(child.children)
            else:
                yield from self._item("- ", [*terms, *self.blocks(child.children)])
                terms = []
        yield from self._item("- ", terms)
        self._level = outer

    def _list(self, element: Element) -> Iterator[str]:
        if element.holds(HEADINGS):
            # Javadoc marks up sections as list items; a heading inside an item would be lost.
            for child in element.children:
                yield from self.blocks([child] if isinstance(child, str) else child.children)
            return
        items: list[str] = []
        for child in element.children:
            inner: Sequence[Element | str] = [child]
            if isinstance(child, Element) and child.tag == "li" and not _is_skipped(child):
                inner = child.children
            marker = f"{len(items) + 1}. " if element.tag == "ol" else "- "
            items += self._item(marker, list(self.blocks(inner)))
        if items:
            is_loose = any("\n\n" in item for item in items)
            yield ("\n\n" if is_loose else "\n").join(items)

    def _item(self, marker: str, blocks: Sequence[str]) -> Iterator[str]:
        """Yield an item of a list, unless it is empty."""
        if blocks:
            is_simple = all("\n\n" not in block for block in blocks)
            # A list after a single paragraph follows it without a blank line.
            is_tight = is_simple and len(blocks) == 2 and blocks[1].startswith(("- ", "1. "))
            text = ("\n" if is_tight else "\n\n").join(blocks)
            self._add((1 + text.count("\n")) * len(marker))
            indent = "\n" + " " * len(marker)
            yield marker + text.replace("\n", indent).replace(f"{indent}\n", "\n\n")

    def _table(self, element: Element) -> Iterator[str]:
        rows = [cells for row in _find_rows(element) if (cells := _find_cells(row))]
        if element.holds({"pre", "table"}) or max(map(len, rows), default=0) < 2:
            # A table used for layout, such as code beside line numbers.
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
            self._add(3 * max(width, len(line)))
            line += [""] * (width - len(line))
        lines.insert(1, ["---"] * len(lines[0]))
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _add(self, characters: int) -> None:
        """Count added markup; raise PageTooComplexError when it is out of proportion."""
        self._left -= characters
        if self._left < 0:
            raise PageTooComplexError("as Markdown it would be many times its size")

    def _text(self, children: Sequence[Element | str]) -> str:
        """Return inline children as Markdown."""
        return _tidy("".join(map(self._inline, children)))

    def _inline(self, child: Element | str) -> str:  # noqa: PLR0911 - one for each kind
        if isinstance(child, str):
            return _BLANK.sub(" ", child)
        if _is_skipped(child):
            return ""
        if child.tag == "br":
            return _BREAK
        if child.tag == "img":
            alt = " ".join(child.attributes.get("alt", "").split())
            return f"[{alt}]" if alt else ""
        if child.tag in _CODE:
            return _code_span(child.text())
        text = "".join(self._inline(inner) for inner in child.children)
        if child.tag in _MARKS:
            return _wrap(text, _MARKS[child.tag])
        return self._link(child, text) if child.tag == "a" else text

    def _link(self, element: Element, text: str) -> str:
        """Return a link of a text; the text alone if it leads to no page."""
        if _is_permalink(element, text):
            return ""
        href = element.attributes.get("href", "")
        link = page.absolute_link(self._base, href) if text.strip() else ""
        self._add(len(link))
        return f"[{text.strip()}]({link})" if link else text


def _tidy(text: str) -> str:
    """Return a text with blanks collapsed and line breaks in place of their placeholders."""
    lines = [_BLANK.sub(" ", line).strip() for line in text.split(_BREAK)]
    return "\n".join(line for line in lines if line)


def _wrap(text: str, mark: str) -> str:
    inner = text.strip()
    return text.replace(inner, f"{mark}{inner}{mark}", 1) if inner else text


def _code_span(text: str) -> str:
    text = _BLANK.sub(" ", text).strip()
    if not text:
        return ""
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _verbatim(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        elif child.tag == "br":
            yield "\n"
        elif not _is_skipped(child):
            yield from _verbatim(child)


def _plain(node: Element | str) -> str:
    """Return the visible text of a heading."""
    if isinstance(node, str):
        return node
    if _is_skipped(node):
        return ""
    text = " " if node.tag == "br" else "".join(map(_plain, node.children))
    return "" if _is_permalink(node, text) else text


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _is_skipped(element: Element) -> bool:
    """Tell whether an element is invisible, navigation, a form or a script."""
    attributes = element.attributes
    role = attributes.get("role")
    style = attributes.get("style", "").replace(" ", "").lower()
    is_hidden = "hidden" in attributes or "display:none" in style
    # Panels of tabs and accordions count as visible, though most are hidden at first.
    is_panel = role == "tabpanel" or attributes.get("hidden") == "until-found"
    return (
        element.tag in _SKIPPED
        or (is_hidden and not is_panel)
        or attributes.get("aria-hidden") == "true"
        or role in _SKIPPED_ROLES
        or (element.tag == "td" and "linenos" in element.classes())
        # VitePress's name of the language above a code block.
        or (element.tag == "span" and element.classes() == ["lang"])
        # rustdoc's "Expand description".
        or (element.tag == "summary" and "hideme" in element.classes())
    )


def _is_permalink(element: Element, text: str) -> bool:
    """Tell whether an element is a link of a heading to itself, or to its source code."""
    return element.tag == "a" and (
        not _PERMALINKS.isdisjoint(element.classes()) or text.strip() in _PERMALINK_TEXTS
    )


def _find_members(definitions: Element) -> Iterator[Element]:
    """Yield the terms and definitions of a list, including those grouped in a `div`."""
    for child in definitions.elements():
        if child.tag == "div":
            yield from _find_members(child)
        elif not _is_skipped(child):
            yield child


def _find_rows(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, without those of nested tables."""
    for child in table.elements():
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from _find_rows(child)


def _find_cells(row: Element) -> list[Element]:
    """Return the visible cells of a row."""
    return [c for c in row.elements() if c.tag in {"td", "th"} and not _is_skipped(c)]


def _find_language(element: Element) -> str:
    """Return the language that an element states for its code; empty without one."""
    named = element.attributes.get("data-lang") or element.attributes.get("data-language")
    found = _LANGUAGE.match(f"language-{named}" if named else "")
    found = found or next(filter(None, map(_LANGUAGE.match, element.classes())), None)
    return found[1].lower() if found else ""
