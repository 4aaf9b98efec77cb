"""Converting the main part of a web page to Markdown. Pure.

Words, headings, lists, tables, links, and code to the byte are kept. Invisible elements,
navigation, forms and scripts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from llm_kb.texts.html import page
from llm_kb.texts.html.code import find_language, find_row_groups
from llm_kb.texts.html.formulas import raise_text
from llm_kb.texts.html.tree import BLOCKS, HEADINGS, TEXT, Element, PageTooComplexError, parse_html

_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
# Classes of notes and warnings: Sphinx and MkDocs, Docusaurus, GitHub, VitePress, Starlight,
# VuePress, Asciidoctor.
_ADMONITIONS = frozenset(
    """
    admonition theme-admonition markdown-alert custom-block starlight-aside hint-container
    admonitionblock
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
_KINDS = frozenset({"note", "tip", "important", "warning", "caution", "danger"})
_ADMONITION_TITLE = re.compile(r"(?:^|[-_ ])(?:title|admonitionHeading)")
_NO_LANGUAGE = frozenset({"default", "none", "notranslate"})
_BLANK = re.compile(r"[ \t\r\n\f]+")
_SIGN = re.compile(r"#{1,6} ")
_ITEM = re.compile(r"(?:-|[0-9a-zA-Z]{1,9}\.) ")
_RAISED = {"sup": "^", "sub": "_"}
_AROUND_BRACKETS = re.compile(r" (?=[(),])|(?<=[(*&]) ")
_WAITING = re.compile(r"\W*(?:loading|redirecting|please wait)\W*", re.IGNORECASE)
_BREAK = "\x00"
"""Placeholder for a line break while blanks are collapsed."""

ADDED_PER_CHARACTER = 5
"""Characters of markup that Markdown may add for each character of the page."""

MAX_COLUMNS = 100
"""Most columns to which short rows of a table are filled up, or which a cell spans."""

_MAX_REPEATED = 200
"""Longest text of a cell that is repeated in each row that it spans."""


def html_to_markdown(html: str, url: str) -> str:
    """Return the main part of a page as Markdown, with links made absolute by `url`.

    Raises PageTooComplexError.
    """
    return tree_to_markdown(parse_html(html), url, len(html))


