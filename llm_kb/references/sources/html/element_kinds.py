"""The kinds of elements in web pages: skipped ones, permalinks, rows, languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_kb.references.sources.html.tree import Element

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


def is_skipped(element: Element) -> bool:
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


def is_permalink(element: Element) -> bool:
    """Tell whether an element is a link of a heading to itself, or to its source code."""
    return element.tag == "a" and (
        not _PERMALINKS.isdisjoint(element.classes()) or element.text().strip() in _PERMALINK_TEXTS
    )


def find_members(definitions: Element) -> Iterator[Element | str]:
    """Yield the terms and definitions of a list, including those grouped in a `div`."""
    for child in definitions.children:
        if isinstance(child, Element) and child.tag == "div" and not is_skipped(child):
            yield from find_members(child)
        elif isinstance(child, str) or not is_skipped(child):
            yield child


def find_rows(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, without those of nested tables."""
    for child in table.elements():
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from find_rows(child)


def find_cells(row: Element) -> list[Element]:
    """Return the visible cells of a row."""
    return [c for c in row.elements() if c.tag in {"td", "th"} and not is_skipped(c)]


def find_language(element: Element) -> str:
    """Return the language that an element states for its code; empty without one."""
    named = element.attributes.get("data-lang") or element.attributes.get("data-language")
    found = _LANGUAGE.match(f"language-{named}" if named else "")
    found = found or next(filter(None, map(_LANGUAGE.match, element.classes())), None)
    return found[1].lower() if found else ""
