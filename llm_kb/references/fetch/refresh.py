"""Refresh reference topics: fetch changes, and ask if they exceed what was approved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llm_kb.references.errors import DeniedError, NothingFetchedError, TopicFileError
from llm_kb.references.fetch.create import index_topic, open_remotes, stage_topic
from llm_kb.references.fetch.sources import Progress, silent
from llm_kb.references.library import Library
from llm_kb.references.plan import Plan, format_about, list_hosts, summarize_plan
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import (
    FileRecord,
    StoredTopic,
    read_provenance,
    total_size,
    write_provenance,
    write_topic_text,
)
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of a refresh: the numbers of new, changed and removed files.

    Files that were edited or lost here and were fetched again count as changed; `own` are the
    files that were put into the topic by hand, and stay.
    """

    topic_id: str
    changed: bool
    added: int = 0
    modified: int = 0
    removed: int = 0
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
    with (
        library.store.lock(topic_id, create=False),
        open_remotes(library) as remotes,
        library.store.scratch() as directory,
    ):
        topic = library.store.open(topic_id)
        if not topic.file.sources:
            raise NothingFetchedError(topic.file.title, ["its topic.md names no sources"])
        old = OldTopic.match(topic.directory, topic.read_provenance(), topic.file.sources)
        old = replace(old, approved=library.approved_hosts(topic_id))
        plan, staged = stage_topic(library, topic.file, old, remotes, directory, progress)
        modified = _find_modified(staged)
        if not modified and _has_same_files(staged):
            _note_unchanged(library, topic, plan, staged)
            refreshed = Refreshed(
                topic_id=topic_id,
                changed=False,
                file_count=len(old.files),
                warnings=tuple(staged.warnings),
            )
        else:
            _require_approval(plan, old, approve)
            _publish(library, topic, plan, staged)
            refreshed = _summarize(topic_id, staged, modified)
    # Also if nothing has changed: an earlier run may have been interrupted, or had no
    # embedding model.
    _, problems = index_topic(library, topic_id, progress)
    return replace(refreshed, warnings=(*refreshed.warnings, *problems))


def _find_modified(staged: Staged) -> set[str]:
    """Return the files that are not as they were: in their source, or because of an edit here."""
    old = staged.old
    return {
        path
        for path, record in staged.files.items()
        if (before := old.files.get(path))
        # The same record: the file was taken over as it is.
        and (record.hash != before.hash or (record is not before and not old.has({path: before})))
    }


def _has_same_files(staged: Staged) -> bool:
    """Tell whether the files are those of the old topic, whenever they were fetched."""
    old = staged.old
    now = {path: _identity(record) for path, record in staged.files.items()}
    before = {path: _identity(record) for path, record in old.files.items()}
    return now == before and len(before) == len(old.record.files)


def _identity(record: FileRecord) -> FileRecord:
    return replace(record, fetched_at="", etag=None, last_modified=None)


def _note_unchanged(library: Library, topic: StoredTopic, plan: Plan, staged: Staged) -> None:
    """Record that a topic is up to date, with the present numbers and validators of its files."""
    write_provenance(topic.directory, read_provenance(staged.directory))
    if _is_complete(plan):
        topic = _reread(library, topic)
        topic.change(_freshness(topic.file, format_time(library.clock()))).write()


def _require_approval(plan: Plan, old: OldTopic, approve: ApproveGrowth) -> None:
    """Ask about a plan that exceeds what was fetched before; raise DeniedError."""
    reason = _reason_to_ask(plan, old)
    if reason and not approve(plan, reason):
        raise DeniedError(plan.request.title, summarize_plan(plan))


def _publish(library: Library, topic: StoredTopic, plan: Plan, staged: Staged) -> None:
    """Replace a topic by the staged one, with its own files and its updated `topic.md`."""
    staged.keep_own_files()
    topic = _reread(library, topic)
    changes: dict[str, Any] = {
        "files": tuple(sorted(staged.files)),
        "sources": [
            planned.source if not planned.problem else source
            for planned, source in zip(plan.sources, topic.file.sources, strict=True)
        ],
    }
    if _is_complete(plan):
        changes |= _freshness(topic.file, staged.now)
    write_topic_text(staged.directory, topic.change(changes).text)
    library.store.publish(topic.file.id, staged.directory)
    library.approve_hosts(topic.file.id, plan.hosts)


def _reread(library: Library, topic: StoredTopic) -> StoredTopic:
    """Return the topic with the edits its owner made while its sources were asked."""
    text = library.store.read_text(topic.file.id)
    if text == topic.text:
        return topic
    edited = StoredTopic.parse(topic.directory, text)
    if edited.file.sources != topic.file.sources:
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


def _is_complete(plan: Plan) -> bool:
    """Tell whether everything fetched before was available again."""
    return all(each.is_complete for each in plan.sources)


def _freshness(topic: TopicFile, now: str) -> dict[str, str]:
    """Return the changes of a complete refresh: its time, and no more `stale` set by hand."""
    marked = topic.status is Status.STALE
    return {"fetched_at": now} | ({"status": Status.ACTIVE.value} if marked else {})


def _summarize(topic_id: str, staged: Staged, modified: set[str]) -> Refreshed:
    """Count the changes of a refresh."""
    old, new = staged.old.record.files, staged.files
    return Refreshed(
        topic_id=topic_id,
        changed=True,
        added=len(new.keys() - old.keys()),
        modified=len(modified),
        removed=len(old.keys() - new.keys()),
        file_count=len(new),
        own=staged.own,
        warnings=tuple(staged.warnings),
    )
