"""Find the pages of a site that a page leads to, within limits and its robots.txt."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from llm_kb.references.errors import FetchError
from llm_kb.references.fetch_web import ACCEPT, HTML_TYPES, fetch_text, measure_page
from llm_kb.references.html_page import page_links
from llm_kb.references.html_tree import parse_html
from llm_kb.references.http import USER_AGENT, HttpPolicy, request
from llm_kb.references.plan import PlannedPage
from llm_kb.references.sources import CrawlSource

MAX_DELAY = 5.0
"""Seconds between requests that a site may ask for with Crawl-delay."""

_MARKDOWN_LINK = re.compile(r"\[[^\]\n]{0,300}\]\(([^()\s]{1,2000})\)")
_PAGES = frozenset(
    {"", "html", "htm", "md", "markdown", "txt", "xhtml", "php", "asp", "aspx", "rst"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """The pages found, and what the operator should know about how."""

    pages: tuple[PlannedPage, ...]
    notes: tuple[str, ...] = ()


def find_pages(source: CrawlSource, policy: HttpPolicy) -> Crawl:
    """List the pages of a crawl with their sizes.

    A site that offers `llms.txt` has listed its pages for us. Elsewhere links are
    followed from page to page, `depth` deep: on the same host, and below the
    directory of the first page.
    """
    start = measure_page(source.url, policy)
    site = _Site.open(start.url, policy)
    if not site.allows(start.url):
        raise FetchError(source.url, "robots.txt of the site does not allow it")
    listed = _listed_pages(site)
    if listed:
        found = _measure([start.url, *listed], source, site)
        notes = ["pages as listed in llms.txt"]
    else:
        found = _follow(start.url, source, site)
        notes = []
    pages = tuple(found)
    if len(pages) >= source.max_pages:
        notes.append(f"stopped at {source.max_pages} pages; max_pages allows more")
    if site.refused:
        notes.append(f"left out: {site.refused} page(s) that robots.txt does not allow")
    return Crawl(pages=pages, notes=tuple(notes))


class _Site:
    """One host, what its robots.txt says, and the directory a crawl stays in."""

    def __init__(self, start: str, policy: HttpPolicy, robots: RobotFileParser) -> None:
        split = urlsplit(start)
        self.policy = policy
        self.root = f"{split.scheme}://{split.netloc}"
        self.prefix = split.path.rpartition("/")[0] + "/"
        self.refused = 0
        self._robots = robots
        delay = robots.crawl_delay(USER_AGENT) or 0
        self._delay = min(float(delay), MAX_DELAY)

    @classmethod
    def open(cls, start: str, policy: HttpPolicy) -> _Site:
        """Read the robots.txt of the site a page is on."""
        split = urlsplit(start)
        robots = RobotFileParser()
        text = fetch_text(f"{split.scheme}://{split.netloc}/robots.txt", policy)
        robots.parse((text or "").splitlines())
        return cls(start, policy, robots)

    @property
    def hosts(self) -> frozenset[str]:
        """The one host that may be asked."""
        return frozenset({urlsplit(self.root).hostname or ""})

    def covers(self, url: str) -> bool:
        """Tell whether a link leads to a page of the crawl."""
        split = urlsplit(url)
        _, dot, extension = split.path.rpartition("/")[2].rpartition(".")
        # A number after a dot is a version, not an extension.
        is_page = not dot or not extension or extension.lower() in _PAGES or extension.isdigit()
        same = f"{split.scheme}://{split.netloc}" == self.root
        return same and split.path.startswith(self.prefix) and is_page

    def allows(self, url: str) -> bool:
        """Tell whether robots.txt lets us have a page."""
        allowed = self._robots.can_fetch(USER_AGENT, url)
        self.refused += not allowed
        return allowed

    def wait(self) -> None:
        """Keep the distance between requests that the site asks for."""
        if self._delay:
            time.sleep(self._delay)


def _listed_pages(site: _Site) -> list[str]:
    """Return the pages of `llms.txt`; empty when there is no such list."""
    for place in dict.fromkeys((f"{site.root}{site.prefix}llms.txt", f"{site.root}/llms.txt")):
        try:
            text = fetch_text(place, site.policy)
        except FetchError:
            continue
        if text and text.lstrip().startswith("#"):
            links = (
                urljoin(place, link).partition("#")[0] for link in _MARKDOWN_LINK.findall(text)
            )
            return [link for link in dict.fromkeys(links) if site.covers(link)]
    return []


def _measure(urls: list[str], source: CrawlSource, site: _Site) -> Iterator[PlannedPage]:
    count = 0
    for url in dict.fromkeys(urls):
        if count >= source.max_pages:
            return
        if not site.allows(url):
            continue
        page = _try_measure(url, site)
        if page:
            count += 1
            yield page


def _follow(start: str, source: CrawlSource, site: _Site) -> Iterator[PlannedPage]:
    """Walk from page to page, breadth first; pages at the last level are only measured."""
    seen = {start}
    level = [start]
    count = 0
    for depth in range(source.depth + 1):
        following: list[str] = []
        for url in level:
            if count >= source.max_pages:
                return
            if depth and not site.allows(url):
                continue
            page, links = _visit(url, site, read=depth < source.depth)
            if page is None:
                continue
            count += 1
            yield page
            fresh = [link for link in links if link not in seen and site.covers(link)]
            seen.update(fresh)
            following += fresh
        level = following


def _visit(url: str, site: _Site, *, read: bool) -> tuple[PlannedPage | None, list[str]]:
    """Return a page with its size and links; None for one that cannot be had."""
    if not read:
        return _try_measure(url, site), []
    site.wait()
    try:
        answer = request(url, site.policy, headers={"Accept": ACCEPT}, hosts=site.hosts)
    except FetchError:
        return None, []
    if answer.status >= 400 or not answer.content_type.startswith(("text/", "application/xhtml")):
        return None, []
    links: list[str] = []
    if answer.content_type in HTML_TYPES:
        links = page_links(parse_html(answer.body.decode("utf-8", "replace")), answer.url)
    return PlannedPage(url=answer.url, size=len(answer.body)), links


def _try_measure(url: str, site: _Site) -> PlannedPage | None:
    site.wait()
    try:
        page = measure_page(url, site.policy)
    except FetchError:
        return None  # a dead link is not the operator's problem
    return page if urlsplit(page.url).hostname in site.hosts else None
