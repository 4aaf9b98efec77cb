"""The site of a crawl: the addresses of its pages, its lists of pages and its robots.txt."""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import replace
from html import unescape
from urllib.parse import unquote, urlsplit

from protego import Protego

from llm_kb.converters.addresses import join_url
from llm_kb.references.errors import (
    FetchError,
    PlanChangedError,
    RobotsMovedError,
    refuse_hostile,
)
from llm_kb.references.sources.addresses import Allowance, Policy
from llm_kb.references.sources.http import MAX_PAGE_BYTES, PRODUCT
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import fetch_text
from llm_kb.subjects.names import DOCUMENTS

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

MAX_SITEMAPS = 5
"""The most sitemaps read of one site."""

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
        self.elsewhere = 0
        """Entries of `llms.txt` on other hosts."""
        self.unread: list[str] = []
        """Problems of lists of pages that could not be read."""
        place = f"{self.root}/robots.txt"
        # One that cannot be read forbids everything, and one on another host counts here as well
        # (RFC 9309, 2.3.1.2 and 2.3.1.4).
        try:
            with refuse_hostile(place):
                robots = fetch_text(place, self.policy, hosts, most=MAX_PAGE_BYTES)
                self._robots = Robots(robots.text, PRODUCT)
        except PlanChangedError as error:
            raise RobotsMovedError(place, "it is on another host", error.leads_to) from error
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
            except PlanChangedError:
                continue  # another host's list has no pages of this site
            except FetchError as error:
                self.unread.append(f"{place}: {error.reason}")
                continue
            if text.lstrip().startswith("#"):
                links = (join_url(place, link) for link in _MARKDOWN_LINK.findall(text))
                pages = dict.fromkeys(link.partition("#")[0] for link in links if link)
                self.elsewhere = sum(not self.is_here(page) for page in pages)
                return [page for page in pages if self.covers(page)]
        return []

    def read_sitemaps(self) -> list[str]:
        """Return the pages in the site's `sitemap.xml` and in the sitemaps it leads to."""
        usual = [f"{self.root}{self.prefix}sitemap.xml", f"{self.root}/sitemap.xml"]
        named = filter(self.is_here, self._robots.sitemaps)
        places = list(dict.fromkeys([*named, *usual]))[:MAX_SITEMAPS]
        pages: dict[str, None] = {}
        for number, place in enumerate(places):
            try:
                text = self._fetch_list(place)
            except FetchError:
                continue  # links are followed without it
            found = [unescape(location) for location in _LOCATION.findall(text)]
            if "<sitemapindex" in text and number < MAX_SITEMAPS:
                places += filter(self.is_here, found[: MAX_SITEMAPS - len(places)])
            else:
                pages |= dict.fromkeys(filter(self.covers, found))
        return list(pages)

    def _fetch_list(self, place: str) -> str:
        with refuse_hostile(place):
            return fetch_text(place, self.policy, {host_and_port(self.root)}).text

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
