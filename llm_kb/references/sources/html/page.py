"""A page's title, main part, canonical address, links and tab labels. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from llm_kb.references.sources.html.tree import Element
from llm_kb.references.sources.http import join_url

MAX_LINK = 2_000
"""Longest link, in characters; longer links and `<base>` addresses are ignored."""


_NAMESPACE = re.compile(r"ns-(-?\d{1,5})")
_REFRESH = re.compile(r"""\s*[0-5](?:\.\d*)?\s*[;,]\s*url\s*=\s*["']?([^"']+)""", re.IGNORECASE)


def page_title(root: Element) -> str:
    """Return the text of `<title>` in one line."""
    return next((element.line() for element in root.find("title")), "")


def page_base(root: Element, url: str) -> str:
    """Return the base of a page's relative links: its `<base>`, else its `url`."""
    found = next((e.attributes["href"] for e in root.find("base") if "href" in e.attributes), "")
    return absolute_link(url, found) or url


def page_links(root: Element, url: str) -> list[str]:
    """Return the absolute targets of a page's links, without #fragments, each once."""
    base = page_base(root, url)
    # mdBook has its table of contents in a frame, for readers without scripts.
    names = {"a": "href", "iframe": "src"}
    links = (
        absolute_link(base, e.attributes.get(names[e.tag], ""))
        for e in root.find(*names)
        if "wikilink2" not in e.classes()  # a page that DokuWiki has not, and offers to write
    )
    return list(dict.fromkeys(link.partition("#")[0] for link in links if link))


def canonical_link(root: Element, url: str) -> str | None:
    """Return the canonical address that a page states; None without one."""
    for element in root.find("link"):
        if "canonical" in element.attributes.get("rel", "").lower().split():
            link = element.attributes.get("href", "")
            return absolute_link(page_base(root, url), link) or None
    return None


def is_wiki_aside(root: Element) -> bool:
    """Tell whether a page of MediaWiki is not content: a list, discussion, user or file."""
    body = next(iter(root.find("body")), root)
    numbers = (_NAMESPACE.fullmatch(name) for name in body.classes())
    number = next((int(found[1]) for found in numbers if found), 0)
    # Content, project, help and categories; the wiki's own namespaces start at 100.
    return number not in {0, 4, 12, 14} and (number < 100 or number % 2 == 1)


def refresh_target(root: Element, url: str) -> str | None:
    """Return the address that a page redirects to by `<meta>`, without its fragment."""
    for element in root.find("meta"):
        attributes = element.attributes
        if attributes.get("http-equiv", "").lower() == "refresh":
            found = _REFRESH.match(attributes.get("content", "")[:MAX_LINK])
            link = absolute_link(page_base(root, url), found[1]) if found else ""
            return link.partition("#")[0] or None
    return None


def absolute_link(base: str, href: str) -> str:
    """Return a link's absolute http(s) address; empty for any other kind."""
    if not href.strip() or len(href) > MAX_LINK:
        return ""
    link = join_url(base, href.strip()) or ""
    return link if len(link) <= MAX_LINK and urlsplit(link).scheme in {"http", "https"} else ""


def find_main(root: Element) -> Element:
    """Return the element that holds the content: `main`, else all `article`s, else the page."""
    mains = [e for e in root.walk() if e.tag == "main" or e.attributes.get("role") == "main"]
    main = max(mains, key=lambda element: len(element.text()), default=None)
    # A main part without text is a shell that a script fills.
    if main and main.text().strip():
        return main
    articles = {id(e) for e in root.find("article") if e.text().strip()}
    found = root
    while articles and (inner := _child_with(found, articles)):
        found = inner
    return found


def _child_with(element: Element, wanted: set[int]) -> Element | None:
    """Return the child that is or contains all elements of these ids."""
    return next((c for c in element.elements() if wanted <= {id(e) for e in c.walk()}), None)


# The panels of MkDocs Material and of sphinx-design.
_PANELS = frozenset({"tabbed-block", "sd-tab-content"})


class TabLabels:
    """The labels of tab panels: the one a panel names, else the next of the bar before it.

    Its methods must be called in the order of the page; tabs may be nested.
    """

    def __init__(self, root: Element) -> None:
        named = (e for e in root.walk() if e.attributes.get("role") == "tab")
        self._by_id = {e.attributes["id"]: e for e in named if "id" in e.attributes}
        self._bars: list[tuple[bool, list[str]]] = []
        """For each open bar: whether its panels are code blocks, and the labels left for them."""

    def take(self, element: Element) -> bool:
        """Tell whether an element is a bar of labels, and store them for the panels that follow."""
        classes = element.classes()
        is_for_code = "tabs" in classes and element.holds({"label"})
        if element.tag == "label" and "sd-tab-label" in classes:
            labels = [element]
        elif is_for_code or "tabbed-labels" in classes:
            labels = list(element.find("label"))
        elif element.attributes.get("role") == "tablist":
            labels = [e for e in element.walk() if e.attributes.get("role") == "tab"]
        else:
            return False
        self._bars.append((is_for_code, [label.line() for label in labels]))
        return True

    def label_of(self, element: Element) -> str:
        """Return the label of a panel; empty for any other element."""
        classes = element.classes()
        is_code = any(name.startswith("language-") for name in classes)
        is_panel = element.attributes.get("role") == "tabpanel" or not _PANELS.isdisjoint(classes)
        if not is_code and not is_panel:
            return ""
        named = self._by_id.get(element.attributes.get("aria-labelledby", ""))
        next_label = ""
        while self._bars and not self._bars[-1][1]:
            self._bars.pop()
        if self._bars and self._bars[-1][0] is not is_panel:
            next_label = self._bars[-1][1].pop(0)
        return named.line() if named else next_label
