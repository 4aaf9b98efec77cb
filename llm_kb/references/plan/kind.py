"""What every kind of source can do: plan what would be fetched, and fetch it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError, SourceError
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import FileRecord
from llm_kb.references.topic.staging import OldTopic, Staged


class Step(NamedTuple):
    """A step of the work on a topic: `looking at` a source, `fetching` one, or `indexing`."""

    verb: str
    url: str = ""
    """The address of the source that the step is about, if there is one."""

    def __str__(self) -> str:
        return f"{self.verb} {self.url}".rstrip()


Progress = Callable[[Step, int, int], None]
"""Called with the step, the work done and the total; the total is 0 if it is unknown."""


def silent(_step: Step, _done: int, _total: int) -> None:
    """Report no progress."""


S = TypeVar("S", bound=Source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(ABC, Generic[S]):
    """One source of a topic at work; each kind of source has a class of its own.

    For an old topic, planning contacts only approved hosts, and marks what is unchanged.
    """

    index: int
    source: S
    old: OldTopic
    remotes: Remotes
    progress: Progress = silent

    @abstractmethod
    def plan(self) -> PlannedSource:
        """Return the source with its present files. Raises KbError."""

    @abstractmethod
    def fetch(self, planned: PlannedSource, staged: Staged, folder: str) -> None:
        """Fetch the files into a folder of a staged topic, or into the topic itself.

        Raises KbError; PlanChangedError if the source differs from the plan.
        """

    def preview(self) -> PlannedSource:
        """Return the plan before anybody is contacted."""
        return PlannedSource(source=self.source, size=None)

    @property
    def records(self) -> Mapping[str, FileRecord]:
        """The files that the source gave to the old topic."""
        return self.old.of_source(self.index)

    def report(self, done: int, total: int) -> None:
        """Report how many files are fetched."""
        self.progress(Step("fetching", self.source.url), done, total)


def explain(error: KbError, source: Source) -> str:
    """Return the reason why a source cannot be fetched, with the address if it is another."""
    if isinstance(error, FetchError):
        return error.reason if error.url == source.url else f"{error.url}: {error.reason}"
    return error.reason if isinstance(error, SourceError) else str(error)
