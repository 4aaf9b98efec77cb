"""Make and refresh reference topics: fetch, ask about what was fetched, publish and index."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.conversion import Conversions
from llm_kb.references.errors import DeniedError, NothingFetchedError, TopicFileError
from llm_kb.references.fetch.sources import Progress, fetch_sources, preview_source
from llm_kb.references.fetched import FetchedTopic
from llm_kb.references.library import Library
from llm_kb.references.plan import (
    PendingPlans,
    Plan,
    PlannedSource,
    format_about,
    list_hosts,
    summarize_plan,
)
from llm_kb.references.sources.git import TRANSFER_PATIENCE, Remotes
from llm_kb.references.sources.rules import Policy, host_and_port, system_resolver
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import Provenance
from llm_kb.references.topic.topic_file import TopicFile
from llm_kb.search.index.database import DocumentsGoneError, IndexUnusableError
from llm_kb.search.index.index import EmbeddingError, open_current, rebuild_damaged, update_vectors

Approve = Callable[[Plan], bool]
"""Asks the operator about a plan; False denies it. It may raise to answer later."""


def create_topic(
    library: Library, request: TopicFile, approve: Approve, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Fetch what a person asks for, have it approved, and publish it.

    Returns the answer of `reference_topic_create`: `topic_id`, `file_count`, `chunk_count`, and
    `warnings` if there are any.
    """
    library.clean()
    _require_new(library, request)
    trusted = approved_hosts(library) | {host_and_port(source.url) for source in request.sources}
    with open_remotes(library, trusted=trusted) as remotes:
        found, staged = _stage(library, request, OldTopic(), remotes, progress)
        _require_files(found, staged)
        if not approve(found):
            raise DeniedError(request.title, summarize_plan(found))
        return _publish_new(library, found, staged, progress)


