"""The sources of a topic as they are now, each asked in one request where it has not changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError, PlanChangedError, refuse_hostile
from llm_kb.references.fetch.fetcher import conditions
from llm_kb.references.fetch.old_topic import OldTopic, asks_the_same
from llm_kb.references.plan.crawl import Count, find_pages
from llm_kb.references.plan.make import Progress, check_source, explain, plan_tree
from llm_kb.references.plan.package import follow_archive, follow_package
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.local import list_local, read_local, stat_tag
from llm_kb.references.sources.records import (
    ArchiveSource,
    CrawlSource,
    GitSource,
    LocalSource,
    PackageSource,
    PlannedPage,
    Source,
    TreeSource,
    WebSource,
)
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import fetch_page
from llm_kb.references.topic.provenance import FileRecord, hash_content, total_size


def find_changes(
    sources: Sequence[Source], old: OldTopic, remotes: Remotes, progress: Progress
) -> tuple[PlannedSource, ...]:
    """Return every source as it is now; one that cannot be asked has a problem."""
    remotes = remotes.while_planning()
    found = []
    for index, source in enumerate(sources):
        progress(f"asking {source.url}", 0, 0)
        asking = partial(progress, f"asking {source.url}")
        found.append(_find(index, source, old, remotes, asking))
    return tuple(found)


def _find(
    index: int, source: Source, old: OldTopic, remotes: Remotes, progress: Count
) -> PlannedSource:
    try:
        with refuse_hostile(source.url):
            if isinstance(source, GitSource):
                found = _find_repository(index, source, old, remotes)
            elif isinstance(source, WebSource):
                found = find_page(index, source, old, remotes)
            elif isinstance(source, CrawlSource):
                found = find_crawl(index, source, old, remotes, progress)
            elif isinstance(source, PackageSource):
                raise FetchError(source.url, "a package is looked up by create, not by refresh")
            else:
                found = _find_local(index, source, old, remotes)
        check_source(found, remotes.policy)
    except KbError as error:
        return PlannedSource(source=source, problem=explain(error, source))
    return found


def _find_repository(
    index: int, source: GitSource, old: OldTopic, remotes: Remotes
) -> PlannedSource:
    source = follow_package(source, remotes)
    records = old.of_source(index)
    commit = remotes.find_commit(source)
    pinned = replace(source, commit=commit)
    is_same = asks_the_same(source, old.asked[index]) and all(
        record.commit == commit for record in records.values()
    )
    if records and is_same and commit == source.commit and old.has(records):
        return _unchanged(pinned, records)
    tree = remotes.measure(pinned, {r.blob: r.size for r in records.values() if r.blob})
    return plan_tree(pinned, tree)


def _unchanged(source: TreeSource, records: Mapping[str, FileRecord]) -> PlannedSource:
    """Return the plan of a source whose files are as they were fetched."""
    size = total_size(records.values())
    return PlannedSource(source=source, files=len(records), size=size, is_unchanged=True)


def _find_local(
    index: int, source: LocalSource | ArchiveSource, old: OldTopic, remotes: Remotes
) -> PlannedSource:
    records = old.of_source(index)
    if isinstance(source, ArchiveSource):
        source = follow_archive(source, remotes)
        is_known = records and asks_the_same(source, old.asked[index])
        if is_known and old.has(records):  # its hash says what is in it: nothing is asked
            return _unchanged(source, records)
    place = remotes.locate(source)
    tree = list_local(place, remotes.policy.max_bytes)
    for path, reason in tree.unread.items():
        if any(f"/{path}" in f"/{known}" for known in records):  # what was fetched is not gone
            raise FetchError(source.url, f"{path.rstrip('/')}: {reason}")
    paths = [file.path for file in tree.files]
    there = {path: hash_content(data) for path, data in read_local(place, paths)}
    # Whether the files have a folder of their own is not a change.
    first = min(there, default="")
    homes = [path for path in records if path == first or path.endswith(f"/{first}")]
    prefix = min(homes, key=len, default="").removesuffix(first)
    is_same = {prefix + path: hash_ for path, hash_ in there.items()} == {
        path: record.hash for path, record in records.items()
    }
    # Times are recorded anew, so that nothing says for ever that the directory has changed.
    is_same &= all(
        not record.etag or record.etag == stat_tag(place, path.removeprefix(prefix))
        for path, record in records.items()
    )
    return replace(plan_tree(source, tree), is_unchanged=is_same and old.has(records))


def find_page(index: int, source: WebSource, old: OldTopic, remotes: Remotes) -> PlannedSource:
    """Ask the address of a page, wherever it led before."""
    records = old.of_source(index)
    known = {path: record for path, record in records.items() if old.has({path: record})}
    path, record = next(iter(known.items()), ("", None))
    try:
        page = fetch_page(
            PlannedPage(url=source.url),
            remotes.policy,
            hosts=_approved_hosts(source, records),
            known=conditions(record) if record else None,
        )
    except PlanChangedError as error:
        # It leads to a host that was not approved: it is asked once that is.
        moved = PlannedPage(url=error.leads_to or source.url)
        return PlannedSource(source=source, files=1, size=None, pages=(moved,))
    url = page.url if page else record.url if record else source.url
    is_here = record is not None and url == record.url
    is_same = is_here and (page is None or old.gave(path, page.text))
    return PlannedSource(
        source=source,
        files=1,
        size=page.size if page else 0,
        pages=(PlannedPage(url=url),),
        read={url: page},
        is_unchanged=is_same and len(records) == 1,
    )


def find_crawl(
    index: int, source: CrawlSource, old: OldTopic, remotes: Remotes, progress: Count
) -> PlannedSource:
    """Find the pages of a site again, and request each of them.

    A page is gone when the server says so, or when no page leads to it any more. One
    that fails keeps the file it gave before.
    """
    records = old.of_source(index)
    there = {record.url: path for path, record in records.items() if old.has({path: record})}
    # Of a source that was edited all pages are read: an unchanged one may lead to others now.
    is_same_wish = asks_the_same(source, old.asked[index])
    tags = {
        record.url: conditions(record) if is_same_wish and record.url in there else {}
        for record in records.values()
    }
    crawl = find_pages(source, remotes.policy, tags, progress)
    kept = tuple(path for path, record in records.items() if record.url in crawl.failed)
    planned = PlannedSource(
        source=source,
        files=len(crawl.pages) + len(kept),
        size=sum(page.size or 0 for page in crawl.pages),
        # Without their sizes, which are not limits: growth is asked about as a whole.
        pages=tuple(PlannedPage(url=page.url) for page in crawl.pages),
        read=crawl.read,
        kept=kept,
        warnings=_warn(crawl.failed, {records[path].url for path in kept}),
    )
    if not _approved_hosts(source, records).issuperset(planned.hosts):
        # It has moved to a host that was not approved: it is fetched once that is.
        warnings = _warn(crawl.failed, set())
        return PlannedSource(
            source=source,
            files=len(crawl.pages),
            size=None,
            pages=crawl.pages,
            warnings=warnings,
        )
    if not crawl.pages:
        raise FetchError(source.url, next(iter(crawl.failed.values()), "it has no file to fetch"))
    same = {
        url
        for url, page in crawl.read.items()
        if url in there and (page is None or old.gave(there[url], page.text))
    }
    accounted = same | crawl.failed.keys()
    is_unchanged = (
        len(same) == len(crawl.pages) and {record.url for record in records.values()} <= accounted
    )
    return replace(planned, is_unchanged=is_unchanged)


def _approved_hosts(
    source: WebSource | CrawlSource, records: Mapping[str, FileRecord]
) -> frozenset[str]:
    """Return the hosts that a source names or was fetched from, with their ports."""
    urls = [source.url, *(record.url for record in records.values())]
    return frozenset(filter(None, map(host_and_port, urls)))


def _warn(failed: Mapping[str, str], kept: Collection[str]) -> tuple[str, ...]:
    return tuple(
        str(FetchError(url, reason)) + ("; its file is kept as it was" if url in kept else "")
        for url, reason in failed.items()
    )
