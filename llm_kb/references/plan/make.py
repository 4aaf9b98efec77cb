"""Makes plans: asks each source, by its kind, for its files and sizes; no topic is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from llm_kb.errors import KbError
from llm_kb.references.errors import (
    FetchError,
    NothingFetchedError,
    TooLargeError,
    refuse_hostile,
)
from llm_kb.references.library import Library
from llm_kb.references.plan.kind import Kind, Progress, Step, explain, silent
from llm_kb.references.plan.package import resolve_package
from llm_kb.references.plan.pages import CrawlKind, WebKind
from llm_kb.references.plan.plan import Plan, PlannedSource, format_about
from llm_kb.references.plan.remotes import Remotes, check_count
from llm_kb.references.plan.trees import GitKind, LocalKind
from llm_kb.references.sources.addresses import Policy, system_resolver
from llm_kb.references.sources.git import Repositories
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.records import PackageSource, PlannedPage, Source
from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_file import Description


class PackageKind(Kind[PackageSource]):
    """A package: its plan is that of the repository that it is found in."""

    def plan(self) -> PlannedSource:
        """Find the source of the documentation, and plan that."""
        if not self.old.is_new:
            raise FetchError(self.source.url, "a package is looked up by create, not by refresh")
        found = resolve_package(self.source, self.remotes)
        return open_kind(self.index, found, self.old, self.remotes, self.progress).plan()

    def preview(self) -> PlannedSource:
        """Return the plan before anybody is contacted, with the repository if it is known here."""
        planned = PlannedSource(source=self.source, size=None)
        source, workspace = self.source, self.remotes.workspace
        package = find_installed(source.ecosystem, source.name, workspace)
        if not package or not package.repository:
            return planned
        pages = (PlannedPage(url=package.repository),)
        return replace(planned, pages=pages, notes=(f"leads to {package.repository}",))

    def fetch(self, planned: PlannedSource, staged: Staged, folder: str) -> None:
        """Raise FetchError: what is planned is the source that the package was found in."""
        raise FetchError(self.source.url, "a package is fetched from where its plan found it")


KINDS: Mapping[str, type[Kind[Any]]] = {
    "git": GitKind,
    "web": WebKind,
    "crawl": CrawlKind,
    "package": PackageKind,
    "local": LocalKind,
}


def open_kind(
    index: int, source: Source, old: OldTopic, remotes: Remotes, progress: Progress = silent
) -> Kind[Any]:
    """Return one source of a topic, ready to be planned and fetched."""
    kind = KINDS[source.type]
    return kind(index=index, source=source, old=old, remotes=remotes, progress=progress)


def plan_source(kind: Kind[Any]) -> PlannedSource:
    """Plan one source; a failure becomes part of the result."""
    try:
        with refuse_hostile(kind.source.url):
            planned = kind.plan()
        check_count(planned.source.url, planned.files, kind.remotes.policy)
        if not planned.files:
            reason = "; ".join(["it has no file to fetch", *planned.notes])
            raise FetchError(planned.source.url, reason)
    except KbError as error:
        return PlannedSource(source=kind.source, problem=explain(error, kind.source))
    return planned


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
