"""What a page says of itself: its title, its main part, its address, and where it leads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from llm_kb.references.sources.html.tree import Element
from llm_kb.references.sources.http import join_url

MAX_LINK = 2_000
"""Characters of a link; longer ones, and longer `<base>`, are passed over."""


_REFRESH = re.compile(r"""\s*[0-5](?:\.\d*)?\s*[;,]\s*url\s*=\s*["']?([^"']+)""", re.IGNORECASE)


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
    # mdBook has its contents in a frame, for readers without scripts.
    names = {"a": "href", "iframe": "src"}
    links = (
        absolute_link(base, e.attributes.get(names[e.tag], ""))
        for e in root.walk()
        if e.tag in names
    )
    return list(dict.fromkeys(link.partition("#")[0] for link in links if link))


def canonical_link(root: Element, url: str) -> str | None:
    """Return the address that a page says is its own."""
    return next((link for _, link in _links_of(root, url, "canonical")), None)


def markdown_alternate(root: Element, url: str) -> str | None:
    """Return the address of the page's own Markdown, where it names one."""
    alternates = _links_of(root, url, "alternate")
    return next((link for kind, link in alternates if kind.startswith("text/markdown")), None)


def refresh_target(root: Element, url: str) -> str | None:
    """Return the page that one sends its readers on to at once; the part after `#` is left out."""
    for element in root.walk():
        attributes = element.attributes
        if element.tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            found = _REFRESH.match(attributes.get("content", "")[:MAX_LINK])
            link = absolute_link(page_base(root, url), found[1]) if found else ""
            return link.partition("#")[0] or None
    return None


def _links_of(root: Element, url: str, relation: str) -> Iterator[tuple[str, str]]:
    """Yield type and address of the `<link>` elements of a relation."""
    base = page_base(root, url)
    for element in root.walk():
        attributes = element.attributes
        if element.tag == "link" and relation in attributes.get("rel", "").lower().split():
            link = absolute_link(base, attributes.get("href", ""))
            if link:
                yield attributes.get("type", "").lower(), link


def absolute_link(base: str, href: str) -> str:
    """Return a link's absolute http(s) address; empty for any other kind."""
    if not href.strip() or len(href) > MAX_LINK:
        return ""
    link = join_url(base, href.strip())
    fits = link is not None and len(link) <= MAX_LINK
    return link if link and fits and urlsplit(link).scheme in {"http", "https"} else ""


def find_main(root: Element) -> Element:
    """Return the element that holds the content: `main`, the `article`s, else the page."""
    mains = [e for e in root.walk() if e.tag == "main" or e.attributes.get("role") == "main"]
    main = max(mains, key=lambda element: len(element.text()), default=None)
    # An empty shell that a script would fill is not a main part.
    if main and main.text().strip():
        return main
    articles = [e for e in root.walk() if e.tag == "article" and e.text().strip()]
    return _common_ancestor(root, articles) if articles else root


def _common_ancestor(root: Element, elements: list[Element]) -> Element:
    """Return the innermost element that holds all of these, or is the only one of them."""
    parents = {
        id(child): parent
        for parent in root.walk()
        for child in parent.children
        if isinstance(child, Element)
    }
    paths = []
    for element in elements:
        path = [element]
        while path[-1] is not root:
            path.append(parents[id(path[-1])])
        paths.append(path[::-1])
    common = root
    for level in zip(*paths, strict=False):
        if any(element is not level[0] for element in level):
            break
        common = level[0]
    return common
