"""Make reference topics: plan them, have the plan approved, fetch and index them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from llm_kb.references.errors import DeniedError, TopicExistsError
from llm_kb.references.fetch.fetcher import fetch_topic, index_topic
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Progress, silent
from llm_kb.references.plan.make import make_plan, open_remotes, unmeasured_plan
from llm_kb.references.plan.pending import open_pending
from llm_kb.references.plan.plan import Plan, summarize_plan
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import Description, new_topic_file, render_topic_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The result of creating a topic."""

    topic_id: str
    file_count: int
    chunk_count: int
    warnings: tuple[str, ...] = ()


def created_answer(created: Created) -> dict[str, Any]:
    """Return the answer of `reference_topic_create`: the seed's fields, and warnings if any."""
    answer = asdict(created)
    warnings = list(answer.pop("warnings"))
    return answer | ({"warnings": warnings} if warnings else {})


Approve = Callable[[Plan], bool]
"""Asks the operator about a plan; False denies it. It may raise to answer later."""


def plan_topic(library: Library, request: Description, progress: Progress = silent) -> Plan:
    """Plan the sources of a request; nothing is kept."""
    with open_remotes(library) as remotes:
        return make_plan(request, remotes, progress)


def create_topic(
    library: Library,
    request: Description,
    approve: Approve,
    progress: Progress = silent,
    *,
    by_model: bool = False,
) -> Created:
    """Plan a topic, have the plan approved, and carry it out.

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
    hosts = None
    if by_model and library.settings.ask_first:
        hosts, asking = approved_hosts(library), unmeasured_plan(request, library)
        if not hosts.issuperset(asking.hosts):
            _get_approval(library, asking, approve)
            hosts |= set(asking.hosts)
    return _create(library, request, approve, progress, hosts)


def _create(
    library: Library,
    request: Description,
    approve: Approve,
    progress: Progress,
    hosts: frozenset[str] | None,
) -> Created:
    """Plan a topic by contacting only these hosts, or any; get approval; carry it out."""
    with open_remotes(library, hosts) as remotes:
        plan = _get_approval(library, make_plan(request, remotes, progress), approve)
        return _carry_out(library, plan, remotes, progress)


def carry_out(
    library: Library, plan_id: str, approve: Approve, progress: Progress = silent
) -> Created:
    """Approve and carry out a pending plan; if that fails, the plan waits again.

    If its sources were not contacted yet, they are, and the new plan needs approval.
    """
    pending = open_pending(library)
    plan = pending.take(plan_id)
    try:
        if not plan.is_measured:
            hosts = approved_hosts(library) | set(plan.hosts)
            return _create(library, plan.request, approve, progress, hosts)
        with open_remotes(library) as remotes:
            return _carry_out(library, plan, remotes, progress)
    except BaseException:
        # Unless only the index failed: then the topic exists, and the plan is used.
        if not _find_made(library, plan.request):
            pending.add(plan)
        raise


def _carry_out(library: Library, plan: Plan, remotes: Remotes, progress: Progress) -> Created:
    """Fetch the sources of an approved plan, and index the new topic."""
    request = plan.request
    described = replace(request, sources=tuple(each.source for each in plan.sources))

    def render(staged: Staged) -> str:
        return render_topic_file(new_topic_file(described, sorted(staged.files), now))

    with library.store.lock(request.id):
        if library.store.exists(request.id):
            raise _taken(library, request)
        now = library.clock()
        old = OldTopic.none(described.sources)
        staged = fetch_topic(library, plan, old, remotes, render, progress=progress)
        # Waiting plans for the same request could bring the topic back after it is deleted.
        open_pending(library).drop_request(request)
    chunks, problems = index_topic(library, request.id, progress)
    return Created(
        topic_id=request.id,
        file_count=len(staged.files),
        chunk_count=chunks,
        warnings=(*staged.warnings, *problems),
    )


def _get_approval(library: Library, plan: Plan, approve: Approve) -> Plan:
    """Return a plan once it is approved, with the pages that it had then. Raises DeniedError."""
    approved = open_pending(library).take_approved(plan)
    if approved is None and not approve(plan):
        raise DeniedError(plan.request.title, summarize_plan(plan))
    return approved or plan


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
