"""Plans a run: the commits to look at, those to skip, and the tokens to send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.commits.briefing import (
    CommitInfo,
    estimate_exchange,
    estimate_request,
    find_skip_reason,
)
from llm_kb.capture.commits.diffs import read_briefing
from llm_kb.capture.commits.journal import Record
from llm_kb.capture.commits.ranges import read_infos
from llm_kb.capture.store import load_store

USUAL_SHARE = 0.2
"""The assumed share of commits that yield an entry, until this clone has a record."""

_ENOUGH_RECORDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The commits to look at, and the numbers of those left out."""

    commits: tuple[str, ...]
    done: int = 0
    """The number looked at before."""
    failed: int = 0
    """The number on which a model failed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommit:
    """A commit that a model will look at."""

    info: CommitInfo
    left_out: tuple[str, ...]
    request: int
    """The estimated tokens of one request."""
    tokens: int
    """The estimated tokens of all requests about it."""
    most: int
    """The estimated tokens if it and every commit before it yield an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The commits of a run, and the number skipped for each reason."""

    commits: tuple[PlannedCommit, ...]
    skipped: tuple[tuple[str, int], ...] = ()

    @property
    def tokens(self) -> int:
        """The estimated tokens to send."""
        return sum(commit.tokens for commit in self.commits)

    @property
    def least(self) -> int:
        """The estimated tokens if no commit yields an entry."""
        return sum(commit.request for commit in self.commits)

    @property
    def most(self) -> int:
        """The estimated tokens if every commit yields an entry."""
        return sum(commit.most for commit in self.commits)


def choose_commits(
    commits: Sequence[str], records: Mapping[str, Record], again: str | None = None
) -> Choice:
    """Return the commits to look at: the new ones, or with `again` all or those that `failed`."""
    failed = [c for c in commits if c in records and records[c].failed]
    if again == "failed":
        return Choice(commits=tuple(failed))
    if again:
        return Choice(commits=tuple(commits))
    new = tuple(commit for commit in commits if commit not in records)
    return Choice(commits=new, done=len(commits) - len(new) - len(failed), failed=len(failed))


def plan_commits(
    directory: Path,
    commits: Sequence[str],
    records: Mapping[str, Record],
    *,
    limit: int | None = None,
    watch: Callable[[int], None] = lambda _step: None,
) -> Plan:
    """Return the plan for the first `limit` commits that have a diff to show.

    A bot's commit counts only if it is the only one. `watch` is called with 1 for each commit.
    """
    infos = read_infos(directory, commits)
    store = load_store(directory)
    share = _share_of_finds(records)
    planned: list[PlannedCommit] = []
    skipped: Counter[str] = Counter()
    for commit in commits:
        if len(planned) == limit:
            break
        watch(1)
        info = infos[commit]
        reason = find_skip_reason(info) if len(commits) > 1 else None
        if reason:
            skipped[reason] += 1
            continue
        briefing = read_briefing(directory, commit, store)
        if briefing.is_empty:
            skipped["nothing to see in them"] += 1
            continue
        request = estimate_request(briefing.text)
        planned.append(
            PlannedCommit(
                info=info,
                left_out=briefing.left_out,
                request=request,
                tokens=estimate_exchange(request, share, len(planned)),
                most=estimate_exchange(request, 1, len(planned)),
            )
        )
    return Plan(commits=tuple(planned), skipped=tuple(sorted(skipped.items())))


def _share_of_finds(records: Mapping[str, Record]) -> float:
    """Return the share of commits looked at in this clone that yielded an entry."""
    done = [record for record in records.values() if not record.failed]
    if len(done) < _ENOUGH_RECORDS:
        return USUAL_SHARE
    return sum(record.written > 0 for record in done) / len(done)