def propose_topic(
    library: Library, request: TopicFile, approve: Approve, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Have what a model asks for approved, then fetch and publish it; return as `create_topic`.

    Only GitHub is asked before that, for the figures of repositories. If the same request
    waits, it is not made again; if it has made its topic, the answer is that topic.
    """
    library.clean()
    if _is_made(library, request):
        return _index_new(library, request.id, (), progress)
    _require_new(library, request)
    plan = PendingPlans(library).find(request)
    if plan is None:
        with open_remotes(library) as remotes:
            sources = [
                preview_source(each, remotes.policy, library.workspace) for each in request.sources
            ]
        plan = Plan(request=request, sources=tuple(sources))
    return _fetch_approved(library, plan, approve, progress)


def carry_out(
    library: Library, plan_id: str, approve: Approve, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Have a waiting plan approved, and carry it out; if that fails, it waits on."""
    with PendingPlans(library).carrying_out(plan_id) as plan:
        if _is_made(library, plan.request):  # by a process that was killed right after
            return _index_new(library, plan.request.id, (), progress)
        return _fetch_approved(library, plan, approve, progress)


def _fetch_approved(
    library: Library, plan: Plan, approve: Approve, progress: Progress
) -> dict[str, Any]:
    """Ask about a plan, fetch what it shows, and ask again if that leads elsewhere or is more."""
    for _ in range(5):  # at each of them somebody said yes
        if not plan.is_approved and not approve(plan):
            PendingPlans(library).forget(plan.request)
            raise DeniedError(plan.request.title, summarize_plan(plan))
        hosts = frozenset(plan.hosts)
        trusted = approved_hosts(library) | hosts
        with open_remotes(library, hosts, trusted) as remotes:
            found, staged = _stage(
                library, plan.request, OldTopic(), remotes, progress, plan.sources
            )
            more = plan.find_more(found)
            if more is None:
                _require_files(found, staged)
                return _publish_new(library, found, staged, progress)
        plan = more
    raise KbError(f"{plan.request.title!r} leads on and on; give the addresses where it ends")


def _publish_new(
    library: Library, plan: Plan, staged: Staged, progress: Progress
) -> dict[str, Any]:
    """Publish the staged files of an approved plan, and index the new topic."""
    id_, now = plan.request.id, library.clock()
    with library.lock(id_):
        _require_new(library, plan.request)
        topic = replace(
            plan.request,
            sources=tuple(each.source for each in plan.sources),
            created_at=now,
            fetched_at=now,
            files=tuple(sorted(staged.files)),
            file_count=len(staged.files),
        )
        _publish(library, id_, topic_file.render_topic_file(topic), staged, plan.hosts)
        # A waiting plan for the same request could bring the topic back after it is deleted.
        library.mark_here(id_)
        PendingPlans(library).forget(plan.request)
    return _index_new(library, id_, tuple(dict.fromkeys(staged.warnings)), progress)


def _publish(
    library: Library, topic_id: str, text: str, staged: Staged, hosts: Collection[str]
) -> None:
    """Put a staged topic with its `topic.md` in place, from hosts that were approved for it."""
    topic_directory.write_staged(staged.directory, topic_directory.TOPIC_FILE, text.encode())
    library.approve_hosts(topic_id, hosts)  # first: if that fails, nothing is published
    library.publish(topic_id, staged.directory)


def _index_new(
    library: Library, topic_id: str, warnings: tuple[str, ...], progress: Progress
) -> dict[str, Any]:
    """Index a topic, and return the answer of its creation."""
    chunks, problems = index_topic(library, topic_id, progress)
    count = library.read(topic_id).file_count
    answer = {"topic_id": topic_id, "file_count": count, "chunk_count": chunks}
    found = [*warnings, *problems]
    return answer | ({"warnings": found} if found else {})


def open_remotes(
    library: Library,
    hosts: frozenset[str] | None = None,
    trusted: frozenset[str] = frozenset(),
) -> Remotes:
    """Open the network access of one run, under the settings of a library's user.

    Only these hosts may be contacted, None for any; git may log in to those that are trusted.
    """
    settings = library.settings
    # As long as git's time limit for one repository, so that a slow site cannot hang it.
    until = time.monotonic() + TRANSFER_PATIENCE * settings.timeout
    policy = Policy(
        allow_hosts=settings.allow_hosts,
        allow_protocols=settings.allow_protocols,
        timeout=settings.timeout,
        max_bytes=settings.max_bytes,
        max_files=settings.max_files,
        until=until,
        # Nothing is cached before somebody approved it.
        conversions=Conversions(None, until=until),
        hosts=hosts,
        trusted=trusted,
        resolver=library.resolver or system_resolver,
    )
    return Remotes(policy, library.scratch, library.workspace)


def _stage(  # noqa: PLR0913, PLR0917 - what a topic is made of
    library: Library,
    request: TopicFile,
    old: OldTopic,
    remotes: Remotes,
    progress: Progress,
    shown: Sequence[PlannedSource] = (),
) -> tuple[Plan, Staged]:
    """Fetch the sources of a topic, with the record of its files; the files go with the remotes."""
    staged = Staged(
        directory=remotes.enter_context(library.scratch()),
        now=topic_file.format_time(library.clock()),
        most_bytes=library.settings.max_bytes,
        most_files=library.settings.max_files,
        old=old,
    )
    sources = fetch_sources(request.sources, staged, remotes, progress, shown)
    record = Provenance(
        request=old.record.request or request.digest,
        files=staged.files,
        # As fetched now, or those that failed as fetched before.
        sources=tuple(
            old.asked.get(number, each.source) if each.problem else each.source
            for number, each in enumerate(sources)
        ),
    )
    data = topic_directory.render_provenance(record)
    topic_directory.parse_provenance(data, request.title)  # before anybody is asked
    topic_directory.write_staged(staged.directory, topic_directory.FILE_NAME, data)
    return Plan(request=request, sources=sources), staged


def _require_files(plan: Plan, staged: Staged) -> None:
    """Raise NothingFetchedError if there is no file, or if every source failed."""
    if not staged.files or len(staged.failed) == len(plan.sources):
        reasons = [f"{each.source.url}: {each.problem}" for each in plan.sources if each.problem]
        raise NothingFetchedError(plan.request.title, reasons)


def index_topic(library: Library, topic_id: str, progress: Progress) -> tuple[int, list[str]]:
    """Bring a topic's index up to date; return the number of its chunks, and warnings.

    Embedding may fail without a key or a network; search works without it. Raises
    KbError if the index itself cannot be made.
    """
    topic = FetchedTopic(library.read(topic_id), library).index_documents()

    def embed() -> tuple[int, list[str]]:
        with open_current(library.index, [topic], partial(progress, "Indexing")) as index:
            chunks = index.count_chunks(topic_id)
            try:
                if embedder := library.find_embedder():
                    embedding = partial(progress, "Embedding")
                    update_vectors(index, embedder, progress=embedding)
            except EmbeddingError as error:
                return chunks, [str(error)]
            return chunks, []

    try:
        return rebuild_damaged(embed)
    except (DocumentsGoneError, IndexUnusableError) as error:
        raise KbError(
            f"{topic_id} is fetched and can be read, but not searched: {error}; once that is fixed,"
            f" index it: llm kb references refresh {topic_id}"
        ) from error


def approved_hosts(library: Library) -> frozenset[str]:
    """Return the hosts that the operator has approved for existing topics."""
    return frozenset().union(*map(library.approved_hosts, library.ids()))


def _is_made(library: Library, request: TopicFile) -> bool:
    """Tell whether the same request has made its topic."""
    if not library.exists(request.id):
        return False
    recorded = topic_directory.read_provenance(library.directory(request.id))
    return recorded.request == request.digest


def _require_new(library: Library, request: TopicFile) -> None:
    """Raise KbError if the topic of a request exists, or something else in its place."""
    library.require_free(request.id)
    if library.exists(request.id):
        title = library.read(request.id).title
        raise KbError(
            f"there is a reference topic {request.id!r} already ({title!r}): search it, choose"
            " another title, or fetch it again, which only a user can:"
            f" llm kb references refresh {request.id}"
        )


SMALL_GROWTH = 655_360
"""Bytes by which a topic may grow unasked, besides twice its size."""


def refresh_topic(
    library: Library,
    topic_id: str,
    confirm: Callable[[str], bool],
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Fetch the changes of a topic's sources.

    `confirm` is called with the reason, only if the topic leads to a host that was not approved
    here, or has grown far beyond what was fetched before. After a KbError the topic is as it was.

    Returns the id, whether files have `changed`, and the numbers of `added`, `modified` and
    `removed` ones; those that were edited or lost here and were fetched again are modified. `own`
    are the files that were put into the topic by hand, and stay.
    """
    library.clean()
    with (
        library.lock(topic_id, create=False),
        open_remotes(library, trusted=approved_hosts(library)) as remotes,
    ):
        topic = library.read(topic_id)
        if not topic.sources:
            raise NothingFetchedError(topic.title, ["its topic.md names no sources"])
        place, approved = library.directory(topic_id), library.approved_hosts(topic_id)
        record = topic_directory.read_provenance(place)
        old = OldTopic.match(place, record, topic.sources, approved)
        plan, staged = _stage(library, topic, old, remotes, progress)
        _require_files(plan, staged)
        counts = _count_changes(staged)
        is_changed = any(counts.values())
        if is_changed and (reason := _reason_to_ask(plan, old)) and not confirm(reason):
            raise KbError("you said no, so it stays as it was")
        staged.keep_own_files()
        text = _update_text(library, topic, plan, staged)
        _publish(library, topic_id, text, staged, plan.hosts if is_changed else ())
    # Also if nothing has changed: an earlier run may have been interrupted, or had no
    # embedding model.
    _, problems = index_topic(library, topic_id, progress)
    return {
        "topic_id": topic_id,
        "changed": is_changed,
        **counts,
        "file_count": len(staged.files),
        "own": list(staged.own),
        "warnings": [*dict.fromkeys(staged.warnings), *problems],
    }


def _count_changes(staged: Staged) -> dict[str, int]:
    """Count the files that are not as they were: in their source, or because of an edit here."""
    old, new = staged.old.record.files, staged.files
    written = new.keys() & old.keys() - staged.kept
    return {
        "added": len(new.keys() - old.keys()),
        "modified": sum(not staged.old.has({path: new[path]}) for path in written),
        "removed": len(old.keys() - new.keys()),
    }


def _update_text(library: Library, topic: TopicFile, plan: Plan, staged: Staged) -> str:
    """Return the `topic.md` of a refreshed topic, with the edits that its owner made meanwhile."""
    edited = library.read(topic.id)
    if edited.sources != topic.sources:
        raise TopicFileError(
            str(library.directory(topic.id) / topic_directory.TOPIC_FILE),
            "its sources were edited while they were fetched; refresh it again",
        )
    changes: dict[str, Any] = {
        "files": tuple(sorted(staged.files)),
        "sources": [
            before if planned.problem else planned.source
            for planned, before in zip(plan.sources, topic.sources, strict=True)
        ],
    }
    if all(each.is_complete for each in plan.sources):
        changes["fetched_at"] = staged.now
        if edited.status is topic_file.Status.STALE:
            changes["status"] = topic_file.Status.ACTIVE.value
    return library.change(topic.id, changes)


def _reason_to_ask(plan: Plan, old: OldTopic) -> str:
    """Return the reason why a refresh needs the operator's approval; empty if it does not.

    It would contact a host that was not approved here, or fetch more than twice as much as before.
    """
    approved = old.approved or ()
    reasons = []
    if strange := [host for host in plan.hosts if host not in approved]:
        what = "it now leads to" if approved else "no approval of its hosts is recorded here:"
        reasons.append(f"{what} {list_hosts(strange)}")
    before = sum(file.size for file in old.record.files.values())
    if plan.size > 2 * before + SMALL_GROWTH:
        reasons.append(f"it grew from {format_about(before)} to {format_about(plan.size)}")
    return "; ".join(reasons)
