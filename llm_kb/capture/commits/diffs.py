"""Reads the message of a commit and as much of its diff as fits into a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.commits.briefing import (
    MAX_ENTRIES_SHOWN,
    Briefing,
    FileChange,
    choose_files,
    render_briefing,
)
from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.likeness import scope_matches
from llm_kb.git.read import read_git
from llm_kb.git.run import GitError, run_git

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