def tree_to_markdown(root: Element, url: str, size: int) -> str:
    """Return the main part of a parsed page of a size, as `html_to_markdown` does."""
    writer = _Writer(page.page_base(root, url), size)
    blocks = list(writer.blocks(page.find_main(root).children))
    if all(_WAITING.fullmatch(block) for block in blocks):
        return ""  # a page that a script fills
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
        elif tag == "table" or (rows := _find_grid(element)):
            yield from self._table(element, [] if tag == "table" else rows)
        elif tag == "blockquote":
            yield from self._quote(list(self.blocks(element.children)))
        elif kind := _find_note(element):
            yield from self._admonition(element, kind)
        elif tag == "hr":
            yield "---"
        elif tag == "div" and "title" in element.classes() and not element.holds(BLOCKS):
            yield from (f"**{text}**" for text in self._paragraph(element.children))  # Asciidoctor
        else:
            outer = self._language
            self._language = find_language(element) or outer
            yield from self.blocks(element.children)
            self._language = outer

    def _heading(self, element: Element, level: int) -> Iterator[str]:
        """Yield a heading as plain text: signatures are full of links to types."""
        text = " ".join(_plain(element).replace(_BREAK, " ").split())
        if text := text or " ".join(self._text(element.children).split()):
            yield f"{'#' * level} {text}"

    def _fence(self, element: Element) -> Iterator[str]:
        """Yield preformatted text as a fence of more backticks than the text has in a row."""
        text = element.text()
        if text.strip():
            fence = "`" * max(3, _longest_run(text) + 1)
            language = find_language(element) or self._language
            self._add(2 * len(fence) + len(language))
            yield f"{fence}{'' if language in _NO_LANGUAGE else language}\n{text}\n{fence}"

    def _quote(self, blocks: Sequence[str]) -> Iterator[str]:
        if blocks:
            text = "\n\n".join(blocks)
            self._add(2 * (1 + text.count("\n")))
            yield "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))

    def _admonition(self, element: Element, kind: str) -> Iterator[str]:
        """Yield a note or warning as a quote that begins with its title, else with its kind."""
        children = list(element.children)
        title: list[str] = []
        for first in element.elements()[:1]:
            if first.tag == "summary" or _ADMONITION_TITLE.search(" ".join(first.classes())):
                title = [f"**{line}**"] if (line := first.line()) else []
                children.remove(first)
        blocks = list(self.blocks(children))
        if blocks and not title and kind not in blocks[0][: 2 * len(kind)].lower():
            title = [f"**{kind.capitalize()}**"] if kind in _KINDS else []
        yield from self._quote([*title, *blocks])

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
        numbers = _Numbers(element)
        for child in element.children:
            inner: Sequence[Element | str] = [child]
            if isinstance(child, Element) and child.tag == "li":
                inner = child.children
            blocks = list(self.blocks(inner))
            items += self._item(numbers.next_marker(child) if blocks else "", blocks)
        if items:
            is_loose = any("\n\n" in item for item in items)
            yield ("\n\n" if is_loose else "\n").join(items)

    def _item(self, marker: str, blocks: Sequence[str]) -> Iterator[str]:
        """Yield an item of a list, unless it is empty."""
        if blocks:
            is_simple = all("\n\n" not in block for block in blocks)
            # A list after a single paragraph follows it without a blank line.
            is_tight = is_simple and len(blocks) == 2 and _ITEM.match(blocks[1]) is not None
            text = ("\n" if is_tight else "\n\n").join(blocks)
            self._add((1 + text.count("\n")) * len(marker))
            indent = "\n" + " " * len(marker)
            yield marker + text.replace("\n", indent).replace(f"{indent}\n", "\n\n")

    def _table(self, element: Element, grid: Sequence[Sequence[Element]]) -> Iterator[str]:
        for caption in (child for child in element.elements() if child.tag == "caption"):
            yield from self.blocks(caption.children)
        yield from self._paragraph([each for each in element.children if isinstance(each, str)])
        groups: Sequence[Sequence[Sequence[Element]]] = [grid]
        if not grid:
            found = find_row_groups(element)
            groups = [[cells for row in group if (cells := _find_cells(row))] for group in found]
        rows = [row for group in groups for row in group]
        if _is_signature(rows):
            yield _code_span(_join_signature(rows))
            return
        titles = [row for row in rows if len(row) == 1 and row[0].holds(HEADINGS)]
        if titles and not element.holds({"table"}):
            yield from self._parts_of_table(rows)
            return
        if max(map(len, rows), default=0) < 2 or (not grid and _is_layout(element, rows)):
            for cell in (cell for row in rows for cell in row):
                yield from self.blocks(cell.children)
            return
        lines = [line for group in groups for line in self._lines(group)]
        width = min(max(map(len, lines)), MAX_COLUMNS)
        if not _has_header(element, rows[0]):
            lines.insert(0, [])
        for line in lines:
            self._add(3 * max(width, len(line)))
            line += [""] * (width - len(line))
        lines.insert(1, ["---"] * len(lines[0]))
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _parts_of_table(self, rows: Sequence[Sequence[Element]]) -> Iterator[str]:
        """Yield a table that headings divide as several."""
        part: list[Sequence[Element]] = []
        for row in (*rows, ()):
            if not row or (len(row) == 1 and row[0].holds(HEADINGS)):
                yield from self._table(Element("div"), part) if part else ()
                yield from self.blocks(row[0].children if row else ())
                part = []
            elif any(cell.holds({TEXT}) for cell in row):
                part.append(row)

    def _lines(self, rows: Sequence[Sequence[Element]]) -> Iterator[list[str]]:
        """Yield the texts of rows, with those of cells that span several in each of them."""
        spanning: dict[int, tuple[int, str]] = {}
        for row in rows:
            line: list[str] = []
            for cell in row:
                self._fill(line, spanning)
                text = self._cell(cell)
                kept = text if len(text) <= _MAX_REPEATED else ""
                height = _span(cell, "rowspan", len(rows)) or len(rows)
                for column in range(min(_span(cell, "colspan", MAX_COLUMNS) or 1, MAX_COLUMNS)):
                    if height > 1:
                        spanning[len(line)] = (height - 1, kept)
                    self._add(3)
                    is_repeated = column and cell.tag == "th"
                    line.append(text if not column else kept if is_repeated else "")
            self._fill(line, spanning)
            yield line

    def _fill(self, line: list[str], spanning: dict[int, tuple[int, str]]) -> None:
        """Add the cells of rows above that reach into a line at its end."""
        while span := spanning.pop(len(line), None):
            left, text = span
            if left > 1:
                spanning[len(line)] = (left - 1, text)
            self._add(3 + len(text))
            line.append(text)

    def _cell(self, cell: Element) -> str:
        """Return a cell in one line; code in it becomes words of code."""
        blocks = [_SIGN.sub("", each) for each in self.blocks(_with_inline_code(cell).children)]
        return _tidy(" ".join(blocks)).replace("\n", " ").replace("|", "\\|")

    def _add(self, characters: int) -> None:
        """Count added markup; raise PageTooComplexError when it is out of proportion."""
        self._left -= characters
        if self._left < 0:
            raise PageTooComplexError("as Markdown it would be many times its size")

    def _text(self, children: Sequence[Element | str]) -> str:
        """Return inline children as Markdown."""
        return _tidy(self._inner(children))

    def _inner(self, children: Sequence[Element | str]) -> str:
        return _join(children, self._inline)

    def _inline(self, child: Element | str) -> str:
        if isinstance(child, str):
            return _BLANK.sub(" ", child)
        if child.tag == "br":
            return _BREAK
        if child.tag == "img":
            alt = " ".join(child.attributes.get("alt", "").split())
            return f"[{alt}]" if alt else ""
        if child.tag in _CODE:
            text = _plain(child)
            return _BREAK.join(filter(None, map(_code_span, text.split(_BREAK)))) or text[:1]
        text = self._inner(child.children)
        if child.tag in _MARKS:
            return _wrap(text, _MARKS[child.tag])
        return self._link(child, text) if child.tag == "a" else text

    def _link(self, element: Element, text: str) -> str:
        """Return a link of a text; the text alone if it leads to no page."""
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


