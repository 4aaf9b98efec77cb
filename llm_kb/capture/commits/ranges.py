"""Commits to learn from: which ones, what they say, and as much of their diff as fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.commits.briefing import (
    Briefing,
    Excerpt,
    FileChange,
    choose_files,
    render_briefing,
)
from llm_kb.capture.errors import NoCommitError, ShortHistoryError, UnknownCommitError
from llm_kb.git import GitError, read_git, run_git

MAX_MESSAGE_BYTES = 10_000
MAX_DIFF_BYTES = 60_000
_MAX_NUMSTAT_BYTES = 1_000_000

_LOG = ("log", "-1", "--no-show-signature")
# Whatever `log.showSignature` says: checking one runs a program that the repository names.


_RANGE = re.compile(r"\.{2,3}")
_GOING_BACK = re.compile(r"(?P<start>.+?)(?P<steps>(?:~[0-9]{0,9}|\^)+)")
# `HEAD~2^`: each goes to a first parent. `HEAD^2` is another branch, and no matter of length.


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRange:
    """Commits, oldest first, and how many merges among them were left out."""

    commits: tuple[str, ...]
    merges: int


def resolve_commits(directory: Path, revisions: Sequence[str]) -> CommitRange:
    """Return the commits that revisions name, as `git cherry-pick` takes them.

    A revision is that one commit, a range all commits in it. Merges have no change
    of their own and are left out.
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
    commits = tuple(ids[0] for ids in lines if len(ids) <= 2)
    return CommitRange(commits=commits, merges=len(lines) - len(commits))


def _check_length(directory: Path, revisions: Sequence[str]) -> None:
    """Raise ShortHistoryError for the first name that goes back further than the history."""
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
                said = run_git("rev-parse", "--is-shallow-repository", cwd=directory)
                is_shallow = said.strip() == b"true"
                raise ShortHistoryError(name, found["start"], count, is_shallow=is_shallow)


def _count_steps(steps: str) -> int:
    return sum(1 if step == "" else int(step) for step in re.split("[~^]", steps)[1:])


def read_subject(directory: Path, commit: str) -> str:
    """Return the first line of a commit's message."""
    done = run_git(*_LOG, "--format=%s", "--end-of-options", commit, "--", cwd=directory)
    return done.decode(errors="replace").strip()


def read_briefing(directory: Path, commit: str) -> Briefing:
    """Return what a model is told of a commit, never more than fits."""
    message, _ = read_git(
        *_LOG, "--format=%B", commit, "--", cwd=directory, limit=MAX_MESSAGE_BYTES
    )
    files, too_many = _read_files(directory, commit)
    choice = choose_files(files)
    diff, cut = b"", False
    if choice.shown:
        # Neither the repository's configuration nor its attributes run anything here.
        safe = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch", "--find-renames")
        command = ("diff-tree", "--root", "--no-commit-id", "-r", *safe, commit, "--")
        paths = [file.path for file in choice.shown]
        diff, cut = read_git(
            "--literal-pathspecs", *command, *paths, cwd=directory, limit=MAX_DIFF_BYTES
        )
    return render_briefing(
        Excerpt(
            commit=commit,
            message=message.decode(errors="replace").strip(),
            diff=diff.decode(errors="replace"),
            is_cut=cut,
            left_out=choice.left_out,
            has_more_files=too_many,
        )
    )


def _read_files(directory: Path, commit: str) -> tuple[list[FileChange], bool]:
    command = ("diff-tree", "--root", "--no-commit-id", "-r", "-z", "--numstat", "--no-renames")
    listed, cut = read_git(*command, commit, "--", cwd=directory, limit=_MAX_NUMSTAT_BYTES)
    files = []
    # After the last NUL there is nothing, or half a line where the list was cut.
    for line in listed.split(b"\0")[:-1]:
        added, removed, path = line.split(b"\t", 2)
        files.append(
            FileChange(
                path=path.decode(errors="surrogateescape"),
                # Binary files have dashes for numbers.
                lines=None if added == b"-" else int(added) + int(removed),
            )
        )
    return files, cut
