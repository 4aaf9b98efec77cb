"""Find the pages of a site that a page leads to, within limits and its robots.txt."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from html import unescape
from urllib.parse import unquote, urlsplit

from protego import Protego

from llm_kb.files.converters.addresses import join_url
from llm_kb.references.errors import (
    FetchError,
    LedAwayError,
    NoPageError,
    refuse_hostile,
)
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Allowance, Policy, host_and_port, page_key
from llm_kb.references.sources.web import (
    MAX_PAGE_BYTES,
    PRODUCT,
    Conditions,
    Page,
    fetch_text,
    find_page,
    no_text,
)
from llm_kb.rendering.plain_text import count
from llm_kb.subjects.editions import describe_editions, find_editions
from llm_kb.subjects.names import DOCUMENTS, INSTALL, is_unread_document

_MARKDOWN_LINK = re.compile(r"\[[^\]\n]{0,300}\]\(([^()\s]{1,2000})\)")
_LOCATION = re.compile(r"<loc>\s*([^<\s]{1,2000})\s*</loc>")
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
_RULE = re.compile(r"(?im)^[ \t]*(?:dis)?allow")
_PAGES = DOCUMENTS | frozenset(
    {"", "html", "htm", "md", "markdown", "txt", "xhtml", "php", "asp", "aspx", "rst"}
)

MAX_ROBOTS = 512_000
"""The characters of a robots.txt that count; RFC 9309 (2.5) asks for at least 500 KiB."""

MAX_DELAY = 5.0
"""Seconds between requests that a site may ask for with Crawl-delay."""

MAX_WILDCARDS = MAX_RULES = 5_000
"""The most wildcards and rules in a robots.txt: each rule is matched against each address."""

EXTRA_REQUESTS = 100
"""The requests of a crawl in addition to three for each page that may be kept."""

MAX_REFUSED = 5_000
"""A crawl ends after robots.txt has refused this many addresses."""


class Site:
    """One host, the rules of its robots.txt, and the directory a crawl stays in."""

    def __init__(
        self,
        start: str,
        source: CrawlSource,
        policy: Policy,
        hosts: Collection[str] | None = None,
    ) -> None:
        split = urlsplit(start)
        self.requests = Allowance(3 * source.max_pages + EXTRA_REQUESTS)
        """The requests that are left: a page may lead to any number of dead links."""
        self.policy = replace(policy, allowance=self.requests)
        self._source = source
        self.root = f"{split.scheme}://{split.netloc}"
        self.prefix = split.path.rpartition("/")[0] + "/"
        self.refused = 0
        self.unread: list[str] = []
        """Problems of lists of pages that could not be read."""
        place = f"{self.root}/robots.txt"
        # One that cannot be read forbids everything, and one on another host counts here as well
        # (RFC 9309, 2.3.1.2 and 2.3.1.4).
        with refuse_hostile(place):
            robots = fetch_text(place, self.policy, hosts, most=MAX_PAGE_BYTES)
            self._robots = Robots(robots.text or "", PRODUCT)
        self.robots_hosts = robots.hosts
        """The hosts that were contacted for `robots.txt`; it is on the last one."""

    def covers(self, url: str) -> bool:
        """Tell whether a link leads to a page of the crawl."""
        split = urlsplit(url)
        _, dot, extension = split.path.rpartition("/")[2].rpartition(".")
        # A number after a dot is a version, not an extension.
        is_page = not dot or not extension or extension.lower() in _PAGES or extension.isdigit()
        inside = self.is_here(url) and split.path.startswith(self.prefix)
        if not inside or not is_page or _ACTION.search(split.query):
            return False
        if ".." in unquote(split.path).split("/"):  # which a server may take for another directory
            return False
        if _GENERATED.search(split.path[len(self.prefix) - 1 :]):
            return False
        return self._source.wants(self.path_of(url))

    def path_of(self, url: str) -> str:
        """Return the path of a page below the directory of the first."""
        return unquote(urlsplit(url).path[len(self.prefix) :])

    def is_here(self, url: str) -> bool:
        """Tell whether an address is on this site."""
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc}" == self.root

    def read_list(self) -> list[str]:
        """Return the pages of `llms.txt`; empty if there is none on this host."""
        for place in dict.fromkeys((f"{self.root}{self.prefix}llms.txt", f"{self.root}/llms.txt")):
            try:
                text = self._fetch_list(place)
            except LedAwayError:
                continue  # another host's list has no pages of this site
            except FetchError as error:
                self.unread.append(f"{place}: {error.reason}")
                continue
            if text.lstrip().startswith("#"):
                links = _join(place, _MARKDOWN_LINK.findall(text))
                pages = dict.fromkeys(link.partition("#")[0] for link in links)
                return [page for page in pages if self.covers(page)]
        return []

    def read_sitemap(self) -> list[str]:
        """Return the pages in the first sitemap: that of robots.txt, else the usual ones."""
        usual = [f"{self.root}{self.prefix}sitemap.xml", f"{self.root}/sitemap.xml"]
        named = list(filter(self.is_here, _join(self.root, self._robots.sitemaps)))[:1]
        for place in dict.fromkeys([*named, *usual]):
            try:
                text = self._fetch_list(place)
            except FetchError:
                continue  # links are followed without it
            found = _join(place, map(unescape, _LOCATION.findall(text)))
            if pages := list(dict.fromkeys(filter(self.covers, found))):
                return pages
        return []

    def _fetch_list(self, place: str) -> str:
        with refuse_hostile(place):
            return fetch_text(place, self.policy, {host_and_port(self.root)}).text or ""

    def allows(self, url: str) -> bool:
        """Tell whether robots.txt allows a page, and count those refused."""
        allowed = self._robots.allows(url)
        self.refused += not allowed
        return allowed

    def may_lead_to(self, url: str) -> bool:
        """Tell whether a redirect may lead to an address: one that a link could lead to."""
        return self.covers(url) and self.allows(url)

    def wait(self) -> None:
        """Wait between requests as long as the site asks."""
        if self._robots.delay:
            time.sleep(self._robots.delay)


def _join(base: str, links: Iterable[str]) -> list[str]:
    """Return the absolute addresses of links, without those that are not addresses."""
    return [joined for link in links if (joined := join_url(base, link))]


class Robots:
    """The rules of one site for one client, as RFC 9309 reads them."""

    def __init__(self, text: str, agent: str) -> None:
        if len(text) > MAX_ROBOTS:  # without the line that is cut: a part of it means another rule
            text = "\n".join(text[:MAX_ROBOTS].splitlines()[:-1])
        if text.count("*") + text.count("$") > MAX_WILDCARDS:
            raise ValueError(f"robots.txt has over {MAX_WILDCARDS:,} wildcards")
        if len(_RULE.findall(text)) > MAX_RULES:
            raise ValueError(f"robots.txt has over {MAX_RULES:,} rules")
        self._agent = agent
        self._rules = Protego.parse(text)

    def allows(self, url: str) -> bool:
        """Tell whether a page may be fetched: the longest rule that matches decides."""
        return self._rules.can_fetch(url, self._agent)

    @property
    def sitemaps(self) -> list[str]:
        """The addresses of the sitemaps in it."""
        return list(self._rules.sitemaps)

    @property
    def delay(self) -> float:
        """The number of seconds to wait between requests."""
        return min(self._rules.crawl_delay(self._agent) or 0.0, MAX_DELAY)


MAX_READ = 20_000_000
"""A crawl ends before its pages have more characters than this, since they are held in memory."""

MAX_LINKS = 50_000
"""The most links that are kept of all pages of a crawl."""

# A page of links alone: mdBook's contents.
_CONTENTS = re.compile(r"/toc\.html$")


Count = Callable[[int, int], None]
"""Called with the number of pages read so far and the number found so far."""


def find_pages(
    source: CrawlSource,
    policy: Policy,
    known: Mapping[str, Conditions] | None = None,
    progress: Count = lambda *_: None,
    *,
    hosts: Collection[str] | None = None,
) -> Crawl:
    """Read the pages of a crawl.

    If a site has an `llms.txt`, its pages are those listed there. Otherwise links are
    followed from page to page, `depth` deep: on the same host, and below the
    directory of the first page. Versions and languages other than the first page's are left
    out unless `include` names pages.

    Pages of an earlier crawl that are `known` are requested conditionally where their links are
    not needed. Only `hosts` are contacted; None allows any. Raises FetchError if the first page or
    `robots.txt` cannot be fetched, LedAwayError if it redirects to a host that is not in `hosts`.
    """
    start = find_page(source.url, policy, hosts=hosts)
    site = Site(start.url, source, policy, hosts)
    if not site.allows(start.url):
        raise FetchError(source.url, "robots.txt of the site does not allow it")
    crawl = Crawl(source, site, start, known or {}, progress)
    crawl.run()
    return crawl


class Crawl:
    """The pages found by a crawl, by address, and the reasons for those that `failed`."""

    def __init__(
        self,
        source: CrawlSource,
        site: Site,
        start: Page,
        known: Mapping[str, Conditions],
        progress: Count,
    ) -> None:
        self.start = start
        """The first page."""
        self.contacted = (*start.hosts, *site.robots_hosts)
        """The hosts that were contacted for the first page and for `robots.txt`."""
        self.pages: dict[str, Page] = {}
        self.failed: dict[str, str] = {}
        self.gone: set[str] = set()
        """Addresses that no longer have a page."""
        self.is_late = False
        """Whether it ended before all pages were found, because it took too long."""
        self._source = source
        self._site = site
        self._known = known
        self._progress = progress
        self._is_listed = False
        self._room_to_read = MAX_READ
        self._links_left = MAX_LINKS
        self._paths: set[str] = set()
        """The paths of all pages found so far, read or not."""
        self._asked: set[str] = set()
        self._editions: dict[str, str] = {}
        self._stopped = ""
        """The reason why no more pages are read."""
        self._kept: set[str] = set()
        """The keys of the pages found."""
        self._digests: set[str] = set()
        self._empty = 0
        self._documents: set[str] = set()
        """Documents, such as PDF, that cannot be converted here."""

    @property
    def is_whole(self) -> bool:
        """Whether no page can be missing because of a failure."""
        return not (self.failed or self._site.unread or self.is_late)

    def covers(self, url: str) -> bool:
        """Tell whether a link leads to a page of the crawl."""
        return self._site.covers(url)

    def run(self) -> None:
        """Read the pages of the site's list; without a list, those that the first page leads to."""
        self._keep(self.start)
        if listed := self._site.read_list():
            self._is_listed = True
            self._read_all(listed)
        else:
            self._follow_links()

    def _follow_links(self) -> None:
        """Follow links breadth first; the sitemap's pages come after the first page's links."""
        seen = {page_key(self.start.url)}
        following = list(filter(self._site.covers, self.start.links))
        if self._source.depth:
            following += self._site.read_sitemap()
        for depth in range(1, self._source.depth + 1):
            fresh = {page_key(url): url for url in reversed(following) if page_key(url) not in seen}
            seen.update(fresh)
            level = list(reversed(fresh.values()))
            following = self._read_all(level, leads_on=depth < self._source.depth)
            if self._stopped:
                return

    def _read_all(self, urls: Iterable[str], *, leads_on: bool = False) -> list[str]:
        """Read pages while there is room, and return their links.

        Without `leads_on` the links are not needed: the pages are listed, or deep enough.
        """
        links: list[str] = []
        for url in self._choose(urls):
            if not self._has_room():
                break
            if self._site.allows(url):
                links += self._visit(url, leads_on=leads_on)
        return links

    def _choose(self, urls: Iterable[str]) -> list[str]:
        """Return the new pages to read: those of the first page's version and language."""
        urls = [url for url in urls if url not in self._asked]
        self._documents.update(url for url in urls if is_unread_document(urlsplit(url).path))
        urls = [url for url in urls if url not in self._documents]
        self._paths.update(map(self._site.path_of, urls))
        if not self._source.include:
            self._editions |= find_editions(self._paths)
        others = tuple(self._editions)
        return [url for url in urls if not self._site.path_of(url).startswith(others)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the operator on the site's list of pages, and on pages left out."""
        notes = []
        if (robots := self._site.robots_hosts[-1]) != host_and_port(self.start.url):
            notes.append(f"its robots.txt is on {robots}")
        notes += ["pages as listed in llms.txt"] if self._is_listed else []
        notes += [f"passed over: {problem}" for problem in self._site.unread]
        notes += [self._stopped] if self._stopped else []
        if self.failed:
            url, reason = next(iter(self.failed.items()))
            what = f"{len(self.failed)} page(s) that cannot be fetched, such as {url}: {reason}"
            notes.append(f"left out: {what}")
        if self._editions:
            notes.append(describe_editions(self._editions, "include (--include '{}**')"))
        if self._empty:
            notes.append(f"left out: {count(self._empty, 'page')} without text")
        if self._site.refused:
            refused = count(self._site.refused, "page")
            notes.append(f"left out: {refused} that robots.txt does not allow")
        if self._documents:
            documents = count(len(self._documents), "document")
            example = min(self._documents)
            notes.append(f"left out: {documents}, such as {example}; to read them: {INSTALL}")
        return tuple(notes)

    def _has_room(self) -> bool:
        found, most = len(self.pages), self._source.max_pages
        if self._has_taken_long():
            self.is_late = True
            what = "too long" if self._site.requests.left else "too many requests"
            self._stopped = f"stopped after {count(found, 'page')}: it took {what}"
        # Failed pages count: requesting them may take long.
        elif found + len(self.failed) >= most:
            self._stopped = f"stopped at {most} pages; max_pages allows more"
        return not self._stopped and self._site.refused < MAX_REFUSED

    def _has_taken_long(self) -> bool:
        return not self._site.requests.left or time.monotonic() >= self._site.policy.until

    def _visit(self, url: str, *, leads_on: bool) -> list[str]:
        """Fetch a page, keep it unless it is a copy, and return the pages it leads to."""
        self._asked.add(url)
        if page_key(url) in self._kept:
            return []
        self._progress(len(self.pages), min(len(self._paths) + 1, self._source.max_pages))
        self._site.wait()
        # A link may name a page without its last `/`.
        known = None if leads_on else self._known.get(url) or self._known.get(f"{url}/")
        try:
            with refuse_hostile(url):
                policy = self._site.policy
                hosts, allows = {host_and_port(url)}, self._site.may_lead_to
                found = find_page(url, policy, hosts=hosts, known=known, allows=allows)
        except FetchError as error:
            # A dead link, or one that leaves the site, is not the operator's problem. A page
            # that existed before may be temporarily missing, as behind a login.
            has_left = isinstance(error, LedAwayError) and url not in self._known
            if isinstance(error, NoPageError) or has_left:
                self.gone.add(url)
            elif not self._has_taken_long():  # the reason for a failure after the end is the end
                self.failed[url] = error.reason
            return []
        links = list(filter(self._site.covers, found.links))[: self._links_left]
        self._links_left -= len(links)
        self._keep(found)
        return links

    def _keep(self, page: Page) -> None:
        """Add a page, unless the same content or the same address was found before."""
        is_copy = page_key(page.url) in self._kept or page.digest in self._digests
        if is_copy or _CONTENTS.search(page.url):
            return
        if page.text == "":
            self._empty += page.url not in self._known
            if page.url in self._known:
                self.failed[page.url] = no_text(page.url).reason
            return
        self._room_to_read -= len(page.text or "")
        if self._room_to_read < 0:
            kept = count(len(self.pages), "page")
            self._stopped = f"stopped after {kept}: more text than a crawl may hold"
            return
        self.pages[page.url] = replace(page, links=())
        self._kept.add(page_key(page.url))
        if page.digest:
            self._digests.add(page.digest)
