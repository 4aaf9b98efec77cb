"""Refresh reference topics: fetch what has changed, ask where that exceeds what was approved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llm_kb.references.errors import (
    DeniedError,
    FetchError,
    NothingFetchedError,
    TopicFileError,
)
from llm_kb.references.fetch.changes import count_restored, find_changes
from llm_kb.references.fetch.fetcher import FoundSource
from llm_kb.references.fetch.old_topic import OldTopic
from llm_kb.references.fetch.outcomes import SILENT, Progress, Refreshed
from llm_kb.references.fetch.publish import asked_sources, fetch_sources, index_topic, publish
from llm_kb.references.fetch.staging import Staged
from llm_kb.references.library import Library
from llm_kb.references.plan.make import check_limits, open_remotes
from llm_kb.references.plan.plan import Plan, grows_beyond
from llm_kb.references.plan.plan_text import list_hosts, summarize_plan
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.topic.provenance import Provenance, total_size
from llm_kb.references.topic.topic_directory import StoredTopic, write_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time

ApproveGrowth = Callable[[Plan, str], bool]
"""Asks the operator about a refresh, with the reason; False denies it."""


def refresh_topic(
    library: Library, topic_id: str, approve: ApproveGrowth, progress: Progress = SILENT
) -> Refreshed:
    """Fetch the changes of a topic's sources.

    `approve` is asked, with the reason, only when the topic now leads to another host, has
    grown far beyond what was fetched before, or was imported and never refreshed since.
    After a KbError the topic is as it was.
    """
    library.store.clean()
    with library.store.lock(topic_id, create=False), open_remotes(library) as remotes:
        topic = library.store.open(topic_id)
        recorded = topic.read_provenance()
        old = OldTopic.match(topic.directory, recorded, topic.file.sources)
        refreshed = _Refresh(library, remotes, topic, recorded, old).run(approve, progress)
    # Also where nothing has changed: an earlier run may have been interrupted, or had no
    # embedding model.
    _, problems = index_topic(library, topic_id, progress)
    return replace(refreshed, warnings=(*refreshed.warnings, *problems))


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One topic under refresh, as it was read under its lock."""

    library: Library
    remotes: Remotes
    topic: StoredTopic
    recorded: Provenance
    old: OldTopic

    def run(self, approve: ApproveGrowth, progress: Progress) -> Refreshed:
        """Ask the sources, and fetch those that have changed."""
        file = self.topic.file
        if not file.sources:
            raise NothingFetchedError(file.title, ["its topic.md names no sources"])
        found = find_changes(file.sources, self.old, self.remotes, progress.asking)
        failed = _failures(found)
        if len(failed) == len(found):
            raise NothingFetchedError(file.title, list(failed.values()))
        # A source that failed counts as unchanged: its files stay.
        is_same = all(each.is_unchanged or each.planned.problem for each in found)
        if is_same and len(self.old.files) == len(self.recorded.files):
            self._note_unchanged(found)
            return Refreshed(
                topic_id=file.id,
                changed=False,
                file_count=len(self.old.files),
                warnings=(*failed.values(), *_warnings(found)),
            )
        plan = Plan(request=file, sources=tuple(each.planned for each in found))
        self._require_approval(plan, approve)
        return self._fetch(plan, found, progress)

    def _fetch(self, plan: Plan, found: Sequence[FoundSource], progress: Progress) -> Refreshed:
        """Fetch the sources into a new directory, and swap it for the topic's."""
        topic_id = self.topic.file.id
        with self.library.store.staging(topic_id) as directory:
            staged = Staged(
                directory=directory,
                now=format_time(self.library.clock()),
                old=self.old,
                most_bytes=self.library.settings.max_bytes,
                warnings=list(_warnings(found)),
            )
            fetch_sources(found, plan.request.title, staged, self.remotes, progress)
            restored = count_restored(self.old, staged.files)
            staged.keep_own_files()
            changed = self._change(plan, staged, is_complete=_is_complete(found))
            asked = asked_sources(found, staged.failed, self.old.asked)
            request = self.recorded.request or plan.request.digest
            record = Provenance(request=request, files=staged.files, sources=asked)
            publish(self.library, topic_id, staged, changed.text, record)
        return _summarize(topic_id, self.recorded, staged, restored)

    def _require_approval(self, plan: Plan, approve: ApproveGrowth) -> None:
        """Ask about a plan that goes beyond what was fetched before; raise DeniedError."""
        check_limits(plan, self.remotes.settings)
        records = self.recorded.files.values()
        urls = {source.url for source in plan.request.sources} | {r.url for r in records}
        known = frozenset(filter(None, map(host_and_port, urls)))
        reason = grows_beyond(plan, total_size(records), known)
        if records and not self.recorded.request:
            reason = f"no approval of its hosts is recorded here: {list_hosts(plan)}"
        if reason and not approve(plan, reason):
            raise DeniedError(plan.request.title, summarize_plan(plan))

    def _note_unchanged(self, found: Sequence[FoundSource]) -> None:
        """Record that a topic was found up to date, and the numbers its sources have now."""
        asked = asked_sources(found, _failures(found), self.old.asked)
        renumbered = replace(self.recorded, files=self.old.files, sources=asked)
        if renumbered != self.recorded:
            write_provenance(self.topic.directory, renumbered)
        if _is_complete(found):
            topic = self._reread()
            topic.change(_freshness(topic.file, format_time(self.library.clock()))).write()

    def _change(self, plan: Plan, staged: Staged, *, is_complete: bool) -> StoredTopic:
        """Return the topic with its `topic.md` brought up to what was fetched."""
        topic = self._reread()
        changes: dict[str, Any] = {
            "files": tuple(sorted(staged.files)),
            "sources": [
                planned.source if not planned.problem else source
                for planned, source in zip(plan.sources, topic.file.sources, strict=True)
            ],
        }
        if is_complete and not staged.failed:
            changes |= _freshness(topic.file, staged.now)
        return topic.change(changes)

    def _reread(self) -> StoredTopic:
        """Return the topic with the edits its owner made while its sources were asked."""
        text = self.library.store.read_text(self.topic.file.id)
        if text == self.topic.text:
            return self.topic
        edited = StoredTopic.parse(self.topic.directory, text)
        if edited.file.sources != self.topic.file.sources:
            raise TopicFileError(
                str(edited.directory),
                "its sources were edited while they were fetched; refresh it again",
            )
        return edited


