"""The commits of a run: which ones a model looks at, what it is shown of each, what came of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.briefing import (
    MAX_ENTRIES_SHOWN,
    Briefing,
    choose_files,
    render_briefing,
)
from llm_kb.capture.entries import Entry, KnowledgeStore, scope_matches
from llm_kb.capture.notes import Repository
from llm_kb.capture.store import UnknownCommitError, load_store, require_repository
from llm_kb.errors import KbError
from llm_kb.files.git import GitError, read_git, run_git


def resolve_commits(directory: Path, revisions: Sequence[str]) -> tuple[str, ...]:
    """Return the commits that revisions name, oldest first, interpreted as `git cherry-pick` does.

    A revision is one commit, a range all commits in it. Left out are merges, which have no diff
    of their own, and the commits at which a shallow clone ends, whose diff is unknown.
    """
    options = ("--no-walk=unsorted", "--reverse", "--max-parents=1", "--end-of-options")
    try:
        listed = run_git("rev-list", *options, *revisions, "--", cwd=directory).decode()
    except GitError as error:
        if revisions == ("HEAD",) or not run_git("rev-list", "-1", "--all", cwd=directory):
            raise UnknownCommitError("HEAD") from error
        raise UnknownCommitError(" ".join(revisions)) from error
    try:
        shallow = (require_repository(directory).common_dir / "shallow").read_text()
    except OSError:
        shallow = ""
    cut_off = frozenset(shallow.split())
    return tuple(commit for commit in listed.split() if commit not in cut_off)


def plan_commits(
    directory: Path,
    commits: Sequence[str],
    *,
    limit: int | None = None,
    watch: Callable[[int], None] = lambda _step: None,
) -> tuple[Sequence[Briefing], Mapping[str, int]]:
    """Return the prompts about the first `limit` commits with a diff to show; others by reason.

    A single commit is not skipped for its author or kind. `watch` is called with 1 for each commit.
    """
    store = load_store(directory)
    planned: list[Briefing] = []
    skipped: Counter[str] = Counter()
    for commit in commits:
        if len(planned) == limit:
            break
        watch(1)
        briefing = read_briefing(directory, commit, store)
        if briefing.is_empty:
            skipped["nothing to see in them"] += 1
        elif briefing.skip_reason and len(commits) > 1:
            skipped[briefing.skip_reason] += 1
        else:
            planned.append(briefing)
    return planned, skipped


MAX_MESSAGE_CHARS = 10_000
_MAX_BYTES = 5_000_000

_FORMAT = "--format=%an <%ae>%x00%B%x00"
_NEXT_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The author and message of a commit, its files, and their diffs in the same order."""

    author: str
    message: str
    files: Mapping[str, bool]
    """Whether each path is a binary file."""
    diffs: tuple[str, ...]
    is_cut: bool
    """Whether the output was cut, so that diffs or files may be missing."""


def read_briefing(directory: Path, commit: str, store: KnowledgeStore | None = None) -> Briefing:
    """Return the prompt about a commit, which is never longer than the limit.

    `store` has the known entries, which the model is not to record again.
    """
    change = _read_change(directory, commit)
    shown, left_out = choose_files(change.files)
    # The diff of a large file that is not shown may have used up the limit.
    read = _read_change(directory, commit, *shown) if change.is_cut and shown else change
    diffs = zip(read.files, read.diffs, strict=False)
    wanted = {path: text for path, text in diffs if path in shown}
    return render_briefing(
        commit,
        change.author,
        change.message,
        list(wanted.items()),
        left_out=[*left_out, *((p, "not read") for p in shown if p not in wanted)],
        has_more_files=change.is_cut and not change.diffs,
        known=_find_known(store or KnowledgeStore(), change.files),
    )


def _read_change(directory: Path, commit: str, *paths: str) -> _Change:
    """Read a commit's message, and the sizes and diffs of these paths or of all."""
    # Neither the repository's configuration nor its attributes run anything here.
    safe = ("--no-ext-diff", "--no-textconv", "--no-color")
    shape = ("--root", "-r", "-z", "--numstat", "--patch", "--find-renames")
    data, is_cut = read_git(
        *("--literal-pathspecs", "diff-tree", *shape, *safe, _FORMAT, commit, "--", *paths),
        cwd=directory,
        limit=_MAX_BYTES,
    )
    author, message, rest = (*data.split(b"\0", 2), b"", b"")[:3]
    numbers, _, patch = rest.lstrip(b"\0\n").partition(b"\0\0")
    text = message[: 4 * MAX_MESSAGE_CHARS].decode(errors="replace").strip()[:MAX_MESSAGE_CHARS]
    return _Change(
        author=author.decode(errors="replace").strip(),
        message=text,
        files=dict(_parse_numbers(numbers, is_cut=is_cut and not patch)),
        diffs=_split_patch(patch.decode(errors="replace")),
        is_cut=is_cut,
    )


def _parse_numbers(listed: bytes, *, is_cut: bool) -> Iterator[tuple[str, bool]]:
    """Yield the files of `--numstat -z`, a renamed one under its new name; true if binary."""
    fields = listed.rstrip(b"\0").split(b"\0") if listed else []
    # The last one may have been cut short.
    remaining = iter(fields[:-1] if is_cut else fields)
    for line in remaining:
        added, _, path = line.split(b"\t", 2)
        if not path:
            next(remaining, b"")  # the old name
            path = next(remaining, b"")
            if not path:
                return
        # Binary files have dashes for numbers.
        yield path.decode(errors="surrogateescape"), added == b"-"


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


def _find_known(store: KnowledgeStore, paths: Iterable[str]) -> tuple[Entry, ...]:
    """Return the entries of the places touched, the narrowest place first."""
    known = [e for e in store.entries if e.place and any(scope_matches(e.place, p) for p in paths)]
    known.sort(key=lambda entry: -len(entry.place or ""))
    return (*known, *(e for e in store.entries if e.place is None))[:MAX_ENTRIES_SHOWN]


class JournalError(KbError):
    """A record that cannot be read or written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"the record of captured commits, {str(path)!r}, cannot be used: {error.strerror}"
        )


class Journal:
    """The commits that a model has looked at, a line of JSON for each."""

    def __init__(self, repository: Repository) -> None:
        self.path = repository.common_dir / "llm-kb" / "captured.jsonl"

    def read(self) -> frozenset[str]:
        """Return the commits."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise JournalError(self.path, error) from error
        return frozenset(filter(None, map(_parse_line, lines)))

    def append(self, commit: str, model: str) -> None:
        """Add a commit to the file."""
        try:
            self.path.parent.mkdir(exist_ok=True)
            # Opened to append, a line this short is written in one piece.
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"commit": commit, "model": model}) + "\n")
        except OSError as error:
            raise JournalError(self.path, error) from error


def _parse_line(line: str) -> str | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None  # an incomplete line: its commit is looked at again
    commit = record.get("commit") if isinstance(record, dict) else None
    return commit if isinstance(commit, str) else None
