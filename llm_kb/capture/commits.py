"""The commits of a run: which ones a model looks at, what it is shown of each, what came of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llm_kb.capture.briefing import (
    MAX_ENTRIES_SHOWN,
    Briefing,
    CommitInfo,
    FileChange,
    choose_files,
    estimate_request,
    find_skip_reason,
    render_briefing,
)
from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.errors import NoCommitError, UnknownCommitError
from llm_kb.capture.likeness import scope_matches
from llm_kb.capture.notes import Repository, find_repository
from llm_kb.capture.store import load_store
from llm_kb.errors import KbError
from llm_kb.git.run import GitError, read_git, run_git


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
        name = " ".join(revisions)
        hint = _describe_length(directory) if set(name) & {"~", "^"} else ""
        raise UnknownCommitError(name, hint) from error
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


def _describe_length(directory: Path) -> str:
    """Return how far the history goes back, for a name such as `HEAD~50` that goes further."""
    number = run_git("rev-list", "--count", "--first-parent", "HEAD", "--", cwd=directory)
    length = f"; HEAD and the commits before it are {number.decode().strip()}"
    if _read_shallow(directory):
        length += ", since this clone is shallow: `git fetch --unshallow` gets the rest"
    return length


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
        reason = "nothing to see in them" if briefing.is_empty else None
        if briefing.is_release and len(commits) > 1:
            reason = "only versions and change logs"
        if reason:
            skipped[reason] += 1
            continue
        tokens = estimate_request(briefing.text)
        planned.append(PlannedCommit(info=info, left_out=briefing.left_out, tokens=tokens))
    return planned, skipped


MAX_MESSAGE_CHARS = 10_000
_MAX_BYTES = 5_000_000

_NEXT_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The message of a commit, its files, and their diffs in the same order."""

    message: str
    files: tuple[FileChange, ...]
    diffs: tuple[str, ...]
    is_cut: bool
    """Whether the output was cut, so that diffs or files may be missing."""


def read_briefing(directory: Path, commit: str, store: KnowledgeStore | None = None) -> Briefing:
    """Return the prompt about a commit, which is never longer than the limit.

    `store` has the known entries, which the model is not to record again.
    """
    change = _read_change(directory, commit)
    paths = [file.path for file in change.files]
    shown, left_out = choose_files(change.files, _find_generated(directory, paths))
    # The diff of a large file that is not shown may have used up the limit.
    read = _read_change(directory, commit, *shown) if change.is_cut and shown else change
    diffs = zip([file.path for file in read.files], read.diffs, strict=False)
    wanted = {path: text for path, text in diffs if path in shown}
    return render_briefing(
        commit,
        change.message,
        list(wanted.items()),
        left_out=[*left_out, *((p, "not read") for p in shown if p not in wanted)],
        has_more_files=change.is_cut and not change.diffs,
        known=_find_known(store or KnowledgeStore(), paths),
    )


def _read_change(directory: Path, commit: str, *paths: str) -> _Change:
    """Read a commit's message, and the sizes and diffs of these paths or of all."""
    # Neither the repository's configuration nor its attributes run anything here.
    safe = ("--no-ext-diff", "--no-textconv", "--no-color")
    shape = ("--root", "-r", "-z", "--format=%B%x00", "--numstat", "--patch", "--find-renames")
    data, is_cut = read_git(
        *("--literal-pathspecs", "diff-tree", *shape, *safe, commit, "--", *paths),
        cwd=directory,
        limit=_MAX_BYTES,
    )
    message, _, rest = data.partition(b"\0")
    numbers, _, patch = rest.lstrip(b"\0\n").partition(b"\0\0")
    text = message[: 4 * MAX_MESSAGE_CHARS].decode(errors="replace").strip()[:MAX_MESSAGE_CHARS]
    return _Change(
        message=text,
        files=tuple(_parse_numbers(numbers, is_cut=is_cut and not patch)),
        diffs=_split_patch(patch.decode(errors="replace")),
        is_cut=is_cut,
    )


