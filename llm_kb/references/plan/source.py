"""Plans one source: its present files, and for a refresh what has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.references.errors import (
    FetchError,
    PlanChangedError,
    RobotsMovedError,
    SourceError,
    refuse_hostile,
)
from llm_kb.references.plan.crawl import Count, find_pages
from llm_kb.references.plan.package import follow_archive, follow_package, resolve_package
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes, check_count
from llm_kb.references.sources.git import Tree
from llm_kb.references.sources.local import read_local, stat_tag
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
from llm_kb.references.sources.web import find_page, no_text
from llm_kb.references.topic.old_topic import OldTopic, asks_the_same
from llm_kb.references.topic.provenance import FileRecord, hash_content, total_size


def plan_source(
    index: int, source: Source, old: OldTopic, remotes: Remotes, progress: Count
) -> PlannedSource:
    """Plan one source; a failure becomes part of the result.

    For an old topic, only approved hosts are contacted, and unchanged files are marked.
    """
    try:
        with refuse_hostile(source.url):
            if isinstance(source, PackageSource):
                if not old.is_new:
                    raise FetchError(source.url, "a package is looked up by create, not by refresh")
                source = resolve_package(source, remotes)
            if isinstance(source, GitSource):
                planned = _plan_repository(index, source, old, remotes)
            elif isinstance(source, WebSource):
                planned = _plan_page(index, source, old, remotes)
            elif isinstance(source, CrawlSource):
                planned = _plan_crawl(index, source, old, remotes, progress)
            else:
                planned = _plan_files(index, source, old, remotes)
        check_count(planned.source.url, planned.files, remotes.policy)
        if not planned.files and not planned.has_moved:
            reason = "; ".join(["it has no file to fetch", *planned.notes])
            raise FetchError(planned.source.url, reason)
    except KbError as error:
        return PlannedSource(source=source, problem=explain(error, source))
    return planned


def explain(error: KbError, source: Source) -> str:
    """Return the reason why a source cannot be fetched, with the address if it is another."""
    if isinstance(error, FetchError):
        return error.reason if error.url == source.url else f"{error.url}: {error.reason}"
    return error.reason if isinstance(error, SourceError) else str(error)


def _plan_repository(
    index: int, source: GitSource, old: OldTopic, remotes: Remotes
) -> PlannedSource:
    if not old.is_new:
        source = follow_package(source, remotes)
    records = old.of_source(index)
    pinned = replace(source, commit=remotes.find_commit(source))
    is_same = asks_the_same(source, old.asked[index]) and all(
        record.commit == pinned.commit for record in records.values()
    )
    if records and is_same and pinned.commit == source.commit and old.has(records):
        return _unchanged(pinned, records)
    sizes = {record.blob: record.size for record in records.values() if record.blob}
    return _plan_tree(pinned, remotes.measure(pinned, sizes))


def _unchanged(source: TreeSource, records: Mapping[str, FileRecord]) -> PlannedSource:
    """Return the plan of a source whose files are unchanged."""
    size = total_size(records.values())
    return PlannedSource(source=source, files=len(records), size=size, is_unchanged=True)


def _plan_tree(source: TreeSource, tree: Tree) -> PlannedSource:
    """Plan the files of a repository, a directory or an archive."""
    package = [] if isinstance(source, LocalSource) or not source.package else [source.package]
    return PlannedSource(
        source=source,
        files=len(tree.files),
        size=sum(file.size or 0 for file in tree.files),
        notes=(*package, *tree.notes),
    )


def _plan_files(
    index: int, source: LocalSource | ArchiveSource, old: OldTopic, remotes: Remotes
) -> PlannedSource:
    records = old.of_source(index)
    if isinstance(source, ArchiveSource) and not old.is_new:
        source = follow_archive(source, remotes)
        is_known = records and asks_the_same(source, old.asked[index])
        if is_known and old.has(records):  # its hash identifies its content: no request is needed
            return _unchanged(source, records)
    tree = remotes.measure(source)
    for path, reason in tree.unread.items():
        if any(f"/{path}" in f"/{known}" for known in records):  # the fetched files still exist
            raise FetchError(source.url, f"{path.rstrip('/')}: {reason}")
    is_unchanged = bool(records) and _are_same(remotes.locate(source), tree, records)
    return replace(_plan_tree(source, tree), is_unchanged=is_unchanged and old.has(records))


def _are_same(place: LocalSource, tree: Tree, records: Mapping[str, FileRecord]) -> bool:
    """Tell whether the files of a directory or an archive are as recorded."""
    paths = [file.path for file in tree.files]
    there = {path: hash_content(data) for path, data in read_local(place, paths)}
    # Whether the files have a folder of their own is not a change.
    first = min(there, default="")
    homes = [path for path in records if path == first or path.endswith(f"/{first}")]
    prefix = min(homes, key=len, default="").removesuffix(first)
    if {prefix + path: hash_ for path, hash_ in there.items()} != {
        path: record.hash for path, record in records.items()
    }:
        return False
    # Times are recorded again, so that the directory does not count as changed for ever.
    return all(
        not record.etag or record.etag == stat_tag(place, path.removeprefix(prefix))
        for path, record in records.items()
    )


def _plan_page(index: int, source: WebSource, old: OldTopic, remotes: Remotes) -> PlannedSource:
    """Plan a page at its own address, wherever that redirected before."""
    records = old.of_source(index)
    known = {path: record for path, record in records.items() if old.has({path: record})}
    path, record = next(iter(known.items()), ("", None))
    try:
        found = find_page(
            source.url,
            remotes.policy,
            hosts=None if old.is_new else _allowed_hosts(source, old),
            known=record.conditions if record else None,
        )
    except PlanChangedError as error:
        return _plan_move(source, old, error)
    page, content = found.page, found.content
    if content is None and not found.is_unchanged:
        raise no_text(page.url)
    is_here = len(records) == 1 and record is not None and record.url == page.url
    return PlannedSource(
        source=source,
        files=1,
        size=page.size or 0,
        pages=(page,),
        notes=_moved(source.url, page.url),
        contacted=found.hosts,
        read={page.url: content},
        is_unchanged=is_here and (content is None or old.gave(path, content.text)),
    )


def _plan_crawl(
    index: int, source: CrawlSource, old: OldTopic, remotes: Remotes, progress: Count
) -> PlannedSource:
    """Find the pages of a site, and request each of them.

    A page is gone if the server says so, or if no page leads to it any more. One
    that fails keeps its earlier file.
    """
    records = old.of_source(index)
    there = {record.url: path for path, record in records.items() if old.has({path: record})}
    # All pages of an edited source are read: an unchanged one may lead to others now.
    is_same_wish = asks_the_same(source, old.asked[index])
    known = {
        record.url: record.conditions if is_same_wish and record.url in there else {}
        for record in records.values()
    }
    hosts = None if old.is_new else _allowed_hosts(source, old)

    def is_known(url: str, text: str) -> bool:
        return url in there and old.gave(there[url], text)

    try:
        crawl = find_pages(source, remotes.policy, known, progress, hosts=hosts, is_known=is_known)
    except PlanChangedError as error:
        return _plan_move(source, old, error)
    planned = PlannedSource(
        source=source,
        files=len(crawl.pages),
        size=sum(page.size or 0 for page in crawl.pages),
        pages=crawl.pages,
        notes=(*_moved(source.url, crawl.start), *crawl.notes),
        contacted=crawl.contacted,
        robots=crawl.robots,
        read=crawl.read,
    )
    if old.is_new:
        return planned
    if not crawl.pages:
        raise FetchError(source.url, next(iter(crawl.failed.values()), "it has no file to fetch"))
    kept = tuple(path for path, record in records.items() if record.url in crawl.failed)
    same = {
        url
        for url, page in crawl.read.items()
        if url in there and (page is None or is_known(url, page.text))
    }
    accounted = same | crawl.failed.keys()
    return replace(
        planned,
        files=len(crawl.pages) + len(kept),
        # Without their sizes, which are not limits: approval of growth covers the whole.
        pages=tuple(PlannedPage(url=page.url) for page in crawl.pages),
        is_unchanged=len(same) == len(crawl.pages)
        and all(record.url in accounted for record in records.values()),
        kept=kept,
        warnings=_warn(crawl.failed, {records[path].url for path in kept}),
    )


def _moved(asked: str, found: str) -> tuple[str, ...]:
    if host_and_port(asked) == host_and_port(found):
        return ()
    what = "port" if urlsplit(asked).hostname == urlsplit(found).hostname else "host"
    return (f"redirects to another {what}: {found}",)


def _plan_move(
    source: WebSource | CrawlSource, old: OldTopic, error: PlanChangedError
) -> PlannedSource:
    """Return the plan of a source that leads to a host which must be approved first.

    Raises FetchError if the refresh has asked for an approval already, so that redirects cannot
    ask for ever: the next refresh may ask about one more host.
    """
    if not error.leads_to:
        raise error
    host = host_and_port(error.leads_to)
    if old.has_asked:
        reason = f"it redirects to another host, {host}; refresh the topic again to approve that"
        raise FetchError(error.url, reason)
    planned = PlannedSource(source=source, size=None, has_moved=True)
    if isinstance(error, RobotsMovedError):
        return replace(planned, robots=(host,), notes=(f"its robots.txt is on {host}",))
    return replace(planned, contacted=(host,), notes=_moved(source.url, error.leads_to))


def _allowed_hosts(source: WebSource | CrawlSource, old: OldTopic) -> frozenset[str]:
    """Return the hosts that planning may contact: a source's own, and those approved."""
    return old.approved | {host_and_port(source.url)}


def _warn(failed: Mapping[str, str], kept: Collection[str]) -> tuple[str, ...]:
    return tuple(
        str(FetchError(url, reason)) + ("; its file is kept as it was" if url in kept else "")
        for url, reason in failed.items()
    )
