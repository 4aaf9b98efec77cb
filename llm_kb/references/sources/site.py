"""One site as a crawl sees it: its robots.txt, its lists of pages, and which links may be pages."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import unescape
from urllib.parse import unquote, urlsplit

from protego import Protego

from llm_kb.references import errors
from llm_kb.references.sources import web
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.sources.rules import Policy, host_and_port, page_key
from llm_kb.texts.formats import find_extension, find_format, is_document, is_readable
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlLimits:
    """How much of a site a crawl looks at; how many pages it keeps is its source's to say."""

    delay: float = 5.0
    """Seconds between requests that a site may ask for with Crawl-delay."""
    extra_requests: int = 50
    """The requests for pages in addition to three for each page that may be kept."""
    refused: int = 5_000
    """The addresses that robots.txt may refuse before the crawl ends."""
    characters: int = 20_000_000
    """The characters of all pages together, since they are held in memory."""
    links: int = 50_000
    """The different links that are looked at."""
    sitemaps: int = 20
    """The sitemaps that are read; large sites have an index of them."""
    compared: int = 20_000_000
    """The comparisons of a level of an address with a pattern."""


USUAL_LIMITS = CrawlLimits()


class Site:
    """One host, the rules of its robots.txt, and the directory a crawl stays in."""

    def __init__(
        self,
        start: str,
        source: CrawlSource,
        policy: Policy,
        limits: CrawlLimits = USUAL_LIMITS,
    ) -> None:
        split = urlsplit(start)
        self.limits = limits
        self.requests = 3 * source.max_pages + limits.extra_requests
        """The requests for pages that are left: one may lead to any number of dead links."""
        self.refused = 0
        """How many addresses robots.txt has refused."""
        self.is_cut = False
        """Whether links were not looked at, because a limit was reached."""
        self.passed: Counter[str] = Counter()
        """How many links do not lead to pages, by the reason."""
        self._seen: set[int] = set()
        """The hashes of all links that were looked at."""
        self.unread: list[str] = []
        """Problems of lists of pages that could not be read."""
        self._policy = policy
        self._source = source
        self._patterns = 1 + 2 * (len(source.include) + len(source.exclude))
        self._compared_left = limits.compared
        self._root = f"{split.scheme}://{split.netloc}"
        self._prefix = split.path.rpartition("/")[0] + "/"
        self.place = self._root + self._prefix
        """The address of the directory that a crawl stays in."""
        self.refusals = 0
        """How often the server asked for fewer requests in a row."""
        place = f"{self._root}/robots.txt"
        # One that cannot be read forbids everything, and one on another host counts here as well
        # (RFC 9309, 2.3.1.2 and 2.3.1.4).
        robots = web.fetch_text(place, policy, most=web.MAX_PAGE_BYTES)
        with errors.refuse_hostile(place):
            self._robots = parse_robots(robots.text or "")
        self.delay = min(self._robots.crawl_delay(web.PRODUCT) or 0.0, limits.delay)
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
        if not (is_readable(split.path) or is_document(split.path)):
            return "to files that are not pages"
        is_generated = _GENERATED.search(split.path[len(self._prefix) - 1 :])
        if is_generated or _ACTION.search(split.query):
            return "to generated lists and other views"
        return "" if self._source.wants(self.path_of(url)) else "left out by the patterns"

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
                joined = (join_url(place, link) for link in find_links(text))
                links = list(filter(None, joined))
                lists = [each for each in links if each.endswith("/llms.txt") and each != place]
                pages = self._join(place, (each for each in links if each not in lists))
                for each in list(filter(self._is_here, lists))[: self.limits.sitemaps]:
                    pages += self._join(each, find_links(self._fetch_list(each)))
                return pages
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
        known = set(places)
        beyond = 0
        for number, place in enumerate(places):  # which grows
            if number >= self.limits.sitemaps or self.find_limit():
                self.unread.append(f"{len(places) - number + beyond} sitemaps: too many")
                break
            text = self._fetch_list(place)
            locations = find_locations(text)
            if is_sitemap_index(text) and len(places) > self.limits.sitemaps:
                beyond += len(locations)
            elif is_sitemap_index(text):
                joined = (join_url(place, each) or "" for each in locations)
                new = dict.fromkeys(filter(self._is_here, joined))
                places += [each for each in new if each not in known]
                known.update(new)
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
        allowed = self._robots.can_fetch(url, web.PRODUCT)
        self.refused += not allowed
        return allowed

    def fetch(self, url: str, known: web.Conditions | None) -> web.Page:
        """Return a page; a redirect may only lead where a link could."""

        def may_lead_to(target: str) -> bool:
            self.requests -= 1
            return self.requests >= 0 and self.covers(target) and self.allows(target)

        self.requests -= 1
        time.sleep(self.delay)
        only_pages = not _has_ending_of_page(url)
        with errors.refuse_hostile(url):
            return web.find_page(
                url, self._policy, known=known, allows=may_lead_to, only_pages=only_pages
            )

    def find_limit(self) -> str:
        """Return which limit of the whole crawl is reached; empty if none is."""
        if self.refusals > 2:
            return "the site asks for fewer requests"
        if self._compared_left < 0:
            return "it has too many links for its patterns"
        if len(self._seen) >= self.limits.links:
            return f"it has over {self.limits.links:,} links"
        if time.monotonic() >= self._policy.until:
            return "it took too long"
        return "" if self.requests > 0 else "it took too many requests"


