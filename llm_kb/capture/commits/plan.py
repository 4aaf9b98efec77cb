"""Plans a run: resolves revisions to commits to look at or to skip, and the tokens to send."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.commits.briefing import CommitInfo, estimate_request, find_skip_reason
from llm_kb.capture.commits.diffs import read_briefing
from llm_kb.capture.commits.journal import Record
from llm_kb.capture.errors import NoCommitError, UnknownCommitError
from llm_kb.capture.git.repository import find_repository
from llm_kb.capture.store import load_store
from llm_kb.errors import KbError
from llm_kb.git.run import GitError, run_git

_RANGE = re.compile(r"\.{2,3}")
_GOING_BACK = re.compile(r"(?P<start>.+?)(?P<steps>(?:~[0-9]{0,9}|\^)+)")
# `HEAD~2^`: each step goes to a first parent. `HEAD^2` is another branch, not a step back.


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRange:
    """Commits, oldest first, and the numbers of those left out."""

    commits: tuple[str, ...]
    merges: int = 0
    cut_off: int = 0
    """The number whose parents are not in this clone, so that their diff is unknown."""


def resolve_commits(directory: Path, revisions: Sequence[str]) -> CommitRange:
    """Return the commits that revisions name, interpreted as `git cherry-pick` does.

    A revision is one commit, a range all commits in it. Merges have no diff of their own
    and are left out.
    """
    options = ("--no-walk=unsorted", "--reverse", "--parents", "--end-of-options")
    try:
        listed = run_git("rev-list", *options, *revisions, "--", cwd=directory).decode()
    except GitError as error:
        if revisions == ("HEAD",) or not run_git("rev-list", "-1", "--all", cwd=directory):
            raise NoCommitError(directory) from error
        _check_length(directory, revisions)
        raise UnknownCommitError(" ".join(revisions)) from error
    lines = [line.split() for line in listed.splitlines()]
    cut_off = _read_shallow(directory)
    plain = [ids[0] for ids in lines if len(ids) <= 2]
    commits = tuple(id_ for id_ in plain if id_ not in cut_off)
    return CommitRange(
        commits=commits, merges=len(lines) - len(plain), cut_off=len(plain) - len(commits)
    )


def _read_shallow(directory: Path) -> frozenset[str]:
    """Return the commits at which a shallow clone ends, which git shows without parents."""
    repository = find_repository(directory)
    try:
        listed = (repository.common_dir / "shallow").read_text() if repository else ""
    except OSError:
        return frozenset()
    return frozenset(listed.split())


def _check_length(directory: Path, revisions: Sequence[str]) -> None:
    """Raise KbError for the first name that goes back beyond the first commit."""
    for revision in revisions:
        for name in _RANGE.split(revision.removeprefix("^")):
            found = _GOING_BACK.fullmatch(name)
            if not found:
                continue
            command = ("rev-list", "--count", "--first-parent", "--end-of-options", found["start"])
            try:
                count = int(run_git(*command, "--", cwd=directory))
            except GitError:
                continue  # its start is unknown already
            if _count_steps(found["steps"]) >= count:
                oldest = f"{found['start']}~{count - 1}" if count > 1 else found["start"]
                message = (
                    f"there is no {name!r} in this repository, whose history is shorter; "
                    f"ask for fewer commits: the oldest is {oldest!r}"
                )
                if _read_shallow(directory):
                    message += "; this clone is shallow, `git fetch --unshallow` gets the rest"
                raise KbError(message)


def _count_steps(steps: str) -> int:
    return sum(1 if step == "" else int(step) for step in re.split("[~^]", steps)[1:])


def read_infos(directory: Path, commits: Sequence[str]) -> dict[str, CommitInfo]:
    """Return the author and the subject line of each commit, keyed by its id."""
    if not commits:
        return {}
    # Checking signatures would run a program that the repository names.
    command = ("log", "-z", "--no-walk=unsorted", "--stdin", "--no-show-signature")
    asked = "".join(f"{commit}\n" for commit in commits).encode()
    # A subject is a single line.
    listed = run_git(*command, "--format=%H%n%an%n%ae%n%s", cwd=directory, stdin=asked)
    infos = {}
    for record in listed.decode(errors="replace").split("\0"):
        commit, _, rest = record.strip("\n").partition("\n")
        if not commit:
            continue  # after the last
        author, email, subject = (*rest.split("\n", 2), "", "", "")[:3]
        infos[commit] = CommitInfo(commit=commit, author=author, email=email, subject=subject)
    return infos


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommit:
    """A commit that a model will look at."""

    info: CommitInfo
    left_out: tuple[str, ...]
    tokens: int
    """The estimated tokens of one request about it."""


def choose_commits(
    commits: Sequence[str], records: Mapping[str, Record], again: str | None = None
) -> tuple[Sequence[str], int, int]:
    """Return the commits to look at, and the numbers left out: looked at, and failed, before.

    These are the new ones, or with `again` all or those that `failed`.
    """
    failed = [commit for commit in commits if commit in records and records[commit].failed]
    if again:
        return (failed if again == "failed" else commits), 0, 0
    new = [each for each in commits if each not in records or not records[each].is_finished]
    return new, len(commits) - len(new) - len(failed), len(failed)


def plan_commits(
    directory: Path,
    commits: Sequence[str],
    *,
    limit: int | None = None,
    watch: Callable[[int], None] = lambda _step: None,
) -> tuple[Sequence[PlannedCommit], Mapping[str, int]]:
    """Return the first `limit` commits that have a diff to show, and others by reason.

    A bot's commit counts only if it is the only one. `watch` is called with 1 for each commit.
    """
    infos = read_infos(directory, commits)
    store = load_store(directory)
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
        tokens = estimate_request(briefing.text)
        planned.append(PlannedCommit(info=info, left_out=briefing.left_out, tokens=tokens))
    return planned, skipped
