"""A page's title, main part, canonical address and links. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import urlsplit

from llm_kb.converters.addresses import join_url
from llm_kb.converters.html_tree import TEXT, Element

MAX_LINK = 2_000
"""Longest link, in characters; longer links and `<base>` addresses are ignored."""

MAX_LINKS, MAX_LINK_CHARACTERS = 5_000, 1_000_000
"""The most links of a page that are followed, and their characters with their base."""

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
    links: dict[str, None] = {}
    left = MAX_LINK_CHARACTERS
    for element in islice(root.find(*names), 2 * MAX_LINKS):
        link = absolute_link(base, element.attributes.get(names[element.tag], "")).partition("#")[0]
        left -= len(link)
        if left < 0 or len(links) == MAX_LINKS:
            break
        if link:
            links[link] = None
    return list(links)


def canonical_link(root: Element, url: str) -> str | None:
    """Return the canonical address that a page states; None without one."""
    for element in root.find("link"):
        if "canonical" in element.attributes.get("rel", "").lower().split():
            link = element.attributes.get("href", "")
            return absolute_link(page_base(root, url), link) or None
    return None


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
    main = max(_find_mains(root), key=lambda element: len(element.text()), default=None)
    # A main part without text is a shell that a script fills.
    if main and main.holds({TEXT}):
        return main
    articles = [element for element in root.find("article") if element.holds({TEXT})]
    if not articles:
        return root
    parents = {id(child): element for element in root.walk() for child in element.elements()}
    around = {id(element) for element in _find_ancestors(articles[-1], parents)}
    return next(e for e in _find_ancestors(articles[0], parents) if id(e) in around)


def _find_mains(root: Element) -> Iterator[Element]:
    """Yield the main elements that are not in another one."""
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag == "main" or element.attributes.get("role") == "main":
            yield element
        else:
            stack.extend(reversed(element.elements()))


def _find_ancestors(element: Element | None, parents: Mapping[int, Element]) -> Iterator[Element]:
    """Yield an element and those around it, the innermost first."""
    while element is not None:
        yield element
        element = parents.get(id(element))
