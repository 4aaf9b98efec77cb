"""What a page says of itself: its title, its main part, where its links lead. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from llm_kb.references.html_tree import Element
from llm_kb.references.links import join_url


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
