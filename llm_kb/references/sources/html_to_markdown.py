"""A web page as Markdown: its main part, with headings, code, lists and tables kept.

Pure. What is invisible or only for moving about (navigation, forms, scripts) is
left out; the words, the code to the byte, and where links lead are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from llm_kb.references.sources.html_tree import BLOCKS, Element, parse_html
from llm_kb.references.sources.http import join_url

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
# What documentation tools put beside a heading to link to it.
_PERMALINKS = frozenset(
    {"headerlink", "permalink", "anchor", "anchor-link", "hash-link", "header-anchor"}
)
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|highlight)-([A-Za-z0-9+#-]+)")
_BLANK = re.compile(r"[ \t\r\n\f]+")
_BREAK = "\x00"
"""Stands for a forced line break while blanks are collapsed."""


def html_to_markdown(html: str, url: str) -> str:
    """Return the main part of a page as Markdown; links become absolute by `url`."""
    root = parse_html(html.replace(_BREAK, ""))
    writer = _Writer(page_base(root, url))
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
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in _SKIPPED_ROLES
        or "display:none" in attributes.get("style", "").replace(" ", "").lower()
        or (element.tag == "td" and "linenos" in element.classes())
    )


def _is_permalink(element: Element) -> bool:
    return element.tag == "a" and (
        not _PERMALINKS.isdisjoint(element.classes()) or element.text().strip() in {"¶", "#", "§"}
    )


class _Writer:
    """Turns elements into blocks of Markdown; knows the level of the last heading."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._level = 1
        self._language = ""
        """What a highlighter says of the code around here."""

    def blocks(self, children: Sequence[Element | str]) -> Iterator[str]:
        """Yield the blocks of some children; neighbouring inline ones make a paragraph."""
        inline: list[Element | str] = []
        for child in children:
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
            # A line of text must not begin what is no heading, list or fence.
            yield re.sub(r"(?m)^(#{1,6} |>|[-+] |```|~~~)", r"\\\1", text)

    def _block(self, element: Element) -> Iterator[str]:
        tag = element.tag
        if tag in _HEADINGS:
            self._level = _HEADINGS[tag]
            yield from self._heading(element, self._level)
        elif tag == "pre":
            yield from _fence(element, self._language)
        elif tag in {"ul", "ol"}:
            yield from self._list(element)
        elif tag == "table":
            yield from self._table(element)
        elif tag == "blockquote":
            quoted = "\n\n".join(self.blocks(element.children))
            if quoted:
                yield "\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))
        elif tag == "dt" and element.attributes.get("id"):
            # The signature of a documented name: what it says belongs below it.
            yield from self._heading(element, min(self._level + 1, 6))
        elif tag == "hr":
            yield "---"
        else:
            outer = self._language
            self._language = _language(element) or outer
            yield from self.blocks(element.children)
            self._language = outer

    def _heading(self, element: Element, level: int) -> Iterator[str]:
        text = _tidy("".join(self._inline(child) for child in element.children))
        if text:
            yield f"{'#' * level} {' '.join(text.split())}"

    def _list(self, element: Element) -> Iterator[str]:
        items = []
        number = 1
        for child in element.children:
            if not isinstance(child, Element) or _is_skipped(child):
                continue
            body = child.children if child.tag == "li" else [child]
            parts = list(self.blocks(body))
            if not parts:
                continue
            marker = f"{number}. " if element.tag == "ol" else "- "
            number += 1
            simple = all("\n\n" not in part for part in parts)
            text = ("\n" if simple and len(parts) == 2 and _is_list(parts[1]) else "\n\n").join(
                parts
            )
            items.append(marker + _indent(text, len(marker)))
        if items:
            loose = any("\n\n" in item for item in items)
            yield ("\n\n" if loose else "\n").join(items)

    def _table(self, element: Element) -> Iterator[str]:
        rows = [cells for row in _rows(element) if (cells := _cells(row))]
        if element.holds_pre or max(map(len, rows), default=0) < 2:
            # A table for looks, such as code beside its line numbers.
            for row in rows:
                for cell in row:
                    yield from self.blocks(cell.children)
            return
        width = max(map(len, rows))
        lines = [
            [
                _tidy(" ".join(self.blocks(cell.children))).replace("\n", " ").replace("|", "\\|")
                for cell in row
            ]
            for row in rows
        ]
        lines = [line + [""] * (width - len(line)) for line in lines]
        lines.insert(1, ["---"] * width)
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _inline(self, child: Element | str) -> str:  # noqa: PLR0911 - one for each kind
        if isinstance(child, str):
            return _BLANK.sub(" ", child)
        if _is_skipped(child) or _is_permalink(child):
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
        if child.tag == "a":
            link = absolute_link(self._base, child.attributes.get("href", ""))
            return f"[{text.strip()}]({link})" if link and text.strip() else text
        return text


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
        yield f"{fence}{_language(element) or _language(code) or around}\n{text}\n{fence}"


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


def page_title(root: Element) -> str:
    """Return the text of `<title>` in one line."""
    found = next((e for e in root.walk() if e.tag == "title"), None)
    return " ".join(found.text().split()) if found else ""


def page_base(root: Element, url: str) -> str:
    """Return what relative links of a page start from: its `<base>`, else its own `url`."""
    found = next((e for e in root.walk() if e.tag == "base" and "href" in e.attributes), None)
    return (absolute_link(url, found.attributes["href"]) or url) if found else url


def page_links(root: Element, url: str) -> list[str]:
    """Return where a page's links lead, absolute, without #fragments, each once."""
    base = page_base(root, url)
    links = (absolute_link(base, e.attributes.get("href", "")) for e in root.walk() if e.tag == "a")
    return list(dict.fromkeys(link.partition("#")[0] for link in links if link))


def markdown_alternate(root: Element, url: str) -> str | None:
    """Return the address of the page's own Markdown, where it names one."""
    for element in root.walk():
        attributes = element.attributes
        if (
            element.tag == "link"
            and "alternate" in attributes.get("rel", "").lower().split()
            and attributes.get("type", "").lower().startswith("text/markdown")
        ):
            return absolute_link(page_base(root, url), attributes.get("href", "")) or None
    return None


def absolute_link(base: str, href: str) -> str:
    """Return a link's absolute http(s) address; empty for any other kind."""
    link = join_url(base, href.strip()) if href.strip() else None
    return link if link and urlsplit(link).scheme in {"http", "https"} else ""


def find_main(root: Element) -> Element:
    """Return the element that holds the content: `main`, `article`, else the page."""
    best: Element | None = None
    for wanted in (_is_main, _is_article):
        candidates = [element for element in root.walk() if wanted(element)]
        best = max(candidates, key=lambda element: len(element.text()), default=None)
        # An empty shell that a script would fill is no main part.
        if best and best.text().strip():
            return best
    return root


def _is_main(element: Element) -> bool:
    return element.tag == "main" or element.attributes.get("role") == "main"


def _is_article(element: Element) -> bool:
    return element.tag == "article"
