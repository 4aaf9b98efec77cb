"""Make and refresh reference topics: fetch, ask about what was fetched, publish and index."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from llm_kb.references.errors import (
    DeniedError,
    NothingFetchedError,
    NotIndexedError,
    TopicExistsError,
    TopicFileError,
)
from llm_kb.references.fetch.sources import Progress, fetch_sources, preview_source, silent
from llm_kb.references.library import Library
from llm_kb.references.plan import (
    PendingPlans,
    Plan,
    PlannedSource,
    format_about,
    list_hosts,
    summarize_plan,
)
from llm_kb.references.sources.git import Remotes
from llm_kb.references.sources.records import Source
from llm_kb.references.sources.rules import Policy, system_resolver
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import (
    FILE_NAME,
    TOPIC_FILE,
    FileRecord,
    Provenance,
    StoredTopic,
    hash_content,
    read_provenance,
    render_provenance,
    total_size,
    write_provenance,
    write_staged,
)
from llm_kb.references.topic.topic_file import (
    Description,
    Status,
    TopicFile,
    format_time,
    new_topic_file,
    render_topic_file,
)
from llm_kb.search.index.database import DocumentsGoneError, IndexUnusableError
from llm_kb.search.index.documents import TopicGroup
from llm_kb.search.index.index import EmbeddingError, open_current, rebuild_damaged, update_vectors

RUN_TIMEOUTS = 30
"""Time limit for the pages of a whole topic, as a multiple of the timeout of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The result of creating a topic."""

    topic_id: str
    file_count: int
    chunk_count: int
    warnings: tuple[str, ...] = ()


def created_answer(created: Created) -> dict[str, Any]:
    """Return the answer of `reference_topic_create`: its fields, and warnings if any."""
    answer = asdict(created)
    warnings = list(answer.pop("warnings"))
    return answer | ({"warnings": warnings} if warnings else {})


Approve = Callable[[Plan], bool]
"""Asks the operator about a plan; False denies it. It may raise to answer later."""


def create_topic(
    library: Library,
    request: Description,
    approve: Approve,
    progress: Progress = silent,
    *,
    by_model: bool = False,
) -> Created:
    """Fetch a topic, have it approved, and publish it.

    A plan already approved by `llm kb references approve` needs no second approval.

    `by_model` is for calls of models, which repeat a call that waited for its approval. If
    the same request has already made its topic, the answer is that topic. If the settings
    have `ask_first`, only hosts that the operator has approved are contacted, now or for an
    existing topic. Raises KbError, TopicExistsError among others.
    """
    library.store.clean()
    if library.store.exists(request.id):
        if by_model and (recorded := _find_made(library, request)):
            chunks, _ = index_topic(library, request.id, progress)
            return Created(topic_id=request.id, file_count=len(recorded.files), chunk_count=chunks)
        raise _taken(library, request)
    library.store.require_free(request.id)
    waiting = PendingPlans(library).find(request)
    if waiting and (waiting.is_approved or by_model):
        if not waiting.is_approved and not approve(waiting):
            PendingPlans(library).drop(waiting.id)
            raise DeniedError(request.title, summarize_plan(waiting))
        return carry_out(library, waiting.id, approve, progress)
    hosts = None
    if by_model and library.settings.ask_first:
        hosts, asking = approved_hosts(library), unmeasured_plan(request, library)
        if not hosts.issuperset(asking.hosts):
            _require_approval(asking, approve)
            hosts |= set(asking.hosts)
    return _create(library, request, approve, progress, hosts)


def _create(
    library: Library,
    request: Description,
    approve: Approve,
    progress: Progress,
    hosts: frozenset[str] | None,
) -> Created:
    """Fetch a topic by contacting only these hosts, or any; get approval; publish it."""
    with open_remotes(library, hosts) as remotes, library.store.scratch() as directory:
        old = OldTopic.none(request.sources)
        plan, _ = stage_topic(library, request, old, remotes, directory, progress)
        _require_approval(plan, approve)
        return _publish(library, plan, directory, progress)


def carry_out(
    library: Library, plan_id: str, approve: Approve, progress: Progress = silent
) -> Created:
    """Approve and carry out a pending plan; if that fails, the plan waits again.

    If its sources were not contacted yet, they are, and what they hold needs approval.
    """
    pending = PendingPlans(library)
    with library.store.scratch() as scratch:
        plan = pending.take(plan_id, scratch)
        try:
            if plan.directory:
                return _publish(library, plan, plan.directory, progress)
            hosts = approved_hosts(library) | set(plan.hosts)
            return _create(library, plan.request, approve, progress, hosts)
        except BaseException:
            # Unless the plan is used: the topic exists, and only its index failed, or what its
            # hosts hold waits in its place.
            if not _find_made(library, plan.request) and not pending.find(plan.request):
                pending.add(plan)
            raise


def _publish(library: Library, plan: Plan, directory: Path, progress: Progress) -> Created:
    """Publish the fetched files of an approved plan, and index the new topic."""
    request = plan.request
    described = replace(request, sources=tuple(each.source for each in plan.sources))
    with library.store.lock(request.id):
        if library.store.exists(request.id):
            raise _taken(library, request)
        files = sorted(read_provenance(directory).files)
        topic = new_topic_file(described, files, library.clock())
        write_staged(directory, TOPIC_FILE, render_topic_file(topic).encode())
        library.store.publish(request.id, directory)
        library.approve_hosts(request.id, plan.hosts)
        # A waiting plan for the same request could bring the topic back after it is deleted.
        PendingPlans(library).drop_request(request)
    chunks, problems = index_topic(library, request.id, progress)
    return Created(
        topic_id=request.id,
        file_count=len(files),
        chunk_count=chunks,
        warnings=(*plan.warnings, *problems),
    )


def _require_approval(plan: Plan, approve: Approve) -> None:
    if not approve(plan):
        raise DeniedError(plan.request.title, summarize_plan(plan))


@contextmanager
def open_remotes(library: Library, hosts: frozenset[str] | None = None) -> Iterator[Remotes]:
    """Open the network access of one run, under the settings of a library's user.

    Only these hosts may be contacted; None for any.
    """
    settings = library.settings
    policy = Policy(
        allow_hosts=settings.allow_hosts,
        allow_protocols=settings.allow_protocols,
        timeout=settings.timeout,
        max_bytes=settings.max_bytes,
        max_files=settings.max_files,
        # As long as git's time limit for one repository, so that a slow site cannot hang it.
        until=time.monotonic() + RUN_TIMEOUTS * settings.timeout,
        hosts=hosts,
        resolver=library.resolver or system_resolver,
    )
    with Remotes(policy, library.store.scratch, library.workspace) as remotes:
        yield remotes


def unmeasured_plan(request: Description, library: Library) -> Plan:
    """Return the plan of a request before its sources are contacted.

    That of a package installed in the workspace names the repository in its metadata.
    """
    with open_remotes(library, frozenset()) as remotes:
        sources = tuple(preview_source(source, remotes) for source in request.sources)
    return Plan(request=request, sources=sources)


def stage_topic(  # noqa: PLR0913, PLR0917 - what a topic is made of
    library: Library,
    request: Description,
    old: OldTopic,
    remotes: Remotes,
    directory: Path,
    progress: Progress,
) -> tuple[Plan, Staged]:
    """Fetch the sources of a topic into a directory, with the record of its files.

    Raises NothingFetchedError if there is no file, or if every source failed.
    """
    staged = Staged(
        directory=directory,
        now=format_time(library.clock()),
        most_bytes=library.settings.max_bytes,
        most_files=library.settings.max_files,
        old=old,
    )
    sources = fetch_sources(request.sources, staged, remotes, progress)
    if not staged.files or len(staged.failed) == len(sources):
        reasons = [f"{each.source.url}: {each.problem}" for each in sources if each.problem]
        raise NothingFetchedError(request.title, reasons)
    record = Provenance(
        request=old.record.request or request.digest,
        files=staged.files,
        sources=_asked_sources(sources, old),
    )
    data = render_provenance(record)
    write_staged(directory, FILE_NAME, data)
    plan = Plan(
        request=request,
        sources=sources,
        content=hash_content(data),
        warnings=tuple(staged.warnings),
        directory=directory,
    )
    return plan, staged


def _asked_sources(sources: tuple[PlannedSource, ...], old: OldTopic) -> tuple[Source, ...]:
    """Return the sources to record: as fetched now, or for failed ones as fetched before."""
    return tuple(
        (before if planned.problem else None) or planned.source
        for planned, before in zip(sources, old.asked, strict=True)
    )


def index_topic(library: Library, topic_id: str, progress: Progress) -> tuple[int, list[str]]:
    """Bring a topic's index up to date; return the number of its chunks, and warnings.

    Embedding may fail without a key or a network; search works without it. Raises
    NotIndexedError if the index itself cannot be made.
    """
    topic = library.store.documents(topic_id)
    group = TopicGroup(database=library.store.index, topics=[topic])

    def embed() -> tuple[int, list[str]]:
        with open_current(group, partial(progress, "indexing")) as index:
            chunks = index.count_chunks(topic_id)
            try:
                if embedder := library.find_embedder():
                    embedding = partial(progress, "embedding")
                    update_vectors(index, embedder.model, embedder.embed, progress=embedding)
            except EmbeddingError as error:
                return chunks, [str(error)]
            return chunks, []

    try:
        return rebuild_damaged(embed)
    except (DocumentsGoneError, IndexUnusableError) as error:
        raise NotIndexedError(topic_id, str(error)) from error


def approved_hosts(library: Library) -> frozenset[str]:
    """Return the hosts that the operator has approved for existing topics."""
    return frozenset().union(*map(library.approved_hosts, library.store.ids()))


def _find_made(library: Library, request: Description) -> Provenance | None:
    """Return the record of the topic that the same request has made; None without one."""
    if not library.store.exists(request.id):
        return None
    recorded = read_provenance(library.store.directory(request.id))
    return recorded if recorded.request == request.digest else None


def _taken(library: Library, request: Description) -> TopicExistsError:
    """Return the reason why a topic cannot replace the existing one; raise its errors."""
    return TopicExistsError(request.id, library.read(request.id).title)


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
            _require_growth_approval(plan, old, approve)
            _replace(library, topic, plan, staged)
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


def _require_growth_approval(plan: Plan, old: OldTopic, approve: ApproveGrowth) -> None:
    """Ask about a plan that exceeds what was fetched before; raise DeniedError."""
    reason = _reason_to_ask(plan, old)
    if reason and not approve(plan, reason):
        raise DeniedError(plan.request.title, summarize_plan(plan))


def _replace(library: Library, topic: StoredTopic, plan: Plan, staged: Staged) -> None:
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
    write_staged(staged.directory, TOPIC_FILE, topic.change(changes).text.encode())
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