def _plain(node: Element | str) -> str:
    """Return the text of a heading or of code, with powers, and placeholders for line breaks."""
    if isinstance(node, str):
        return node
    if node.tag == "br":
        return _BREAK
    text = _join(node.children, _plain)
    return f" {text} " if node.tag in BLOCKS else text


def _join(nodes: Sequence[Element | str], write: Callable[[Element | str], str]) -> str:
    """Return what is written of nodes, with powers and indices behind what they belong to."""
    parts: list[str] = []
    for node in nodes:
        text = write(node)
        if parts and isinstance(node, Element) and node.tag in _RAISED:
            text = raise_text(parts[-1], text, _RAISED[node.tag])
        if text:
            parts.append(text)
    return "".join(parts)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _find_members(definitions: Element) -> Iterator[Element]:
    """Yield the terms and definitions of a list, including those grouped in a `div`."""
    for child in definitions.elements():
        if child.tag == "div":
            yield from _find_members(child)
        else:
            yield child


def _find_note(element: Element) -> str:
    """Return the kind of a note or warning; empty for other elements."""
    names = element.classes()
    kinds = [name.rpartition("-")[2] for name in names if name.rpartition("-")[2] in _KINDS]
    is_named = not _ADMONITIONS.isdisjoint(names) or (element.tag == "div" and "alert" in names)
    if is_named or (element.tag == "div" and not _KINDS.isdisjoint(names)):
        return next(iter(kinds), "note" if is_named else "")
    return ""


