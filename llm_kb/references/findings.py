"""What a refresh found out about a topic's sources, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llm_kb.references.errors import FetchError
from llm_kb.references.fetch_web import Page
from llm_kb.references.plan import Plan, PlannedSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One source as it is now; `pages` are those asked for on the way.

    `kept` are old files whose pages may be there still, but cannot be had now.
    """

    planned: PlannedSource
    is_unchanged: bool = False
    pages: Mapping[str, Page | None] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """What went wrong with the whole source."""
        if not self.planned.problem:
            return None
        return str(FetchError(self.planned.source.url, self.planned.problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All sources of a topic as they are now, and whether some it had are gone."""

    probes: tuple[Probe, ...]
    plan: Plan
    has_lost_files: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Tell whether nothing at all has changed; a source that failed counts as such."""
        same = all(probe.is_unchanged or probe.planned.problem for probe in self.probes)
        return same and not self.has_lost_files

    @property
    def is_complete(self) -> bool:
        """Tell whether all that was fetched before could be had again."""
        return not any(probe.problem or probe.kept for probe in self.probes)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong, a line for each source that failed."""
        return tuple(probe.problem for probe in self.probes if probe.problem)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong with parts of sources."""
        return tuple(warning for probe in self.probes for warning in probe.warnings)

    @property
    def failed(self) -> frozenset[int]:
        """The numbers of the sources that failed."""
        return frozenset(index for index, probe in enumerate(self.probes) if probe.problem)

    @property
    def unchanged(self) -> frozenset[int]:
        """The numbers of the sources that have not changed."""
        return frozenset(index for index, probe in enumerate(self.probes) if probe.is_unchanged)

    @property
    def pages(self) -> dict[str, Page | None]:
        """All pages that were asked for."""
        return {url: page for probe in self.probes for url, page in probe.pages.items()}

    @property
    def kept(self) -> dict[int, tuple[str, ...]]:
        """The old files that are taken over as they are, by source."""
        return {index: probe.kept for index, probe in enumerate(self.probes)}