def _has_ending_of_page(url: str) -> bool:
    """Tell whether pages are served under such a name; of others, the type decides."""
    known, extension = find_format(urlsplit(url).path), find_extension(urlsplit(url).path)
    # A number after a dot is that of a version.
    return known.is_page if known else not extension or extension.isdigit()


# The rules of robots.txt that are for us, read as RFC 9309 says

_GROUPS = frozenset({web.PRODUCT, "*"})
_AGENT = re.compile(r"user[- ]?agent(?:\s*:|\s|$)\s*([\w-]+|\*)?", re.IGNORECASE)
_SITEMAP = re.compile(r"site-?maps?(?:\s*:|\s)", re.IGNORECASE)
_SITE_WIDE = re.compile(r"(?:site-?maps?|host)(?:\s*:|\s|$)", re.IGNORECASE)
# With the misspellings that Protego reads.
_RULE = re.compile(r"(?:allow|di\w{3,9}|crawl[- ]delay)(?:\s*:|\s|$)", re.IGNORECASE)


MAX_ROBOTS = 512_000
"""The characters of a robots.txt that count; RFC 9309 (2.5) asks for at least 500 KiB."""

MAX_RULES = 5_000
"""The most lines for us, and wildcards in them: each rule is tried on each address."""

MAX_SITEMAPS = 100
"""The most sitemaps of a robots.txt that are read."""


def parse_robots(text: str) -> Protego:
    """Return the rules for us in a robots.txt; raise ValueError for too many.

    Groups for others are left out before it is parsed: a parser adds each rule of a group to each
    of its agents, whose product has no bound.
    """
    if len(text) > MAX_ROBOTS:
        # Without the line that is cut: a part of it means another rule.
        text = "\n".join(text[:MAX_ROBOTS].splitlines()[:-1])
    rules, sitemaps = list(_our_lines(text)), _find_sitemaps(text)
    if len(rules) > MAX_RULES:
        raise ValueError(f"robots.txt has over {MAX_RULES:,} rules")
    if sum(rule.count("*") + rule.count("$") for rule in rules) > MAX_RULES:
        raise ValueError(f"robots.txt has over {MAX_RULES:,} wildcards")
    return Protego.parse("\n".join([*rules, *sitemaps[:MAX_SITEMAPS]]))


def _our_lines(text: str) -> Iterator[str]:
    """Yield the lines of the groups for us and for all, each group with these agents alone."""
    is_ours = is_open = False  # more agents may follow as long as a group is open
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if agent := _AGENT.match(line):
            is_named = (agent[1] or "").lower() in _GROUPS
            is_ours = is_named or (is_ours and is_open)
            is_open = True
            if is_named:
                yield f"User-agent: {agent[1]}"
        elif (":" in line or _RULE.match(line)) and not _SITE_WIDE.match(line):
            is_open = False
            if is_ours:
                yield line


def _find_sitemaps(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if _SITEMAP.match(line)]


# The addresses in lists of pages: `llms.txt` and sitemaps

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
