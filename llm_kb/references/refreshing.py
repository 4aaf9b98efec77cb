"""What a refresh finds: for each source, in one request where it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llm_kb.errors import KbError
from llm_kb.references.errors import NothingFetchedError
from llm_kb.references.fetch_local import list_local, read_local
from llm_kb.references.findings import Findings, Probe
from llm_kb.references.old_topic import OldTopic, asks_the_same
from llm_kb.references.plan import Plan, PlannedSource, TopicRequest
from llm_kb.references.planning import check_source, explain, plan_tree
from llm_kb.references.provenance import FileRecord, Provenance, hash_content
from llm_kb.references.refreshing_pages import probe_crawl, probe_page
from llm_kb.references.remotes import Remotes
from llm_kb.references.sources import CrawlSource, GitSource, LocalSource, Source, WebSource
from llm_kb.references.topic_file import TopicFile


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
