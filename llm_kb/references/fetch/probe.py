"""What a refresh finds: for each source, in one request where it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError, NoPageError, NothingFetchedError, PlanChangedError
from llm_kb.references.fetch.fetcher import conditions
from llm_kb.references.fetch.old_topic import OldTopic, asks_the_same
from llm_kb.references.plan.crawl import find_pages
from llm_kb.references.plan.make import check_source, explain, plan_tree
from llm_kb.references.plan.plan import Plan, PlannedSource, TopicRequest
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.local import list_local, read_local
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    LocalSource,
    PlannedPage,
    Source,
    WebSource,
)
from llm_kb.references.sources.web import Page, fetch_page, measure_page
from llm_kb.references.topic.provenance import FileRecord, Provenance, hash_content
from llm_kb.references.topic.topic_file import TopicFile


def probe_topic(
    topic: TopicFile, old: OldTopic, recorded: Provenance, remotes: Remotes
) -> Findings:
    """Ask every source of a topic what is new; raise when all of them fail."""
    if not topic.sources:
        raise NothingFetchedError(topic.title, ["its topic.md names no sources"])
    probes = tuple(
        _probe(index, source, old, remotes) for index, source in enumerate(topic.sources)
    )
    request = TopicRequest(
        topic_id=topic.id,
        title=topic.title,
        body=topic.body,
        sources=topic.sources,
        tags=topic.tags,
        max_age_days=topic.max_age_days,
        trust_score=topic.trust_score,
        created_by=topic.created_by,
    )
    findings = Findings(
        probes=probes,
        plan=Plan(request=request, sources=tuple(p.planned for p in probes)),
        has_lost_files=len(old.files) < len(recorded.files),
    )
    if len(findings.problems) == len(probes):
        raise NothingFetchedError(topic.title, findings.problems)
    return findings


def count_restored(old: OldTopic, files: Mapping[str, FileRecord]) -> int:
    """Count the files that are fetched again only because they were edited or lost here."""
    recorded = old.files
    return sum(
        # The very record: the file was taken over as it is, whatever it is.
        path in recorded
        and record is not recorded[path]
        and record.hash == recorded[path].hash
        and not old.has({path: record})
        for path, record in files.items()
    )


def _probe(index: int, source: Source, old: OldTopic, remotes: Remotes) -> Probe:
    try:
        if isinstance(source, GitSource):
            probe = _probe_git(index, source, old, remotes)
        elif isinstance(source, WebSource):
            probe = probe_page(index, source, old, remotes)
        elif isinstance(source, CrawlSource):
            probe = probe_crawl(index, source, old, remotes)
        else:
            probe = _probe_local(index, source, old)
        check_source(probe.planned, remotes.settings)
        return probe
    except KbError as error:
        return Probe(planned=PlannedSource(source=source, problem=explain(error, source)))


def _probe_git(index: int, source: GitSource, old: OldTopic, remotes: Remotes) -> Probe:
    records = old.of_source(index)
    commit = remotes.find_commit(source)
    pinned = replace(source, commit=commit)
    is_same = (
        bool(records)
        and asks_the_same(source, old.asked[index])
        and all(record.commit == commit for record in records.values())
    )
    if is_same and commit == source.commit and old.has(records):
        planned = PlannedSource(
            source=pinned, files=len(records), size=sum(r.size for r in records.values())
        )
        return Probe(planned=planned, is_unchanged=True)
    tree = remotes.measure(pinned, {r.blob: r.size for r in records.values() if r.blob})
    return Probe(planned=plan_tree(pinned, tree))


def _probe_local(index: int, source: LocalSource, old: OldTopic) -> Probe:
    records = old.of_source(index)
    tree = list_local(source)
    there = {file.path: hash_content(read_local(source, file.path)) for file in tree.files}
    # Whether the files have a folder of their own is no change.
    first = min(there, default="")
    homes = [path for path in records if path == first or path.endswith(f"/{first}")]
    prefix = min(homes, key=len, default="").removesuffix(first)
    is_same = {prefix + path: hash_ for path, hash_ in there.items()} == {
        path: record.hash for path, record in records.items()
    }
    return Probe(planned=plan_tree(source, tree), is_unchanged=is_same and old.has(records))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One source as it is now; `pages` are those asked for on the way.

    `kept` are old files whose pages may be there still, but cannot be had now.
    """

    planned: PlannedSource
    is_unchanged: bool = False
    pages: Mapping[str, Page | None] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """What went wrong with the whole source."""
        if not self.planned.problem:
            return None
        return str(FetchError(self.planned.source.url, self.planned.problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All sources of a topic as they are now, and whether some it had are gone."""

    probes: tuple[Probe, ...]
    plan: Plan
    has_lost_files: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Tell whether nothing at all has changed; a source that failed counts as such."""
        same = all(probe.is_unchanged or probe.planned.problem for probe in self.probes)
        return same and not self.has_lost_files

    @property
    def is_complete(self) -> bool:
        """Tell whether all that was fetched before could be had again."""
        return not any(probe.problem or probe.kept for probe in self.probes)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong, a line for each source that failed."""
        return tuple(probe.problem for probe in self.probes if probe.problem)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong with parts of sources."""
        return tuple(warning for probe in self.probes for warning in probe.warnings)

    @property
    def failed(self) -> frozenset[int]:
        """The numbers of the sources that failed."""
        return frozenset(index for index, probe in enumerate(self.probes) if probe.problem)

    @property
    def unchanged(self) -> frozenset[int]:
        """The numbers of the sources that have not changed."""
        return frozenset(index for index, probe in enumerate(self.probes) if probe.is_unchanged)

    @property
    def pages(self) -> dict[str, Page | None]:
        """All pages that were asked for."""
        return {url: page for probe in self.probes for url, page in probe.pages.items()}

    @property
    def kept(self) -> dict[int, tuple[str, ...]]:
        """The old files that are taken over as they are, by source."""
        return {index: probe.kept for index, probe in enumerate(self.probes)}
