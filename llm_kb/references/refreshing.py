"""What a refresh finds: for each source, in one request where it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from llm_kb.errors import KbError
from llm_kb.references.crawl import find_pages
from llm_kb.references.errors import FetchError, NothingFetchedError
from llm_kb.references.fetch_web import Page, fetch_page
from llm_kb.references.fetching import OldTopic, find_page
from llm_kb.references.plan import Plan, PlannedPage, PlannedSource, TopicRequest
from llm_kb.references.provenance import FileRecord, hash_content
from llm_kb.references.remotes import Remotes, check_count, read_local, walk_local
from llm_kb.references.sources import CrawlSource, GitSource, LocalSource, Source, WebSource
from llm_kb.references.topic_file import TopicFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One source as it is now; `pages` are those asked for on the way."""

    planned: PlannedSource
    is_unchanged: bool = False
    pages: Mapping[str, Page | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All sources of a topic as they are now."""

    probes: tuple[Probe, ...]
    plan: Plan

    @property
    def is_unchanged(self) -> bool:
        """Tell whether nothing at all has changed; a source that failed counts as such."""
        return all(probe.is_unchanged or probe.planned.problem for probe in self.probes)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong, a line for each source that failed."""
        return tuple(
            str(FetchError(probe.planned.source.url, probe.planned.problem))
            for probe in self.probes
            if probe.planned.problem
        )

    @property
    def pages(self) -> dict[str, Page | None]:
        """All pages that were asked for."""
        return {url: page for probe in self.probes for url, page in probe.pages.items()}


def probe_topic(topic: TopicFile, old: OldTopic, remotes: Remotes) -> Findings:
    """Ask every source of a topic what is new; raise when all of them fail."""
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
        probes=probes, plan=Plan(request=request, sources=tuple(p.planned for p in probes))
    )
    if len(findings.problems) == len(probes):
        raise NothingFetchedError(topic.title, findings.problems)
    return findings


def count_restored(old: OldTopic, files: Mapping[str, FileRecord]) -> int:
    """Count the files that are fetched again only because they were edited or lost here."""
    recorded = old.provenance.files
    return sum(
        # The very record: the file was taken over as it is, whatever it is.
        path in recorded
        and record is not recorded[path]
        and record.hash == recorded[path].hash
        and not _are_there(old, {path: record})
        for path, record in files.items()
    )


def _probe(index: int, source: Source, old: OldTopic, remotes: Remotes) -> Probe:
    records = old.provenance.of_source(index)
    # A page's record may name another URL than its source: the one a redirect led to.
    try:
        if isinstance(source, GitSource):
            probe = _probe_git(source, records, old, remotes)
        elif isinstance(source, WebSource):
            url = next((record.url for record in records.values()), source.url)
            probe = _probe_pages(index, source, (PlannedPage(url=url),), old, remotes)
        elif isinstance(source, CrawlSource):
            pages = find_pages(source, remotes.http).pages
            probe = _probe_pages(index, source, pages, old, remotes)
        else:
            probe = _probe_local(source, records, old)
        check_count(source.url, probe.planned.files, remotes.settings)
        return probe
    except KbError as error:
        reason = getattr(error, "reason", None) or str(error)
        return Probe(planned=PlannedSource(source=source, problem=reason))


def _probe_git(
    source: GitSource, records: Mapping[str, FileRecord], old: OldTopic, remotes: Remotes
) -> Probe:
    commit = remotes.find_commit(source)
    pinned = replace(source, commit=commit)
    same = bool(records) and all(
        (record.commit, record.url, record.revision) == (commit, source.url, source.ref)
        for record in records.values()
    )
    if same and commit == source.commit and _are_there(old, records):
        planned = PlannedSource(
            source=pinned, files=len(records), size=sum(r.size for r in records.values())
        )
        return Probe(planned=planned, is_unchanged=True)
    tree = remotes.measure(pinned, {r.blob: r.size for r in records.values() if r.blob})
    size = sum(file.size or 0 for file in tree.files)
    return Probe(
        planned=PlannedSource(source=pinned, files=len(tree.files), size=size, notes=tree.notes)
    )


def _probe_pages(
    index: int,
    source: WebSource | CrawlSource,
    pages: tuple[PlannedPage, ...],
    old: OldTopic,
    remotes: Remotes,
) -> Probe:
    planned = PlannedSource(source=source, files=len(pages), size=None, pages=pages)
    asked: dict[str, Page | None] = {}
    unchanged = {record.url for record in old.provenance.of_source(index).values()} == {
        page.url for page in pages
    }
    for page in pages:
        found = find_page(old, index, page.url)
        known = None
        if found and _are_there(old, dict([found])):
            known = {"etag": found[1].etag, "last_modified": found[1].last_modified}
        # A size that was measured is no limit here: what has grown is asked about as a whole.
        fetched = fetch_page(
            PlannedPage(url=page.url), remotes.http, hosts=planned.hosts, known=known
        )
        asked[page.url] = fetched
        if fetched is not None and not (
            known and found and hash_content(fetched.text.encode()) == found[1].hash
        ):
            unchanged = False
    size = sum(page.size for page in asked.values() if page)
    return Probe(planned=replace(planned, size=size), is_unchanged=unchanged, pages=asked)


def _probe_local(source: LocalSource, records: Mapping[str, FileRecord], old: OldTopic) -> Probe:
    files = list(walk_local(source))
    there = {path: hash_content(read_local(source, path)) for path, _ in files}
    # Whether the files have a folder of their own is no change.
    first = min(there, default="")
    homes = [path for path in records if path == first or path.endswith(f"/{first}")]
    prefix = min(homes, key=len, default="").removesuffix(first)
    same = {prefix + path: hash_ for path, hash_ in there.items()} == {
        path: record.hash for path, record in records.items()
    }
    return Probe(
        planned=PlannedSource(source=source, files=len(files), size=sum(size for _, size in files)),
        is_unchanged=same and _are_there(old, records),
    )


def _are_there(old: OldTopic, records: Mapping[str, FileRecord]) -> bool:
    """Tell whether files are on disk as they were recorded."""
    try:
        return all(
            not (old.directory / path).is_symlink()
            and hash_content((old.directory / path).read_bytes()) == record.hash
            for path, record in records.items()
        )
    except OSError:
        return False