def _failures(found: Sequence[FoundSource]) -> dict[int, str]:
    """Return why sources failed, by their number."""
    return {
        index: str(FetchError(each.planned.source.url, each.planned.problem))
        for index, each in enumerate(found)
        if each.planned.problem
    }


def _warnings(found: Sequence[FoundSource]) -> tuple[str, ...]:
    return tuple(warning for each in found for warning in each.warnings)


def _is_complete(found: Sequence[FoundSource]) -> bool:
    """Tell whether everything fetched before was available again."""
    return not any(each.planned.problem or each.kept for each in found)


def _freshness(topic: TopicFile, now: str) -> dict[str, str]:
    """Return the changes of a complete refresh: its time, and no more `stale` set by hand."""
    marked = topic.status is Status.STALE
    return {"fetched_at": now} | ({"status": Status.ACTIVE.value} if marked else {})


def _summarize(topic_id: str, old: Provenance, staged: Staged, restored: int) -> Refreshed:
    """Count the changes of a refresh."""
    new = staged.files
    both = old.files.keys() & new
    return Refreshed(
        topic_id=topic_id,
        changed=True,
        added=len(new.keys() - old.files),
        modified=sum(old.files[path].hash != new[path].hash for path in both),
        removed=len(old.files.keys() - new),
        restored=restored,
        file_count=len(new),
        own=staged.own,
        warnings=tuple(staged.warnings),
    )