def _find_grid(element: Element) -> list[list[Element]]:
    """Return the rows of a table that is written without `table`: by role, or by its columns."""
    if element.attributes.get("role") in {"table", "grid", "treegrid"}:
        inner = chain.from_iterable((each, *each.elements()) for each in element.elements())
        rows = [each for each in inner if each.attributes.get("role") == "row"]
        return [[cell for cell in row.elements() if _is_cell(cell)] for row in rows]
    found: list[list[Element]] = [[]]
    for child in element.elements():
        names = child.classes()
        if not any(name.startswith("col-") for name in names):
            return []
        found[-1].append(child)
        found += [[]] if "col-last" in names else []
    return found[:-1]


def _is_cell(element: Element) -> bool:
    return element.attributes.get("role") in {"cell", "gridcell", "columnheader", "rowheader"}


def _is_signature(rows: Sequence[Sequence[Element]]) -> bool:
    """Tell whether the cells of a table are the pieces of one declaration."""
    return {"(", ")"} <= {cell.peek(8) for row in rows for cell in row}


def _join_signature(rows: Sequence[Sequence[Element]]) -> str:
    text = " ".join(" ".join(map(_plain, row)) for row in rows)
    return _AROUND_BRACKETS.sub("", " ".join(text.split()))


def _find_cells(row: Element) -> list[Element]:
    return [cell for cell in row.elements() if cell.tag in {"td", "th"}]


def _is_layout(table: Element, rows: Sequence[Sequence[Element]]) -> bool:
    """Tell whether a table places blocks side by side, such as code beside its numbers."""
    is_line = len(rows) == 1 and all(cell.tag == "td" for cell in rows[0])
    is_stated = table.attributes.get("role") in {"presentation", "none"}
    if table.holds({"table"}) or is_stated or is_line:
        return True
    if not table.holds({"pre"}):
        return False
    has_names = next(table.find("th"), None) is not None
    return not has_names or any("\n" in code.text() for code in table.find("pre"))


def _has_header(table: Element, first: Sequence[Element]) -> bool:
    """Tell whether the first row names the columns; else its `th` names the row alone."""
    if any(child.tag == "thead" for child in table.elements()):
        return True
    data = [cell for cell in first if cell.tag == "td" and cell.holds({TEXT})]
    return not data or len(data) == len(first)


def _span(cell: Element, name: str, most: int) -> int:
    """Return how many rows or columns a cell spans; 0 is all that follow."""
    value = cell.attributes.get(name, "").strip()
    return min(int(value), most) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def _with_inline_code(cell: Element) -> Element:
    """Return a cell with its lines of code in place of blocks."""
    if cell.tag != "pre" and not cell.holds({"pre"}):
        return cell
    inside = cell.inside - {"pre"}
    if cell.tag == "pre":
        return Element("p", {}, [Element("code", {}, cell.children, inside)], inside)
    children = [
        _with_inline_code(child) if isinstance(child, Element) else child for child in cell.children
    ]
    return Element(cell.tag, cell.attributes, children, cell.inside)


class _Numbers:
    """The markers of the items of a list."""

    def __init__(self, element: Element) -> None:
        self._is_ordered = element.tag == "ol"
        self._next = _number(element.attributes.get("start", ""), 1)

    def next_marker(self, item: Element | str) -> str:
        """Return the marker of the next item."""
        if not self._is_ordered:
            return "- "
        value = item.attributes.get("value", "") if isinstance(item, Element) else ""
        number = _number(value, self._next)
        self._next = number + 1
        return f"{number}. "


def _number(text: str, default: int) -> int:
    """Return a number that Markdown has for items; a default for any other text."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else default
