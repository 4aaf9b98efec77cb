"""Sources that are pages: one, or those that a crawl finds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from llm_kb.references.errors import FetchError
from llm_kb.references.plan.crawl import Crawl, find_pages
from llm_kb.references.plan.kind import Kind, Step
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.sources.file_names import page_name, page_path, unused_name
from llm_kb.references.sources.records import CrawlSource, PlannedPage, WebSource
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import Page, find_page, no_text
from llm_kb.references.topic.provenance import FileRecord
from llm_kb.references.topic.staging import Staged, asks_the_same
from llm_kb.references.topic.topic_directory import RESERVED

T = TypeVar("T", WebSource, CrawlSource)


class _PagesKind(Kind[T]):
    """A source of pages, each with an address and a file."""

    def fetch(self, planned: PlannedSource, staged: Staged, _folder: str) -> None:
        """Write the pages as they were read for the plan; no server is asked again."""
        # First, so that no new page takes their names.
        for path in planned.kept:
            staged.keep_as_it_is(path, self.old.files[path])
        for page in planned.pages:
            self._write_page(page, planned, staged)

    def _write_page(self, page: PlannedPage, planned: PlannedSource, staged: Staged) -> None:
        """Write a page as it was planned, or take it over from the old topic if it is the same."""
        old = self.old.find_page(self.index, page.url)
        fetched = planned.read[page.url]
        if fetched is None and old and staged.keep(*old):
            return
        if fetched is None:
            raise FetchError(page.url, "its file was changed meanwhile; refresh the topic again")
        data = fetched.text.encode()
        record = FileRecord(
            source=self.index,
            url=self._record_url(page, fetched),
            etag=fetched.etag,
            last_modified=fetched.last_modified,
        )
        stay = {each.url for each in planned.pages}
        before = old[0] if old else None
        others: list[str] = [
            path for path, each in self.records.items() if each.url in stay and path != before
        ]
        name = before or self._name(record.url)
        staged.write(unused_name(name, [*staged.files, *RESERVED, *others]), data, record)

    def _record_url(self, page: PlannedPage, fetched: Page) -> str:
        """Return the address that is recorded for a page."""
        raise NotImplementedError

    def _name(self, url: str) -> str:
        """Return the path of a new page."""
        raise NotImplementedError

    @property
    def _hosts(self) -> frozenset[str] | None:
        """The hosts that planning may contact: the source's own and approved ones; None for any."""
        if self.old.is_new:
            return None
        return self.old.approved | {host_and_port(self.source.url)}


class WebKind(_PagesKind[WebSource]):
    """One page, at its own address, wherever that redirected before."""

    def plan(self) -> PlannedSource:
        """Read the page."""
        known = {path: each for path, each in self.records.items() if self.old.has({path: each})}
        path, record = next(iter(known.items()), ("", None))
        conditions = record.conditions if record else None
        url, policy = self.source.url, self.remotes.policy
        found = find_page(url, policy, hosts=self._hosts, known=conditions)
        page, content = found.page, found.content
        if content is None and not found.is_unchanged:
            raise no_text(page.url)
        is_here = len(self.records) == 1 and record is not None and record.url == page.url
        return PlannedSource(
            source=self.source,
            files=1,
            size=page.size or 0,
            pages=(page,),
            notes=_moved(url, page.url),
            contacted=found.hosts,
            read={page.url: content},
            is_unchanged=is_here and (content is None or self.old.gave(path, content.text)),
        )

    def _record_url(self, page: PlannedPage, fetched: Page) -> str:
        return fetched.url

    def _name(self, url: str) -> str:
        return page_name(url)


class CrawlKind(_PagesKind[CrawlSource]):
    """The pages of a site, each requested for the plan.

    A page is gone if the server says so, or if no page leads to it any more. One
    that fails keeps its earlier file.
    """

    def plan(self) -> PlannedSource:
        """Find the pages, and compare them with those of the old topic."""
        records, old = self.records, self.old
        there = {record.url: path for path, record in records.items() if old.has({path: record})}
        # All pages of an edited source are read: an unchanged one may lead to others now.
        is_same_wish = asks_the_same(self.source, old.asked[self.index])
        known = {
            record.url: record.conditions if is_same_wish and record.url in there else {}
            for record in records.values()
        }

        crawl = find_pages(
            self.source,
            self.remotes.policy,
            known,
            partial(self.progress, Step("looking at", self.source.url)),
            hosts=self._hosts,
        )
        planned = PlannedSource(
            source=self.source,
            files=len(crawl.pages),
            size=sum(page.size or 0 for page in crawl.pages),
            pages=crawl.pages,
            notes=(*_moved(self.source.url, crawl.start), *crawl.notes),
            contacted=crawl.contacted,
            read=crawl.read,
        )
        if old.is_new:
            return planned
        same = {
            url
            for url, page in crawl.read.items()
            if url in there and (page is None or old.gave(there[url], page.text))
        }
        return self._compare(planned, crawl, same)

    def _compare(self, planned: PlannedSource, crawl: Crawl, same: set[str]) -> PlannedSource:
        """Complete the plan of a refresh; `same` are the pages that have not changed."""
        if not crawl.pages:
            reasons = iter(crawl.failed.values())
            raise FetchError(self.source.url, next(reasons, "it has no file to fetch"))
        records = self.records
        kept = tuple(path for path, record in records.items() if record.url in crawl.failed)
        accounted = same | crawl.failed.keys()
        return replace(
            planned,
            files=len(crawl.pages) + len(kept),
            is_unchanged=len(same) == len(crawl.pages)
            and all(record.url in accounted for record in records.values()),
            kept=kept,
            warnings=_warn(crawl.failed, {records[path].url for path in kept}),
        )

    def _record_url(self, page: PlannedPage, fetched: Page) -> str:
        return page.url  # a crawl finds its pages by the addresses planned

    def _name(self, url: str) -> str:
        return page_path(url)


def _moved(asked: str, found: str) -> tuple[str, ...]:
    if host_and_port(asked) == host_and_port(found):
        return ()
    what = "port" if urlsplit(asked).hostname == urlsplit(found).hostname else "host"
    return (f"redirects to another {what}: {found}",)


def _warn(failed: Mapping[str, str], kept: Collection[str]) -> tuple[str, ...]:
    return tuple(
        str(FetchError(url, reason)) + ("; its file is kept as it was" if url in kept else "")
        for url, reason in failed.items()
    )
