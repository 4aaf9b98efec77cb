"""Fetch a topic beside the others and put it in its place, whole or not at all.

Whoever calls holds the topic's lock. A new topic is made of an approved plan; a
refresh makes its own, and asks only when that goes beyond what was approved before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from llm_kb.references.errors import DeniedError, NothingFetchedError, TopicFileError
from llm_kb.references.fetch.fetcher import Fetcher
from llm_kb.references.fetch.old_topic import OldTopic
from llm_kb.references.fetch.outcomes import Progress, Refreshed, summarize_refresh
from llm_kb.references.fetch.probe import Findings, count_restored, probe_topic
from llm_kb.references.fetch.staging import Staged
from llm_kb.references.plan.make import check_limits
from llm_kb.references.plan.plan import Plan, grows_beyond
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import Provenance, total_size
from llm_kb.references.topic.store import Store
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time
from llm_kb.references.topic.topic_text import change_topic_file, render_topic_file

ApproveGrowth = Callable[[Plan, str], bool]
"""Asks the operator about a refresh, with the reason; False denies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Makes and refreshes topics during one run."""

    store: Store
    remotes: Remotes
    clock: Callable[[], datetime]
    progress: Progress

    def create(self, plan: Plan) -> Staged:
        """Make the topic of a plan, and return what was fetched for it.

        Raises KbError: PlanChangedError when the sources no longer are as planned.
        """
        topic_id = plan.request.topic_id
        with self.store.staging(topic_id) as directory:
            now = self.clock()
            staged = Staged(directory=directory, now=format_time(now))
            self._fetch(plan, staged)
            text = render_topic_file(_describe(plan, staged, now))
            _write_own_files(staged, text, _record(plan, staged, plan.request.digest))
            self.store.publish(topic_id, directory)
        return staged

    def refresh(self, topic_id: str, approve: ApproveGrowth) -> Refreshed:
        """Fetch what has changed of a topic's sources; after a KbError it is as it was."""
        topic = self.store.read(topic_id)
        recorded = self.store.read_provenance(topic_id)
        old = OldTopic.match(self.store.directory(topic_id), recorded, topic.sources)
        self.progress.asking(f"asking the sources of {topic_id}")
        findings = probe_topic(topic, old, recorded, self.remotes)
        if findings.is_unchanged:
            self._note_unchanged(topic_id, findings, old, recorded)
            return Refreshed(
                topic_id=topic_id,
                changed=False,
                file_count=len(old.files),
                warnings=(*findings.problems, *findings.warnings),
            )
        self._check_growth(findings.plan, recorded, approve)
        with self.store.staging(topic_id) as directory:
            staged = Staged(directory=directory, now=format_time(self.clock()), old=old)
            staged.warnings += findings.warnings
            self._fetch(findings.plan, staged, findings)
            text = self._change_text(topic_id, findings, staged)
            _write_own_files(staged, text, _record(findings.plan, staged, recorded.request))
            restored = count_restored(old, staged.files)
            self.store.publish(topic_id, directory)
        return summarize_refresh(topic_id, recorded, staged, restored)

    def _fetch(self, plan: Plan, staged: Staged, findings: Findings | None = None) -> None:
        fetcher = Fetcher(
            remotes=self.remotes,
            staged=staged,
            progress=self.progress.fetching,
            pages=findings.pages if findings else {},
            kept=findings.kept if findings else {},
            unchanged=findings.unchanged if findings else (),
        )
        fetcher.fetch(plan)
        if not staged.files:
            raise NothingFetchedError(plan.request.title, staged.warnings)

    def _check_growth(self, plan: Plan, recorded: Provenance, approve: ApproveGrowth) -> None:
        check_limits(plan, self.remotes.settings)
        records = recorded.files.values()
        asked = {source.url for source in plan.request.sources}
        hosts = {urlsplit(url).hostname for url in asked | {record.url for record in records}}
        known = frozenset(host for host in hosts if host)
        reason = grows_beyond(plan, total_size(records), known)
        if reason and not approve(plan, reason):
            raise DeniedError(plan.request.title, plan.summary)

    def _note_unchanged(
        self, topic_id: str, findings: Findings, old: OldTopic, recorded: Provenance
    ) -> None:
        """Note that a topic was found to be up to date, and how its sources are listed now."""
        asked = _asked(findings.plan, findings.failed, old)
        renumbered = Provenance(request=recorded.request, files=old.files, sources=asked)
        if renumbered != recorded:
            self.store.write_provenance(topic_id, renumbered)
        if not findings.is_complete:
            return
        changes = _freshness(self.store.read(topic_id), format_time(self.clock()))
        text = self.store.read_text(topic_id)
        where = str(self.store.directory(topic_id))
        self.store.write_text(topic_id, change_topic_file(text, where, changes))

    def _change_text(self, topic_id: str, findings: Findings, staged: Staged) -> str:
        """Return the text of a topic's `topic.md`, brought up to what was fetched."""
        plan = findings.plan
        where = str(self.store.directory(topic_id))
        topic = self.store.read(topic_id)
        if topic.sources != plan.request.sources:
            raise TopicFileError(
                where, "its sources were edited while they were fetched; refresh it again"
            )
        changes: dict[str, Any] = {
            "files": tuple(sorted(staged.files)),
            "sources": [
                planned.source if not planned.problem else source
                for planned, source in zip(plan.sources, plan.request.sources, strict=True)
            ],
        }
        if findings.is_complete and not staged.failed:
            changes |= _freshness(topic, staged.now)
        return change_topic_file(self.store.read_text(topic_id), where, changes)


def _write_own_files(staged: Staged, text: str, record: Provenance) -> None:
    """Write `topic.md` and the record of the files beside what was fetched."""
    store, name = Store(staged.directory.parent), staged.directory.name
    store.write_text(name, text)
    store.write_provenance(name, record)


def _record(plan: Plan, staged: Staged, request: str) -> Provenance:
    asked = _asked(plan, staged.failed, staged.old)
    return Provenance(request=request, files=staged.files, sources=asked)


def _asked(plan: Plan, failed: Collection[int], old: OldTopic | None) -> tuple[Source, ...]:
    """Return the sources as their files were fetched: one that failed gave them when it was old."""
    asked = old.asked if old else [None] * len(plan.sources)
    return tuple(
        (before if index in failed else None) or planned.source
        for index, (planned, before) in enumerate(zip(plan.sources, asked, strict=True))
    )


def _freshness(topic: TopicFile, now: str) -> dict[str, str]:
    """Return what a complete refresh notes: its time, and no more `stale` set by hand."""
    marked = topic.status is Status.STALE
    return {"fetched_at": now} | ({"status": Status.ACTIVE.value} if marked else {})


def _describe(plan: Plan, staged: Staged, now: datetime) -> TopicFile:
    request = plan.request
    return TopicFile(
        id=request.topic_id,
        title=request.title,
        body=request.body,
        created_at=now,
        fetched_at=now,
        max_age_days=request.max_age_days,
        trust_score=request.trust_score,
        tags=request.tags,
        files=tuple(sorted(staged.files)),
        sources=tuple(planned.source for planned in plan.sources),
        created_by=request.created_by,
    )