def _parse_numbers(listed: bytes, *, is_cut: bool) -> Iterator[FileChange]:
    """Yield the files of `--numstat -z`, a renamed one under its new name."""
    fields = listed.rstrip(b"\0").split(b"\0") if listed else []
    # The last one may have been cut short.
    remaining = iter(fields[:-1] if is_cut else fields)
    for line in remaining:
        added, removed, path = line.split(b"\t", 2)
        if not path:
            next(remaining, b"")  # the old name
            path = next(remaining, b"")
            if not path:
                return
        yield FileChange(
            path=path.decode(errors="surrogateescape"),
            # Binary files have dashes for numbers.
            lines=None if added == b"-" else int(added) + int(removed),
        )


def _split_patch(patch: str) -> tuple[str, ...]:
    """Return the diff of each file."""
    diffs: list[str] = []
    header = ""
    # A line of content never starts with a letter.
    for text in filter(None, _NEXT_FILE.split(patch)):
        before, header = header, text.partition("\n")[0]
        if header == before:
            diffs[-1] += text  # a file that became a link: git shows its removal and its addition
        else:
            diffs.append(text)
    return tuple(diffs)


def _find_known(store: KnowledgeStore, paths: Sequence[str]) -> tuple[Entry, ...]:
    """Return the entries of the places touched, the narrowest place first."""
    known = [e for e in store.entries if e.place and any(scope_matches(e.place, p) for p in paths)]
    known.sort(key=lambda entry: -len(entry.place or ""))
    return (*known, *(e for e in store.entries if e.place is None))[:MAX_ENTRIES_SHOWN]


def _find_generated(directory: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths that the repository's attributes declare as generated."""
    asked = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
    command = ("check-attr", "-z", "--stdin", "linguist-generated")
    try:
        listed = run_git(*command, cwd=directory, stdin=asked).split(b"\0")
    except GitError:
        return []  # attributes are a hint
    answers = zip(listed[0::3], listed[2::3], strict=False)
    return [
        path.decode(errors="surrogateescape")
        for path, value in answers
        if value in {b"set", b"true"}
    ]


class JournalError(KbError):
    """A record that cannot be read or written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"the record of captured commits, {str(path)!r}, cannot be used: {error.strerror}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The results of looking at a commit."""

    written: int = 0
    """The number of new entries, over all runs."""
    failed: str | None = None
    """The reason why the model failed in the latest run; None if it did not."""
    is_finished: bool = True
    """Whether it was looked at; not if every run stopped at it."""


class Journal:
    """The record of one repository, a line of JSON for every commit."""

    def __init__(self, repository: Repository) -> None:
        self.path = repository.common_dir / "llm-kb" / "captured.jsonl"

    def read(self) -> Mapping[str, Record]:
        """Return the record of each commit that a model was asked about."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise JournalError(self.path, error) from error
        records: dict[str, Record] = {}
        for commit, record in filter(None, map(_parse_line, lines)):
            before = records.get(commit, Record(is_finished=False))
            latest = record if record.is_finished else before
            records[commit] = replace(latest, written=before.written + record.written)
        return records

    def append(  # noqa: PLR0913 - the fields of a line
        self,
        commit: str,
        *,
        model: str,
        written: int,
        duplicates: int,
        failed: str | None = None,
        stopped: str | None = None,
    ) -> None:
        """Append the result of a commit to the file; one that `stopped` is not looked at yet."""
        record: dict[str, object] = {"commit": commit, "model": model}
        record |= {"written": written, "duplicates": duplicates}
        if failed:
            record["failed"] = failed[:500]
        if stopped:
            record["stopped"] = stopped[:500]
        try:
            self.path.parent.mkdir(exist_ok=True)
            # Opened to append, a line this short is written in one piece.
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise JournalError(self.path, error) from error


def _parse_line(line: str) -> tuple[str, Record] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None  # an incomplete line: its commit is looked at again
    if not isinstance(record, dict) or not isinstance(record.get("commit"), str):
        return None
    written, failed = record.get("written"), record.get("failed")
    return record["commit"], Record(
        written=written if isinstance(written, int) else 0,
        failed=failed if isinstance(failed, str) else None,
        is_finished="stopped" not in record,
    )
