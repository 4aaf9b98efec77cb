"""Find the pages of a site that a page leads to, within limits and its robots.txt."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from llm_kb.references import errors
from llm_kb.references.sources import web
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.robots import PRODUCT, parse_robots
from llm_kb.references.sources.rules import Policy, host_and_port, page_key
from llm_kb.references.sources.site_lists import find_links, find_locations, is_sitemap_index
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.editions import describe_editions, find_editions, leading_directories
from llm_kb.texts.formats import (
    INSTALL,
    find_extension,
    find_format,
    is_readable,
    is_unread_document,
    needs_extra,
)
from llm_kb.texts.html.addresses import join_url
from llm_kb.texts.html.page import MAX_LINK

# What generators make besides the pages: sources, indices, and all pages as one (of Sphinx, mdBook,
# rustdoc and javadoc, in this order).
_GENERATED = re.compile(
    r"/(?:_sources|_modules)/|/(?:genindex(?:-[^/]*)?|(?:py-)?modindex)(?:\.html?|/)$|/search\.html$"
    r"|/print(?:\.html?|/)$|\.rs\.html$|/(?:class-use|index-files)/"
    r"|/(?:index-all|all(?:classes|packages)-index|(?:overview|package)-tree|package-use)\.html$"
    r"|/llms(?:-full)?\.txt$"
)
# Actions on a page, other revisions, feeds, and lists in another order.
_ACTION = re.compile(r"(?:^|[&;])(?:action|diff|do|feed|oldid|rev|replytocom|C)=")
ELSEWHERE = "elsewhere"
"""Reason for a link to another host or directory, which no plan mentions."""

# A page of links alone: mdBook's contents.
_CONTENTS = re.compile(r"/toc\.html$")

MAX_DELAY = 5.0
"""Seconds between requests that a site may ask for with Crawl-delay."""

EXTRA_REQUESTS = 50
"""The requests for pages in addition to three for each page that may be kept."""

MAX_REFUSED = 5_000
"""A crawl ends after robots.txt has refused this many addresses."""

MAX_READ = 20_000_000
"""A crawl ends before its pages have more characters than this, since they are held in memory."""

MAX_LINKS = 50_000
"""A crawl ends after it has looked at this many different links."""

MAX_SITEMAPS = 20
"""The most sitemaps that are read; large sites have an index of them."""

MAX_MISSES = 3
"""The most addresses of an unknown ending that are requested in vain."""

MAX_COMPARED = 20_000_000
"""A crawl ends after this many comparisons of a level of an address with a pattern."""


class Site:
    """One host, the rules of its robots.txt, and the directory a crawl stays in."""

    def __init__(self, start: str, source: CrawlSource, policy: Policy) -> None:
        split = urlsplit(start)
        self.requests = 3 * source.max_pages + EXTRA_REQUESTS
        """The requests for pages that are left: one may lead to any number of dead links."""
        self.refused = 0
        """How many addresses robots.txt has refused."""
        self.is_cut = False
        """Whether links were not looked at, because a limit was reached."""
        self.passed: Counter[str] = Counter()
        """How many links do not lead to pages, by the reason."""
        self._seen: set[int] = set()
        """The hashes of all links that were looked at."""
        self._misses: Counter[str] = Counter()
        """How many addresses of an ending were not those of pages."""
        self.unread: list[str] = []
        """Problems of lists of pages that could not be read."""
        self._policy = policy
        self._source = source
        self._patterns = 1 + 2 * (len(source.include) + len(source.exclude))
        self._compared_left = MAX_COMPARED
        self._root = f"{split.scheme}://{split.netloc}"
        self._prefix = split.path.rpartition("/")[0] + "/"
        place = f"{self._root}/robots.txt"
        # One that cannot be read forbids everything, and one on another host counts here as well
        # (RFC 9309, 2.3.1.2 and 2.3.1.4).
        robots = web.fetch_text(place, policy, most=web.MAX_PAGE_BYTES)
        with errors.refuse_hostile(place):
            self._robots = parse_robots(robots.text or "")
        self.delay = min(self._robots.crawl_delay(PRODUCT) or 0.0, MAX_DELAY)
        """Seconds between requests."""
        self.robots_hosts = robots.hosts
        """The hosts that were contacted for `robots.txt`; it is on the last one."""

    def covers(self, url: str) -> bool:
        """Tell whether a link may lead to a page of the crawl; of some, the type decides."""
        return not self._refuse(url)

    def _refuse(self, url: str) -> str:
        """Return the reason why a link does not lead to a page of the crawl; empty if it may."""
        self._compared_left -= self._patterns * (1 + url.count("/"))
        split = urlsplit(url)
        if not (self._is_here(url) and split.path.startswith(self._prefix)):
            return ELSEWHERE
        # A server may take dots for another directory.
        if len(url) > MAX_LINK or ".." in unquote(split.path).split("/"):
            return "with odd addresses"
        if not (is_readable(split.path) or needs_extra(split.path)):
            return "to files that are not pages"
        is_generated = _GENERATED.search(split.path[len(self._prefix) - 1 :])
        if is_generated or _ACTION.search(split.query):
            return "to generated lists and other views"
        return "" if self._source.wants(self.path_of(url)) else "left out by the patterns"

    def is_hopeless(self, url: str) -> bool:
        """Tell whether all addresses with the ending of this one were not those of pages."""
        return self._misses[_extension_of(url)] >= MAX_MISSES

    def path_of(self, url: str) -> str:
        """Return the path of a page below the directory of the first."""
        return unquote(urlsplit(url).path[len(self._prefix) :])

    def _is_here(self, url: str) -> bool:
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc}" == self._root

    def read_list(self) -> list[str]:
        """Return the pages of `llms.txt`; empty if there is none on this host."""
        for place in self._usual_places("llms.txt"):
            text = self._fetch_list(place)
            if text.lstrip().startswith("#"):
                return self._join(place, find_links(text))
        return []

    def read_sitemap(self) -> list[str]:
        """Return the pages in the sitemaps of robots.txt, else in the first of the usual ones."""
        named = [join_url(self._root, each) or "" for each in self._robots.sitemaps]
        usual = ([place] for place in self._usual_places("sitemap.xml"))
        for places in (list(filter(self._is_here, named)), *usual):
            if pages := self._read_sitemaps(places):
                return pages
        return []

    def _read_sitemaps(self, places: list[str]) -> list[str]:
        """Return the pages in sitemaps, and in those that they list, on this host."""
        pages: list[str] = []
        places = list(dict.fromkeys(places))
        for number, place in enumerate(places):  # which grows
            if number >= MAX_SITEMAPS or self.find_limit():
                self.unread.append(f"{len(places) - number} sitemaps: too many")
                break
            text = self._fetch_list(place)
            locations = find_locations(text)
            if is_sitemap_index(text):
                joined = (join_url(place, each) or "" for each in locations)
                places += [each for each in joined if self._is_here(each) and each not in places]
            else:
                pages += self._join(place, locations)
        return pages

    def _usual_places(self, name: str) -> list[str]:
        return [f"{self._root}{path}{name}" for path in dict.fromkeys((self._prefix, "/"))]

    def _fetch_list(self, place: str) -> str:
        """Return a list of pages; empty if it cannot be read, or is on another host."""
        policy = replace(self._policy, hosts=frozenset({host_and_port(self._root)}))
        try:
            return web.fetch_text(place, policy).text or ""
        except errors.LedAwayError:
            return ""  # another host's list has no pages of this site
        except errors.FetchError as error:
            self.unread.append(f"{place}: {error.reason}")
            return ""

    def _join(self, base: str, links: Iterable[str]) -> list[str]:
        """Return the absolute addresses of links that lead to pages of the crawl, each once."""
        joined = (join_url(base, link.partition("#")[0]) for link in links)
        return list(dict.fromkeys(self.find_covered(filter(None, joined))))

    def find_covered(self, urls: Iterable[str]) -> Iterator[str]:
        """Yield the links that may lead to pages, each once, until a limit is reached."""
        for url in urls:
            if self.find_limit():
                self.is_cut = True
                return
            if not self.mark_seen(url):
                continue
            if reason := self._refuse(url):
                self.passed[reason] += 1
            else:
                yield url

    def mark_seen(self, url: str) -> bool:
        """Tell whether a link is new, and remember it."""
        known = len(self._seen)
        self._seen.add(hash(page_key(url)))
        return len(self._seen) > known

    @property
    def seen(self) -> int:
        """The number of different links that were looked at."""
        return len(self._seen)

    def allows(self, url: str) -> bool:
        """Tell whether robots.txt allows a page, and count those refused."""
        allowed = self._robots.can_fetch(url, PRODUCT)
        self.refused += not allowed
        return allowed

    def fetch(self, url: str, known: web.Conditions | None) -> web.Page:
        """Return a page; a redirect may only lead where a link could."""

        def may_lead_to(target: str) -> bool:
            self.requests -= 1
            return self.requests >= 0 and self.covers(target) and self.allows(target)

        self.requests -= 1
        time.sleep(self.delay)
        is_known = _has_ending_of_page(url)
        try:
            with errors.refuse_hostile(url):
                return web.find_page(
                    url, self._policy, known=known, allows=may_lead_to, only_pages=not is_known
                )
        except errors.NoPageError:
            self._misses[_extension_of(url)] += not is_known
            raise

    def find_limit(self) -> str:
        """Return which limit of the whole crawl is reached; empty if none is."""
        if self._compared_left < 0:
            return "it has too many links for its patterns"
        if len(self._seen) >= MAX_LINKS:
            return f"it has over {MAX_LINKS:,} links"
        if time.monotonic() >= self._policy.until:
            return "it took too long"
        return "" if self.requests > 0 else "it took too many requests"


def _extension_of(url: str) -> str:
    """Return the extension of an address; a number after a dot is that of a version."""
    extension = find_extension(urlsplit(url).path)
    return "" if extension.isdigit() else extension


def _has_ending_of_page(url: str) -> bool:
    """Tell whether pages are served under such a name; of others, the type decides."""
    known = find_format(urlsplit(url).path)
    return known.is_page if known else not _extension_of(url)


Count = Callable[[int, int], None]
"""Called with the number of pages read so far and the number found so far."""


def find_pages(
    source: CrawlSource,
    policy: Policy,
    known: Mapping[str, web.Conditions] | None = None,
    progress: Count = lambda *_: None,
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
    site = Site(start.url, source, policy)
    if not site.allows(start.url):
        raise errors.FetchError(source.url, "robots.txt of the site does not allow it")
    crawl = Crawl(source, site, start, known or {}, progress)
    crawl.run()
    return crawl


_COUNTED = ("to copies", "to no page", "to what is not a page", "not read")
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
        self._site = site
        self._known = known
        self._progress = progress
        self._is_listed = False
        self._is_late = False
        """Whether it ended before all pages were found, because of a limit of the whole crawl."""
        self.outcomes: Counter[str] = Counter()
        """How many of the links that may lead to pages were kept or left out, by the reason."""
        self._room_to_read = MAX_READ
        self._paths: set[str] = set()
        """The paths of all pages found so far, read or not."""
        self._editions: dict[str, str] = {}
        self._stopped = ""
        """The reason why no more pages are read."""
        self._kept: set[str] = set()
        """The keys and digests of the pages found."""
        self._empty = 0
        self._documents: set[str] = set()
        """Documents, such as PDF, that cannot be converted here."""

    @property
    def is_whole(self) -> bool:
        """Whether no page can be missing because of a failure."""
        return not (self.failed or self._site.unread or self._is_late or self._site.is_cut)

    @property
    def passed(self) -> Counter[str]:
        """How many links do not lead to pages, by the reason."""
        return self._site.passed

    @property
    def seen(self) -> int:
        """The number of different links that were looked at."""
        return self._site.seen

    def covers(self, url: str) -> bool:
        """Tell whether an address may be a page of the crawl; after the end of its time all may."""
        return bool(self._site.find_limit()) or self._site.covers(url)

    def run(self) -> None:
        """Read the pages of the site's list; without a list, those that the first page leads to."""
        self._site.mark_seen(self.start.url)
        self.outcomes[self._keep(self.start)] += 1
        listed = self._site.read_list()
        self._is_listed = bool(listed)
        if listed:
            self._read_all(listed)
            return
        links = list(self._site.find_covered(self.start.links))
        if self._source.depth:  # the sitemap's pages come after the first page's links
            links += self._site.read_sitemap()
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
            elif self._site.is_hopeless(url):
                self.outcomes["to what is not a page"] += 1
            elif not self._site.allows(url):
                self.outcomes["refused"] += 1
            else:
                links += self._visit(url, leads_on=leads_on)
        return links

    def _choose(self, urls: Iterable[str]) -> list[str]:
        """Return the pages to read: those of the first page's version and language."""
        path_of = self._site.path_of
        urls = list(urls)
        unread = [url for url in urls if is_unread_document(urlsplit(url).path)]
        self._documents.update(unread)
        self.outcomes["documents"] += len(unread)
        urls = [url for url in urls if url not in self._documents]
        self._paths.update(map(path_of, urls))
        if not self._source.include:
            self._editions |= find_editions(self._paths)
        others = self._editions.keys()
        chosen = [url for url in urls if others.isdisjoint(leading_directories(path_of(url)))]
        self.outcomes["editions"] += len(urls) - len(chosen)
        return chosen

    def _has_room(self) -> bool:
        found, most = len(self.pages), self._source.max_pages
        if limit := self._site.find_limit():
            self._is_late = True
            self._stopped = self._describe_end(limit)
        # Failed pages count: requesting them may take long.
        elif found + len(self.failed) >= most:
            self._stopped = f"stopped at {most} pages; max_pages allows more"
        return not self._stopped and self._site.refused < MAX_REFUSED

    def _describe_end(self, limit: str) -> str:
        return f"stopped after {count(len(self.pages), 'page')}: {limit}"

    def _visit(self, url: str, *, leads_on: bool) -> list[str]:
        """Fetch a page, keep it unless it is a copy, and return the pages it leads to."""
        self._progress(len(self.pages), min(len(self._paths) + 1, self._source.max_pages))
        # A link may name a page without its last `/`.
        known = None if leads_on else self._known.get(url) or self._known.get(f"{url}/")
        try:
            found = self._site.fetch(url, known)
        except errors.FetchError as error:
            # A dead link, or one that leaves the site, is not the operator's problem. A page
            # that existed before may be temporarily missing, as behind a login.
            has_left = isinstance(error, errors.LedAwayError) and url not in self._known
            if isinstance(error, errors.NoPageError) or has_left:
                self.gone.add(url)
                self.outcomes["to no page"] += 1
            elif not self._site.find_limit():  # the reason for a failure after the end is the end
                self.failed[url] = error.reason
                self.outcomes["failed"] += 1
            else:
                self.outcomes["not read"] += 1
            return []
        links = list(self._site.find_covered(found.links)) if leads_on else []
        self.outcomes[self._keep(found)] += 1
        return links

    def _keep(self, page: web.Page) -> str:
        """Add a page, unless the same content or address was found before; return the outcome."""
        keys = {page_key(page.url), page.digest} - {""}
        if keys & self._kept:
            return "to copies"
        if _CONTENTS.search(page.url):
            return "lists of links alone"
        if page.text == "":
            self._empty += page.url not in self._known
            if page.url in self._known:
                self.failed[page.url] = web.no_text(page.url).reason
            return "empty"
        self._room_to_read -= len(page.text or "")
        if self._room_to_read < 0:
            self._stopped = self._describe_end("more text than a crawl may hold")
            return "not read"
        self.pages[page.url] = replace(page, links=())
        self._kept |= keys
        return "kept"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the operator on the site's list of pages, and on pages left out."""
        notes = []
        if (robots := self._site.robots_hosts[-1]) != host_and_port(self.start.url):
            notes.append(f"its robots.txt is on {robots}")
        notes += ["pages as listed in llms.txt"] if self._is_listed else []
        notes += [f"passed over: {problem}" for problem in self._site.unread]
        if self._stopped:
            notes.append(self._stopped)
        elif self._site.is_cut:
            notes.append(self._describe_end(self._site.find_limit()))
        if self.failed:
            number, (url, reason) = len(self.failed), next(iter(self.failed.items()))
            notes.append(
                f"left out: {number} page(s) that cannot be fetched, such as {url}: {reason}"
            )
        if self._editions:
            notes.append(describe_editions(self._editions, "include (--include '{}**')"))
        if self._empty:
            notes.append(f"left out: {count(self._empty, 'page')} without text")
        if refused := self._site.refused:
            notes.append(f"left out: {count(refused, 'page')} that robots.txt does not allow")
        if self._documents:
            documents = f"{count(len(self._documents), 'document')}, such as {min(self._documents)}"
            notes.append(f"left out: {documents}; to read them: {INSTALL}")
        return (*notes, *self._count_others())

    def _count_others(self) -> list[str]:
        """Return a note on the links that no other note counts."""
        others = self._site.passed + Counter({key: self.outcomes[key] for key in _COUNTED})
        del others[ELSEWHERE]
        counts = [f"{number:,} {reason}" for reason, number in others.most_common() if number]
        links = count(others.total(), "link")
        return [f"passed over: {links} ({', '.join(counts)})"] if counts else []
