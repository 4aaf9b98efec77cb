"""Refresh reference topics: fetch changes, and ask if they exceed what was approved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llm_kb.references.errors import (
    DeniedError,
    FetchError,
    NothingFetchedError,
    TopicFileError,
)
from llm_kb.references.fetch.fetcher import asked_sources, fetch_topic, index_topic
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Progress, silent
from llm_kb.references.plan.make import check_limits, open_remotes, plan_sources
from llm_kb.references.plan.plan import (
    Plan,
    PlannedSource,
    format_about,
    list_hosts,
    summarize_plan,
)
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.topic.provenance import total_size
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import StoredTopic, write_provenance
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of a refresh: the numbers of new, changed and removed files.

    `restored` files were edited or lost here and were fetched again; `own` are the files
    that were put into the topic by hand, and stay.
    """

    topic_id: str
    changed: bool
    added: int = 0
    modified: int = 0
    removed: int = 0
    restored: int = 0
    file_count: int = 0
    own: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


SMALL_GROWTH = 655_360
"""Bytes by which a topic may grow unasked, besides twice its size."""

ApproveGrowth = Callable[[Plan, str], bool]
"""Asks the operator about a refresh, with the reason; False denies it."""


def refresh_topic(
    library: Library, topic_id: str, approve: ApproveGrowth, progress: Progress = silent
) -> Refreshed:
    """Fetch the changes of a topic's sources.

    `approve` is called with the reason, only if the topic leads to a host that was not approved
    here, or has grown far beyond what was fetched before.
    After a KbError the topic is as it was.
    """
    library.store.clean()
    with library.store.lock(topic_id, create=False), open_remotes(library) as remotes:
        topic = library.store.open(topic_id)
        old = OldTopic.match(topic.directory, topic.read_provenance(), topic.file.sources)
        old = replace(old, approved=library.approved_hosts(topic_id))
        refreshed = _Refresh(library, remotes, topic, old).run(approve, progress)
    # Also if nothing has changed: an earlier run may have been interrupted, or had no
    # embedding model.
    _, problems = index_topic(library, topic_id, progress)
    return replace(refreshed, warnings=(*refreshed.warnings, *problems))


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One topic under refresh, as it was read under its lock."""

    library: Library
    remotes: Remotes
    topic: StoredTopic
    old: OldTopic

    def run(self, approve: ApproveGrowth, progress: Progress) -> Refreshed:
        """Plan the sources again, and fetch those that have changed."""
        file = self.topic.file
        if not file.sources:
            raise NothingFetchedError(file.title, ["its topic.md names no sources"])
        plan = plan_sources(file, self.old, self.remotes, progress)
        found = plan.sources
        failed = _failures(found)
        if len(failed) == len(found):
            raise NothingFetchedError(file.title, list(failed.values()))
        # A source that failed counts as unchanged: its files stay.
        is_same = all(each.is_unchanged or each.problem for each in found)
        if is_same and len(self.old.files) == len(self.old.record.files):
            self._note_unchanged(found)
            warnings = (warning for each in found for warning in each.warnings)
            return Refreshed(
                topic_id=file.id,
                changed=False,
                file_count=len(self.old.files),
                warnings=(*failed.values(), *warnings),
            )
        self._require_approval(plan, approve)
        render = partial(self._render, found)
        staged = fetch_topic(self.library, plan, self.old, self.remotes, render, progress=progress)
        return _summarize(file.id, staged)

    def _require_approval(self, plan: Plan, approve: ApproveGrowth) -> None:
        """Ask about a plan that exceeds what was fetched before; raise DeniedError."""
        check_limits(plan, self.remotes.policy)
        reason = _reason_to_ask(plan, self.old)
        if reason and not approve(plan, reason):
            raise DeniedError(plan.request.title, summarize_plan(plan))

    def _note_unchanged(self, found: Sequence[PlannedSource]) -> None:
        """Record that a topic is up to date, and the present numbers of its sources."""
        asked = asked_sources(found, _failures(found), self.old)
        renumbered = replace(self.old.record, files=self.old.files, sources=asked)
        if renumbered != self.old.record:
            write_provenance(self.topic.directory, renumbered)
        if _is_complete(found):
            topic = self._reread()
            topic.change(_freshness(topic.file, format_time(self.library.clock()))).write()

    def _render(self, sources: Sequence[PlannedSource], staged: Staged) -> str:
        """Return the topic's `topic.md`, updated to the fetched files."""
        topic = self._reread()
        changes: dict[str, Any] = {
            "files": tuple(sorted(staged.files)),
            "sources": [
                planned.source if not planned.problem else source
                for planned, source in zip(sources, topic.file.sources, strict=True)
            ],
        }
        if _is_complete(sources) and not staged.failed:
            changes |= _freshness(topic.file, staged.now)
        return topic.change(changes).text

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


def _reason_to_ask(plan: Plan, old: OldTopic) -> str:
    """Return the reason why a refresh needs the operator's approval; empty if it does not.

    It would contact a host that was not approved here, or fetch more than twice as much as before.
    """
    if strange := [host for host in plan.hosts if host not in old.approved]:
        if not old.approved:
            return f"no approval of its hosts is recorded here: {list_hosts(strange)}"
        return f"it now leads to {list_hosts(sorted(strange))}"
    before = total_size(old.record.files.values())
    if plan.size > 2 * before + SMALL_GROWTH:
        return f"it grew from {format_about(before)} to {format_about(plan.size)}"
    return ""


def _failures(found: Sequence[PlannedSource]) -> dict[int, str]:
    """Return the reasons why sources failed, keyed by number."""
    return {
        index: str(FetchError(each.source.url, each.problem))
        for index, each in enumerate(found)
        if each.problem
    }


def _is_complete(found: Sequence[PlannedSource]) -> bool:
    """Tell whether everything fetched before was available again."""
    return not any(each.problem or each.kept for each in found)


def _freshness(topic: TopicFile, now: str) -> dict[str, str]:
    """Return the changes of a complete refresh: its time, and no more `stale` set by hand."""
    marked = topic.status is Status.STALE
    return {"fetched_at": now} | ({"status": Status.ACTIVE.value} if marked else {})


def _summarize(topic_id: str, staged: Staged) -> Refreshed:
    """Count the changes of a refresh."""
    old, new = staged.old.record.files, staged.files
    return Refreshed(
        topic_id=topic_id,
        changed=True,
        added=len(new.keys() - old.keys()),
        modified=sum(old[path].hash != new[path].hash for path in old.keys() & new),
        removed=len(old.keys() - new.keys()),
        restored=staged.restored,
        file_count=len(new),
        own=staged.own,
        warnings=tuple(staged.warnings),
    )
