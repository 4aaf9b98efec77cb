"""A web page's title, main part and links. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlsplit

from llm_kb.texts.html.addresses import join_url
from llm_kb.texts.html.tree import TEXT, Element

MAX_LINK = 2_000
"""Longest link, in characters; longer links and `<base>` addresses are ignored."""

MAX_LINKS = 5_000
"""The most links of a page that are followed."""

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
    elements = islice(root.find(*names), 2 * MAX_LINKS)
    hrefs = (element.attributes.get(names[element.tag], "") for element in elements)
    links = dict.fromkeys(absolute_link(base, href).partition("#")[0] for href in hrefs)
    return list(filter(None, links))[:MAX_LINKS]


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
    """Return an element with the content: the longest `main`, else all `article`s, else the page.

    One without text is a shell that a script fills.
    """
    mains, articles = (
        [element for element in _find_outermost(root, name) if element.holds({TEXT})]
        for name in ("main", "article")
    )
    if mains:
        return max(mains, key=lambda element: len(element.text()))
    return Element("div", children=[*articles]) if articles else root


def _find_outermost(root: Element, name: str) -> Iterator[Element]:
    """Yield the elements with a tag or role that are not in another one."""
    stack = [root]
    while stack:
        element = stack.pop()
        if name in {element.tag, element.attributes.get("role")}:
            yield element
        else:
            stack.extend(reversed(element.elements()))
