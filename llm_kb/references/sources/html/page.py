"""A page's title, main part, own address, links, and labels of tabs. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from llm_kb.references.sources.html.tree import Element
from llm_kb.references.sources.http import join_url

MAX_LINK = 2_000
"""Characters of a link; longer ones, and longer `<base>`, are passed over."""


_NAMESPACE = re.compile(r"ns-(-?\d{1,5})")
_REFRESH = re.compile(r"""\s*[0-5](?:\.\d*)?\s*[;,]\s*url\s*=\s*["']?([^"']+)""", re.IGNORECASE)


def page_title(root: Element) -> str:
    """Return the text of `<title>` in one line."""
    return next((element.line() for element in root.find("title")), "")


def page_base(root: Element, url: str) -> str:
    """Return what relative links of a page start from: its `<base>`, else its own `url`."""
    found = next((e.attributes["href"] for e in root.find("base") if "href" in e.attributes), "")
    return absolute_link(url, found) or url


def page_links(root: Element, url: str) -> list[str]:
    """Return where a page's links lead, absolute, without #fragments, each once."""
    base = page_base(root, url)
    # mdBook has its contents in a frame, for readers without scripts.
    names = {"a": "href", "iframe": "src"}
    links = (
        absolute_link(base, e.attributes.get(names[e.tag], ""))
        for e in root.find(*names)
        if "wikilink2" not in e.classes()  # a page that DokuWiki has not, and offers to write
    )
    return list(dict.fromkeys(link.partition("#")[0] for link in links if link))


def canonical_link(root: Element, url: str) -> str | None:
    """Return the address that a page gives as its own."""
    for element in root.find("link"):
        if "canonical" in element.attributes.get("rel", "").lower().split():
            link = element.attributes.get("href", "")
            return absolute_link(page_base(root, url), link) or None
    return None


def is_wiki_aside(root: Element) -> bool:
    """Tell whether MediaWiki made a page for itself: a list, a discussion, a user, a file."""
    body = next(iter(root.find("body")), root)
    numbers = (_NAMESPACE.fullmatch(name) for name in body.classes())
    number = next((int(found[1]) for found in numbers if found), 0)
    # Pages, those on the project, help and categories; from 100 on, those of the wiki's own.
    return number not in {0, 4, 12, 14} and (number < 100 or number % 2 == 1)


def refresh_target(root: Element, url: str) -> str | None:
    """Return the page that one sends its readers on to at once; the part after `#` is left out."""
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
    """Return the element that holds the content: `main`, the `article`s, else the page."""
    mains = [e for e in root.walk() if e.tag == "main" or e.attributes.get("role") == "main"]
    main = max(mains, key=lambda element: len(element.text()), default=None)
    # An empty shell that a script would fill is not a main part.
    if main and main.text().strip():
        return main
    articles = {id(e) for e in root.find("article") if e.text().strip()}
    found = root
    while articles and (inner := _child_with(found, articles)):
        found = inner
    return found


def _child_with(element: Element, wanted: set[int]) -> Element | None:
    """Return the child that is or holds all the elements of these ids."""
    return next((c for c in element.elements() if wanted <= {id(e) for e in c.walk()}), None)


# The panels of MkDocs Material and of sphinx-design.
_PANELS = frozenset({"tabbed-block", "sd-tab-content"})


class TabLabels:
    """Gives each panel its label: the one it names, else the next of the bar before it.

    Elements are shown in the order of the page; tabs may be within tabs.
    """

    def __init__(self, root: Element) -> None:
        named = (e for e in root.walk() if e.attributes.get("role") == "tab")
        self._by_id = {e.attributes["id"]: e for e in named if "id" in e.attributes}
        self._bars: list[tuple[bool, list[str]]] = []
        """Labels that wait for their panels, and whether these are blocks of code."""

    def take(self, element: Element) -> bool:
        """Tell whether an element is a bar of labels, and keep those for the panels that follow."""
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
