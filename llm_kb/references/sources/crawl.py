"""Find the pages of a site that a page leads to, within limits and its robots.txt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from llm_kb.references import errors
from llm_kb.references.sources import web
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Policy, host_and_port, page_key
from llm_kb.references.sources.site import ELSEWHERE, USUAL_LIMITS, CrawlLimits, Site
from llm_kb.rendering.plain_text import count
from llm_kb.search.index.documents import describe_unread
from llm_kb.subjects.editions import Edition, describe_editions, find_editions, list_places
from llm_kb.texts.formats import is_unread_document
from llm_kb.texts.html.page import MAX_LINKS

Count = Callable[[int, int], None]
"""Called with the number of pages read so far and the number found so far."""


def find_pages(
    source: CrawlSource,
    policy: Policy,
    known: Mapping[str, web.Conditions] | None = None,
    progress: Count = lambda *_: None,
    limits: CrawlLimits = USUAL_LIMITS,
) -> Crawl:
    """Read the pages of a crawl.

    If a site has an `llms.txt`, its pages are those listed there. Otherwise links are
    followed from page to page, `depth` deep: on the same host, and below the
    directory of the first page. Versions and languages other than the first page's are left
    out unless `include` names pages.

    Pages of an earlier crawl that are `known` are requested conditionally where their links are
    not needed. Raises FetchError if the first page or `robots.txt` cannot be fetched.
    """
    start = web.find_page(source.url, policy)
    site = Site(_choose_base(source.url, start.url), source, policy, limits)
    if not site.allows(start.url):
        raise errors.FetchError(source.url, "robots.txt of the site does not allow it")
    crawl = Crawl(source, site, start, known or {}, progress)
    crawl.run()
    return crawl


def _choose_base(asked: str, found: str) -> str:
    """Return the address whose directory a crawl stays in: as asked, if the answer is below it."""
    split = urlsplit(asked)
    is_file = split.path.endswith("/") or "." in split.path.rpartition("/")[2]
    base = split._replace(path=split.path if is_file else f"{split.path}/", query="").geturl()
    return base if found.startswith(base.rpartition("/")[0] + "/") else found


_COUNTED = ("to copies", "to no page", "not read")
"""Outcomes of links that have no note of their own."""


class Crawl:
    """The pages found by a crawl, by address, and the reasons for those that `failed`."""

    def __init__(
        self,
        source: CrawlSource,
        site: Site,
        start: web.Page,
        known: Mapping[str, web.Conditions],
        progress: Count,
    ) -> None:
        self.start = start
        """The first page."""
        self.contacted = (*start.hosts, *site.robots_hosts)
        """The hosts that were contacted for the first page and for `robots.txt`."""
        self.pages: dict[str, web.Page] = {}
        self.failed: dict[str, str] = {}
        self.gone: set[str] = set()
        """Addresses that no longer have a page."""
        self._source = source
        self.site = site
        self._known = known
        self._progress = progress
        self._is_listed = False
        self.is_late = False
        """Whether it ended before all pages were found, because of a limit of the whole crawl."""
        self.outcomes: Counter[str] = Counter()
        """How many of the links that may lead to pages were kept or left out, by the reason."""
        self._room_to_read = site.limits.characters
        self._paths: set[str] = set()
        """The paths of all pages found so far, read or not."""
        self._editions: dict[str, Edition] = {}
        self.stopped = ""
        """The reason why no more pages are read."""
        self._kept: set[str] = set()
        """The keys and texts of the pages found."""
        self._empty = 0
        self._crowded: list[str] = []
        """Pages with more links than are followed."""
        self._documents: set[str] = set()
        """Documents, such as PDF, that cannot be converted here."""

    @property
    def is_whole(self) -> bool:
        """Whether no page can be missing because of a failure."""
        return not (
            self.failed or self.site.unread or self.is_late or self.site.is_cut or self._crowded
        )

    def covers(self, url: str) -> bool:
        """Tell whether an address may be a page of the crawl; after the end of its time all may."""
        return bool(self.site.find_limit()) or self.site.covers(url)

    def run(self) -> None:
        """Read the pages of the site's list; without a list, those that the first page leads to."""
        self.site.mark_seen(self.start.url)
        self.outcomes[self._keep(self.start)] += 1
        listed = self.site.read_list()
        if listed:
            self._read_all(listed)
            self._is_listed = 5 * (len(self.pages) - 1) >= len(listed) or bool(self.stopped)
            if self._is_listed:
                return
        links = self._follow(self.start)
        if self._source.depth:  # the sitemap's pages come after the first page's links
            links += self.site.read_sitemap()
        for depth in range(1, self._source.depth + 1):
            links = self._read_all(links, leads_on=depth < self._source.depth)

    def _read_all(self, urls: Iterable[str], *, leads_on: bool = False) -> list[str]:
        """Read pages while there is room, and return their links.

        Without `leads_on` the links are not needed: the pages are listed, or deep enough.
        """
        links: list[str] = []
        chosen = self._choose(urls)
        for number, url in enumerate(chosen):
            if not self._has_room():
                self.outcomes["not read"] += len(chosen) - number
                return []
            if page_key(url) in self._kept:
                self.outcomes["to copies"] += 1
            elif not self.site.allows(url):
                self.outcomes["refused"] += 1
            else:
                links += self._visit(url, leads_on=leads_on)
        return links

    def _choose(self, urls: Iterable[str]) -> list[str]:
        """Return the pages to read: those of the first page's version and language."""
        path_of = self.site.path_of
        urls = list(urls)
        unread = [url for url in urls if is_unread_document(urlsplit(url).path)]
        self._documents.update(unread)
        self.outcomes["documents"] += len(unread)
        urls = [url for url in urls if url not in self._documents]
        self._paths.update(map(path_of, urls))
        if not self._source.include:
            self._editions |= find_editions(self._paths)
        others = self._editions.keys()
        chosen = [url for url in urls if others.isdisjoint(list_places(path_of(url)))]
        self.outcomes["editions"] += len(urls) - len(chosen)
        return chosen

    def _has_room(self) -> bool:
        found, most = len(self.pages), self._source.max_pages
        if limit := self.site.find_limit():
            self.is_late = True
            self.stopped = self._describe_end(limit)
        # Failed pages count: requesting them may take long.
        elif found + len(self.failed) >= most:
            self.stopped = f"stopped at {most} pages; max_pages allows more"
        return not self.stopped and self.site.refused < self.site.limits.refused

    def _describe_end(self, limit: str) -> str:
        return f"stopped after {count(len(self.pages), 'page')}: {limit}"

    def _visit(self, url: str, *, leads_on: bool) -> list[str]:
        """Fetch a page, keep it unless it is a copy, and return the pages it leads to."""
        self._progress(len(self.pages), min(len(self._paths) + 1, self._source.max_pages))
        # A link may name a page without its last `/`.
        known = None if leads_on else self._known.get(url) or self._known.get(f"{url}/")
        try:
            found = self.site.fetch(url, known)
            self.site.refusals = 0
        except errors.FetchError as error:
            # A dead link, or one that leaves the site, is not the operator's problem. A page
            # that existed before may be temporarily missing, as behind a login.
            has_left = isinstance(error, errors.LedAwayError) and url not in self._known
            if isinstance(error, errors.NoPageError) or has_left:
                self.gone.add(url)
                self.outcomes["to no page"] += 1
            elif not self.site.find_limit():  # the reason for a failure after the end is the end
                self.failed[url] = error.reason
                self.outcomes["failed"] += 1
            else:
                self.outcomes["not read"] += 1
            self.site.refusals += isinstance(error, errors.BusyServerError)
            return []
        links = self._follow(found) if leads_on else []
        self.outcomes[self._keep(found)] += 1
        return links

    def _follow(self, page: web.Page) -> list[str]:
        """Return the links of a page that may lead to pages."""
        if len(page.links) >= MAX_LINKS:
            self._crowded.append(page.url)
        return list(self.site.find_covered(page.links))

    def _keep(self, page: web.Page) -> str:
        """Add a page, unless the same content or address was found before; return the outcome."""
        keys = {page_key(page.url), page.text or page.url}
        if keys & self._kept:
            return "to copies"
        if page.text == "":
            self._empty += page.url not in self._known
            if page.url in self._known:
                self.failed[page.url] = web.no_text(page.url).reason
            return "empty"
        self._room_to_read -= len(page.text or "")
        if self._room_to_read < 0:
            self.stopped = self._describe_end("more text than a crawl may hold")
            return "not read"
        self.pages[page.url] = replace(page, links=())
        self._kept |= keys
        return "kept"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the operator on the site's list of pages, and on pages left out."""
        notes = []
        if not self._source.url.startswith(self.site.place):
            notes.append(f"reads the pages below {self.site.place}")
        if (robots := self.site.robots_hosts[-1]) != host_and_port(self.start.url):
            notes.append(f"its robots.txt is on {robots}")
        notes += ["pages as listed in llms.txt"] if self._is_listed else []
        notes += [f"passed over: {problem}" for problem in self.site.unread]
        if self.stopped:
            notes.append(self.stopped)
        elif self.site.is_cut:
            notes.append(self._describe_end(self.site.find_limit()))
        if self.failed:
            number, (url, reason) = len(self.failed), next(iter(self.failed.items()))
            notes.append(
                f"left out: {number} page(s) that cannot be fetched, such as {url}: {reason}"
            )
        if self._editions:
            notes.append(describe_editions(self._editions, "include (--include '{}**')"))
        return (*notes, *self._count_left_out())

    def _count_left_out(self) -> list[str]:
        """Return notes on the pages, documents and links that were left out."""
        notes = []
        if self._crowded:
            pages = f"{count(len(self._crowded), 'page')}, such as {self._crowded[0]}"
            notes.append(f"passed over: links after the first {MAX_LINKS:,} of {pages}")
        if self._empty:
            notes.append(f"left out: {count(self._empty, 'page')} without text")
        if refused := self.site.refused:
            notes.append(f"left out: {count(refused, 'page')} that robots.txt does not allow")
        if self._documents:
            unread = describe_unread(self._documents)
            notes.append(f"left out: {unread}, such as {min(self._documents)}")
        others = self.site.passed + Counter({key: self.outcomes[key] for key in _COUNTED})
        del others[ELSEWHERE]
        if counts := [f"{number:,} {reason}" for reason, number in others.most_common() if number]:
            links = count(others.total(), "link")
            notes.append(f"passed over: {links} ({', '.join(counts)})")
        return notes
