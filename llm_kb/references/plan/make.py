"""Makes plans: asks each source for its files and sizes, without keeping the files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llm_kb.references.errors import (
    NothingFetchedError,
    TooLargeError,
)
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Progress, Step, silent
from llm_kb.references.plan.kinds import open_kind, plan_source
from llm_kb.references.plan.plan import Plan, format_about
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.addresses import Policy, system_resolver
from llm_kb.references.sources.git import Repositories
from llm_kb.references.topic.old_topic import OldTopic
from llm_kb.references.topic.topic_file import Description


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
        hosts=hosts,
        resolver=library.resolver or system_resolver,
    )
    with Repositories(policy, library.store.scratch) as repositories:
        yield Remotes(policy=policy, repositories=repositories, workspace=library.workspace)


def unmeasured_plan(request: Description, library: Library) -> Plan:
    """Return the plan of a request before its sources are contacted.

    A package installed in the workspace is replaced by the repository in its metadata.
    """
    old = OldTopic.none(request.sources)
    with open_remotes(library, frozenset()) as remotes:
        kinds = [open_kind(n, source, old, remotes) for n, source in enumerate(request.sources)]
        return Plan(request=request, sources=tuple(kind.preview() for kind in kinds))


def make_plan(request: Description, remotes: Remotes, progress: Progress = silent) -> Plan:
    """Plan every source of a request; a source that cannot be fetched gets a reason.

    Raises NothingFetchedError if none can be fetched, TooLargeError over the limits.
    """
    plan = plan_sources(request, OldTopic.none(request.sources), remotes, progress)
    if all(planned.problem for planned in plan.sources):
        problems = [f"{planned.source.url}: {planned.problem}" for planned in plan.sources]
        raise NothingFetchedError(request.title, problems)
    check_limits(plan, remotes.policy)
    return plan


def plan_sources(request: Description, old: OldTopic, remotes: Remotes, progress: Progress) -> Plan:
    """Plan every source of a request as it is now, compared with an old topic's files."""
    remotes = remotes.while_planning()
    planned = []
    for index, source in enumerate(request.sources):
        progress(Step("looking at", source.url), 0, 0)
        planned.append(plan_source(open_kind(index, source, old, remotes, progress)))
    return Plan(request=request, sources=tuple(planned))


def check_limits(plan: Plan, policy: Policy) -> None:
    """Raise TooLargeError if a whole plan is over the user's limits."""
    where = plan.request.title
    has_paths = any(planned.source.is_tree for planned in plan.sources)
    advice = "narrow it by paths" if has_paths else "fetch fewer pages"
    if plan.files > policy.max_files:
        raise TooLargeError(
            where,
            f"{plan.files:,} files are over max_files ({policy.max_files:,}); {advice}",
        )
    if plan.size > policy.max_bytes:
        raise TooLargeError(
            where,
            f"{format_about(plan.size)} are over max_bytes ({format_about(policy.max_bytes)}); "
            f"{advice}",
        )
