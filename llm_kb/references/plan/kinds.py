"""The kinds of sources by their type, and the plan of one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError, refuse_hostile
from llm_kb.references.plan.kind import Kind, Progress, explain, silent
from llm_kb.references.plan.package import resolve_package
from llm_kb.references.plan.pages import CrawlKind, WebKind
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes, check_count
from llm_kb.references.plan.trees import GitKind, LocalKind
from llm_kb.references.sources.installed import find_installed
from llm_kb.references.sources.records import PackageSource, PlannedPage, Source
from llm_kb.references.topic.old_topic import OldTopic
from llm_kb.references.topic.staging import Staged


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
        if not planned.files and not planned.has_moved:
            reason = "; ".join(["it has no file to fetch", *planned.notes])
            raise FetchError(planned.source.url, reason)
    except KbError as error:
        return PlannedSource(source=kind.source, problem=explain(error, kind.source))
    return planned
