"""Find the pages of a site that a page leads to, within limits and its robots.txt."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from protego import Protego

from llm_kb.references.errors import FetchError, NoPageError, PlanChangedError, refuse_hostile
from llm_kb.references.sources.http import PRODUCT, HttpPolicy, join_url
from llm_kb.references.sources.records import CrawlSource, PlannedPage
from llm_kb.references.sources.web import fetch_text, measure_page, read_links
from llm_kb.rendering.plain_text import count

_MARKDOWN_LINK = re.compile(r"\[[^\]\n]{0,300}\]\(([^()\s]{1,2000})\)")
_PAGES = frozenset(
    {"", "html", "htm", "md", "markdown", "txt", "xhtml", "php", "asp", "aspx", "rst"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """The pages found, and what the operator should know about how.

    `failed` says why, by address, for pages that may be there and cannot be had now.
    """

    pages: tuple[PlannedPage, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_pages(source: CrawlSource, policy: HttpPolicy, known: Collection[str] = ()) -> Crawl:
    """List the pages of a crawl with their sizes.

    A site that offers `llms.txt` has listed its pages for us. Elsewhere links are
    followed from page to page, `depth` deep: on the same host, and below the
    directory of the first page. Where what may lead to more cannot be read, the
    `known` pages, those of an earlier crawl, are looked for as well. Raises
    FetchError when the first page cannot be had.
    """
    if not source.max_pages:
        raise FetchError(source.url, "max_pages is 0; it must be at least 1")
    start = measure_page(source.url, policy)
    site = _Site(start.url, policy)
    if not site.allows(start.url):
        raise FetchError(source.url, "robots.txt of the site does not allow it")
    walk = _Walk(source, site, known)
    if listed := walk.read_list():
        walk.pages[start.url] = start
        walk.measure(listed)
    else:
        walk.follow(start.url)
    if walk.is_incomplete:
        walk.look_for_known()
    notes = ["pages as listed in llms.txt"] if listed else []
    return Crawl(
        pages=tuple(walk.pages.values()),
        failed=walk.failed,
        notes=(*notes, *walk.describe()),
    )


class _Site:
    """One host, what its robots.txt says, and the directory a crawl stays in."""

    def __init__(self, start: str, policy: HttpPolicy) -> None:
        split = urlsplit(start)
        self.policy = policy
        self.root = f"{split.scheme}://{split.netloc}"
        self.prefix = split.path.rpartition("/")[0] + "/"
        self.host = split.hostname or ""
        self.refused = 0
        place = f"{self.root}/robots.txt"
        with refuse_hostile(place):
            self._robots = Robots(fetch_text(place, policy) or "", PRODUCT)

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
        allowed = self._robots.allows(url)
        self.refused += not allowed
        return allowed

    def wait(self) -> None:
        """Keep the distance between requests that the site asks for."""
        if self._robots.delay:
            time.sleep(self._robots.delay)


class _Walk:
    """A crawl under way: the pages found, and those that failed, with the reason."""

    def __init__(self, source: CrawlSource, site: _Site, known: Collection[str]) -> None:
        self.pages: dict[str, PlannedPage] = {}
        self.failed: dict[str, str] = {}
        self._source = source
        self._known = known
        self._is_cut = False
        self._is_late = False
        self._unread: list[str] = []
        self._site = site
        self._asked: set[str] = set()

    @property
    def is_incomplete(self) -> bool:
        """Whether something that may lead to more pages could not be read."""
        return bool(self.failed or self._unread)

    def read_list(self) -> list[str]:
        """Return the pages of `llms.txt`; empty when there is no such list."""
        site = self._site
        for place in dict.fromkeys((f"{site.root}{site.prefix}llms.txt", f"{site.root}/llms.txt")):
            try:
                text = fetch_text(place, site.policy)
            except FetchError as error:
                self._unread.append(f"{place}: {error.reason}")
                continue
            if text and text.lstrip().startswith("#"):
                links = (join_url(place, link) for link in _MARKDOWN_LINK.findall(text))
                pages = dict.fromkeys(link.partition("#")[0] for link in links if link)
                return [page for page in pages if site.covers(page)]
        return []

    def measure(self, urls: Sequence[str]) -> None:
        """Weigh pages that are listed."""
        for url in urls:
            if url not in self.pages and self._has_room() and self._site.allows(url):
                self._visit(url, read=False)

    def follow(self, start: str) -> None:
        """Walk from page to page, breadth first; pages at the last level are only weighed."""
        seen = {start}
        level = [start]
        for depth in range(self._source.depth + 1):
            following: list[str] = []
            for url in level:
                if not self._has_room():
                    return
                if depth and not self._site.allows(url):
                    continue
                links = self._visit(url, read=depth < self._source.depth, is_start=not depth)
                fresh = [link for link in links if link not in seen and self._site.covers(link)]
                seen.update(fresh)
                following += fresh
            level = following

    def look_for_known(self) -> None:
        """Ask for pages that an earlier crawl found and this one may not have come to."""
        for url in self._known:
            if not self._has_room():
                return
            is_new = url not in self._asked and url not in self.pages
            if is_new and self._site.covers(url) and self._site.allows(url):
                self._visit(url, read=False)

    def describe(self) -> list[str]:
        """Return what was left out."""
        notes = [f"passed over: {problem}" for problem in self._unread]
        if self._is_late:
            notes.append(f"stopped after {count(len(self.pages), 'page')}: it took too long")
        if self._is_cut:
            notes.append(f"stopped at {self._source.max_pages} pages; max_pages allows more")
        if self.failed:
            url, reason = next(iter(self.failed.items()))
            what = f"{len(self.failed)} page(s) that cannot be fetched, such as {url}: {reason}"
            notes.append(f"left out: {what}")
        if self._site.refused:
            notes.append(f"left out: {self._site.refused} page(s) that robots.txt does not allow")
        return notes

    def _has_room(self) -> bool:
        # Those that fail count: they are pages, and asking for them may take long.
        self._is_late = time.monotonic() >= self._site.policy.until
        if self._is_late:
            return False
        self._is_cut = len(self.pages) + len(self.failed) >= self._source.max_pages
        return not self._is_cut and self._site.refused < MAX_REFUSED

    def _visit(self, url: str, *, read: bool, is_start: bool = False) -> Sequence[str]:
        """Ask for a page, keep what it weighs, and return where it leads if it is to be read."""
        self._asked.add(url)
        self._site.wait()
        hosts = {self._site.host}
        try:
            with refuse_hostile(url):
                if read:
                    page, links = read_links(url, self._site.policy, hosts=hosts)
                else:
                    page, links = measure_page(url, self._site.policy, hosts=hosts), []
        except FetchError as error:
            if is_start:
                raise
            # A dead link is not the operator's problem, nor is one that leaves the site; but a
            # page that was there may only be away, as behind a login.
            has_left = isinstance(error, PlanChangedError) and url not in self._known
            if not (has_left or isinstance(error, NoPageError)):
                self.failed[url] = error.reason
            return []
        self.pages.setdefault(page.url, page)
        return links


MAX_DELAY = 5.0
"""Seconds between requests that a site may ask for with Crawl-delay."""


MAX_WILDCARDS = 5_000
"""Signs of patterns in robots.txt: each of its rules is matched with each address."""

MAX_REFUSED = 5_000
"""Addresses that robots.txt may refuse before a crawl ends."""


class Robots:
    """The rules of one site for one client, as RFC 9309 reads them."""

    def __init__(self, text: str, agent: str) -> None:
        if text.count("*") + text.count("$") > MAX_WILDCARDS:
            raise ValueError(f"robots.txt has over {MAX_WILDCARDS:,} wildcards")
        self._agent = agent
        self._rules = Protego.parse(text)

    def allows(self, url: str) -> bool:
        """Tell whether a page may be fetched: the longest rule that matches decides."""
        return self._rules.can_fetch(url, self._agent)

    @property
    def delay(self) -> float:
        """How many seconds to keep between requests."""
        return min(self._rules.crawl_delay(self._agent) or 0.0, MAX_DELAY)
