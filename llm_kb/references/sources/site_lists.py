"""The addresses in a site's lists of its pages: `llms.txt` and sitemaps. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

# A link in Markdown, a definition of one, or an address as it is.
_LINK = re.compile(
    r"\]\([ \t]{0,100}(?:<(?P<angled>[^<>\n]{1,2000})>"
    r"|(?P<plain>(?:[^\s()<]|\([^\s()]{0,500}\)){1,2000}))"
    r"|^ {0,3}\[[^\]\[^\n][^\]\[\n]{0,300}\]:[ \t]{0,100}<?(?P<defined>[^\s<>]{1,2000})"
    r"|(?P<bare>https?://[^\s<>\[\]\"'`|]{1,2000})",
    re.MULTILINE | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LOCATION = re.compile(r"<loc>\s{0,1000}(?:<!\[CDATA\[\s{0,1000})?([^<\s]{1,2000})", re.IGNORECASE)
_INDEX = re.compile(r"<(?:\w{1,20}:)?sitemapindex[\s>]", re.IGNORECASE)


def find_links(text: str) -> Iterator[str]:
    """Yield the addresses that a text in Markdown links to or contains, in their order."""
    for link in _LINK.finditer(text):
        if bare := link["bare"]:
            yield _trim(bare)
        else:
            yield _ESCAPE.sub(r"\1", link["angled"] or link["plain"] or link["defined"])


def _trim(address: str) -> str:
    """Return an address without the signs of the sentence around it."""
    address = address.rstrip(".,;:!?*_~")
    if address.endswith(")") and address.count("(") < address.count(")"):
        return address[:-1].rstrip(".,;:!?*_~")
    return address


def find_locations(sitemap: str) -> list[str]:
    """Return the addresses in a sitemap, of pages or of other sitemaps, or one on each line."""
    if "<" not in sitemap:
        return [line for line in map(str.strip, sitemap.splitlines()) if line]
    found = (location.removesuffix("]]>") for location in _LOCATION.findall(sitemap))
    return [unescape(location) for location in found if location]


def is_sitemap_index(text: str) -> bool:
    """Tell whether a sitemap lists other sitemaps."""
    return bool(_INDEX.search(text[:2_000]))
