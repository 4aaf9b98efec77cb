"""What a refresh finds at the addresses of pages: in one request where nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from llm_kb.references.crawl import find_pages
from llm_kb.references.errors import FetchError, NoPageError, PlanChangedError
from llm_kb.references.fetch_web import Page, fetch_page, measure_page
from llm_kb.references.fetching import conditions
from llm_kb.references.findings import Probe
from llm_kb.references.old_topic import OldTopic
from llm_kb.references.plan import PlannedPage, PlannedSource
from llm_kb.references.provenance import FileRecord, hash_content
from llm_kb.references.remotes import Remotes
from llm_kb.references.sources import CrawlSource, WebSource


def probe_page(index: int, source: WebSource, old: OldTopic, remotes: Remotes) -> Probe:
    """Ask the address of a page, wherever it led before."""
    records = old.of_source(index)
    known = {path: record for path, record in records.items() if old.has({path: record})}
    record = next(iter(known.values()), None)
    try:
        page = fetch_page(
            PlannedPage(url=source.url),
            remotes.http,
            hosts=_approved_hosts(source, records),
            known=conditions(record) if record else None,
        )
    except PlanChangedError:
        # It leads to a host nobody approved: what is there is fetched once somebody has.
        moved = measure_page(source.url, remotes.http)
        planned = PlannedSource(source=source, files=1, size=moved.size, pages=(moved,))
        return Probe(planned=planned)
    url = page.url if page else record.url if record else source.url
    is_same = record is not None and url == record.url and _is_same(page, record)
    return Probe(
        planned=PlannedSource(
            source=source,
            files=1,
            size=page.size if page else 0,
            pages=(PlannedPage(url=url),),
        ),
        is_unchanged=is_same and len(records) == 1,
        pages={url: page},
    )


def probe_crawl(index: int, source: CrawlSource, old: OldTopic, remotes: Remotes) -> Probe:
    """Find the pages of a site anew, and ask each of them.

    A page is gone when the server says so, or when no page leads to it any more. One
    that fails keeps the file it gave before.
    """
    records = old.of_source(index)
    crawl = find_pages(source, remotes.http, known=[record.url for record in records.values()])
    planned = PlannedSource(source=source, files=len(crawl.pages), size=None, pages=crawl.pages)
    if not planned.hosts <= _approved_hosts(source, records):
        # As above: it has moved to a host nobody approved.
        return Probe(planned=planned, warnings=_warn(dict(crawl.failed), set()))
    # A size that was measured is no limit here: what has grown is asked about as a whole.
    pages = tuple(PlannedPage(url=page.url) for page in crawl.pages)
    asked: dict[str, Page | None] = {}
    failed = dict(crawl.failed)
    same: set[str] = set()
    for page in pages:
        found = old.find_page(index, page.url)
        record = found[1] if found and old.has(dict([found])) else None
        known = conditions(record) if record else None
        try:
            answer = fetch_page(page, remotes.http, hosts=planned.hosts, known=known)
        except NoPageError:
            continue
        except FetchError as error:
            failed[page.url] = error.reason
            continue
        asked[page.url] = answer
        if record and _is_same(answer, record):
            same.add(page.url)
    if not asked:
        raise FetchError(source.url, next(iter(failed.values()), "it holds no file to fetch"))
    kept = tuple(path for path, record in records.items() if record.url in failed)
    accounted = same | failed.keys()
    return Probe(
        planned=PlannedSource(
            source=source,
            files=len(asked) + len(kept),
            size=sum(page.size for page in asked.values() if page),
            pages=tuple(PlannedPage(url=url) for url in asked),
        ),
        is_unchanged=asked.keys() == same and all(r.url in accounted for r in records.values()),
        pages=asked,
        kept=kept,
        warnings=_warn(failed, {records[path].url for path in kept}),
    )


def _approved_hosts(
    source: WebSource | CrawlSource, records: Mapping[str, FileRecord]
) -> frozenset[str]:
    """Return the hosts that a source names or was fetched from."""
    urls = [source.url, *(record.url for record in records.values())]
    return frozenset(filter(None, (urlsplit(url).hostname for url in urls)))


def _is_same(page: Page | None, record: FileRecord) -> bool:
    return page is None or hash_content(page.text.encode()) == record.hash


def _warn(failed: dict[str, str], kept: set[str]) -> tuple[str, ...]:
    return tuple(
        str(FetchError(url, reason)) + ("; its file is kept as it was" if url in kept else "")
        for url, reason in failed.items()
    )
