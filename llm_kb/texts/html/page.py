"""A web page's title, main part and links. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import urlsplit

from llm_kb.texts.html.addresses import join_url
from llm_kb.texts.html.tree import END_OF_STREAMED, TEXT, Element, is_hidden, is_template
from llm_kb.texts.html.visible import find_visible

MAX_LINK = 2_000
"""Longest link, in characters; longer links and `<base>` addresses are ignored."""

MAX_LINKS = 5_000
"""The most links of a page that are followed."""

_APART = frozenset({"aside", "noscript", "svg", "template"})
"""Elements in which no main part is looked for."""

_MOST_STREAMED = 1_000
_SLOT = re.compile(r"(.{0,40})[BP]:(\w{1,40})")

_REFRESH = re.compile(r"""\s*[0-5](?:\.\d*)?\s*[;,]\s*url\s*=\s*["']?([^"']+)""", re.IGNORECASE)


def page_title(root: Element) -> str:
    """Return the text of `<title>` in one line."""
    return next((element.line() for element in _find_outermost(root, "title")), "")


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
    """Return what is seen of the main part of a page: every `main`, else its `article`s, else all.

    Articles that have less of the text than what is around them are teasers. A page without text
    is a shell that a script fills.
    """
    _place_streamed(root)
    mains = [*_find_outermost(root, "main")]
    shown = [main for main in mains if not is_hidden(main)] or mains
    parts = [part for part in map(find_visible, shown) if part.holds({TEXT})]
    if parts:
        return _join(parts)
    page = find_visible(root)
    articles = [part for part in _find_outermost(page, "article") if part.holds({TEXT})]
    weight = sum(len(part.text()) for part in articles)
    return _join(articles) if 2 * weight > len(page.text()) else page


def _place_streamed(root: Element) -> None:
    """Put the parts that React sends behind a page into their places, as its script does.

    `<template id="B:0">`, and what is shown meanwhile, stands for the hidden element `S:0`.
    """
    elements = [*root.all_elements()]
    hidden = (e for e in elements if "S:" in e.attributes.get("id", "") and is_hidden(e))
    parts = {e.attributes["id"]: e for e in islice(hidden, _MOST_STREAMED)}
    left = dict(parts)
    for parent in elements if parts else ():
        ends: list[int] = []
        for at in reversed(range(len(parent.children))):
            child = parent.children[at]
            name = child.attributes.get("id", "") if is_template(child) else ""
            slot = _SLOT.fullmatch(name)
            if name == END_OF_STREAMED:
                ends.append(at)
            elif slot and (part := left.pop(f"{slot[1]}S:{slot[2]}", None)):
                end = ends.pop() if ends else at
                parent.children[at : end + 1] = [Element("div", {}, part.children, part.inside)]
    for part in parts.values():
        part.children = []


def _join(parts: Sequence[Element]) -> Element:
    inside = frozenset().union(*(part.inside for part in parts), *({part.tag} for part in parts))
    return parts[0] if len(parts) == 1 else Element("div", {}, [*parts], inside)


def _find_outermost(root: Element, name: str) -> Iterator[Element]:
    """Yield the elements with a tag or role that are not in another one, nor in an `aside`."""
    stack = [root]
    while stack:
        element = stack.pop()
        if name in {element.tag, element.attributes.get("role")}:
            yield element
        elif element.tag not in _APART:
            stack.extend(reversed(element.elements()))
