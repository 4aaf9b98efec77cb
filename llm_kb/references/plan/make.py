"""Makes plans: asks each source for its files and their sizes, without keeping any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.references.errors import (
    FetchError,
    NothingFetchedError,
    SourceError,
    TooLargeError,
    refuse_hostile,
)
from llm_kb.references.library import Library
from llm_kb.references.plan.crawl import Count, find_pages
from llm_kb.references.plan.package import resolve_package
from llm_kb.references.plan.plan import Plan, PlannedSource, format_about
from llm_kb.references.plan.remotes import Remotes, check_count
from llm_kb.references.sources.addresses import Policy, system_resolver
from llm_kb.references.sources.git import Repositories, Tree
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    LocalSource,
    PackageSource,
    PlannedPage,
    Source,
    TreeSource,
    WebSource,
)
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import find_page, no_text
from llm_kb.references.topic.topic_file import Description

Progress = Callable[[str, int, int], None]
"""Called with a step, such as `asking URL` or `indexing`, and how much of it is done, of how much.

The total is 0 where nothing is counted."""


def silent(_step: str, _done: int, _total: int) -> None:
    """Report no progress."""


@contextmanager
def open_remotes(library: Library, hosts: frozenset[str] | None = None) -> Iterator[Remotes]:
    """Give access to the outside for one run, under the settings of a library's user.

    Only these hosts may be asked; None for any.
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


def unmeasured_plan(request: Description, workspace: Path | None) -> Plan:
    """Return the plan of a request before its sources are asked.

    A package that the workspace has installed leads to the repository its metadata names.
    """
    sources = []
    for source in request.sources:
        planned = PlannedSource(source=source, size=None)
        if isinstance(source, PackageSource):
            package = find_installed(source.ecosystem, source.name, workspace)
            if package and package.repository:
                pages = (PlannedPage(url=package.repository),)
                planned = replace(planned, pages=pages, notes=(f"leads to {package.repository}",))
        sources.append(planned)
    return Plan(request=request, sources=tuple(sources))


def make_plan(request: Description, remotes: Remotes, progress: Progress = silent) -> Plan:
    """Plan every source of a request; one that cannot be fetched says why.

    Raises NothingFetchedError when none can be, TooLargeError over the limits.
    """
    remotes = remotes.while_planning()
    planned = []
    for source in request.sources:
        progress(f"asking {source.url}", 0, 0)
        planned.append(plan_source(source, remotes, partial(progress, f"asking {source.url}")))
    problems = [f"{p.source.url}: {p.problem}" for p in planned if p.problem]
    if not any(p.files for p in planned if not p.problem):
        raise NothingFetchedError(request.title, problems)
    plan = Plan(request=request, sources=tuple(planned))
    check_limits(plan, remotes.policy)
    return plan


def plan_source(source: Source, remotes: Remotes, progress: Count) -> PlannedSource:
    """Plan one source; a failure becomes part of the result."""
    try:
        with refuse_hostile(source.url):
            if isinstance(source, PackageSource):
                source = resolve_package(source, remotes)
            if isinstance(source, WebSource):
                planned = _plan_page(source, remotes)
            elif isinstance(source, CrawlSource):
                planned = _plan_crawl(source, remotes, progress)
            else:
                pinned = source
                if isinstance(source, GitSource):
                    pinned = replace(source, commit=remotes.find_commit(source))
                planned = plan_tree(pinned, remotes.measure(pinned))
        check_source(planned, remotes.policy)
    except KbError as error:
        return PlannedSource(source=source, problem=explain(error, source))
    return planned


def plan_tree(source: TreeSource, tree: Tree) -> PlannedSource:
    """Plan the files of a repository, a directory or an archive."""
    package = [] if isinstance(source, LocalSource) or not source.package else [source.package]
    return PlannedSource(
        source=source,
        files=len(tree.files),
        size=sum(file.size or 0 for file in tree.files),
        notes=(*package, *tree.notes),
    )


def check_source(planned: PlannedSource, policy: Policy) -> None:
    """Raise FetchError when a source has nothing to fetch, or more than the user's limit."""
    check_count(planned.source.url, planned.files, policy)
    if not planned.files:
        reason = "; ".join(["it has no file to fetch", *planned.notes])
        raise FetchError(planned.source.url, reason)


def explain(error: KbError, source: Source) -> str:
    """Return why a source cannot be fetched, with the address where that is not its own."""
    if isinstance(error, FetchError):
        return error.reason if error.url == source.url else f"{error.url}: {error.reason}"
    return error.reason if isinstance(error, SourceError) else str(error)


def check_limits(plan: Plan, policy: Policy) -> None:
    """Raise TooLargeError when a whole plan is over the user's limits."""
    where = plan.request.title
    has_paths = any(isinstance(p.source, TreeSource) for p in plan.sources)
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


def _plan_page(source: WebSource, remotes: Remotes) -> PlannedSource:
    found = find_page(source.url, remotes.policy)
    page = found.page
    if found.content is None:
        raise no_text(page.url)
    return PlannedSource(
        source=source,
        files=1,
        size=page.size,
        pages=(page,),
        notes=_moved(source.url, page.url),
        read={page.url: found.content},
    )


def _plan_crawl(source: CrawlSource, remotes: Remotes, progress: Count) -> PlannedSource:
    crawl = find_pages(source, remotes.policy, progress=progress)
    sizes = [page.size for page in crawl.pages if page.size is not None]
    return PlannedSource(
        source=source,
        files=len(crawl.pages),
        size=sum(sizes) if len(sizes) == len(crawl.pages) else None,
        pages=crawl.pages,
        notes=(*_moved(source.url, crawl.start), *crawl.notes),
        read=crawl.read,
    )


def _moved(asked: str, found: str) -> tuple[str, ...]:
    if host_and_port(asked) == host_and_port(found):
        return ()
    what = "port" if urlsplit(asked).hostname == urlsplit(found).hostname else "host"
    return (f"redirects to another {what}: {found}",)
