"""Reads what a model is told about a commit: its message and as much of its diff as fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from llm_kb.capture.commits.briefing import (
    MAX_ENTRIES_SHOWN,
    Briefing,
    Excerpt,
    FileChange,
    choose_files,
    render_briefing,
)
from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.likeness import scope_matches
from llm_kb.git import GitError, read_git, run_git

MAX_MESSAGE_BYTES = 10_000
_MAX_DIFF_BYTES = 4_000_000
_MAX_NUMSTAT_BYTES = 1_000_000

_LOG = ("log", "-1", "--no-show-signature")
_HEADER_CHARS = 20_000  # two names of the longest kind, quoted, some lines each
_NAME = re.compile(r"^(?:rename to |--- a/|\+\+\+ b/)([^\n]+)$", re.MULTILINE)
_NEXT_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


def read_briefing(directory: Path, commit: str, store: KnowledgeStore | None = None) -> Briefing:
    """Return what a model is told about a commit, never more than fits.

    `store` has the entries that it is not to record again.
    """
    message, _ = read_git(
        *_LOG, "--format=%B", commit, "--", cwd=directory, limit=MAX_MESSAGE_BYTES
    )
    files, too_many = _read_files(directory, commit)
    choice = choose_files(files, _find_generated(directory, [file.path for file in files]))
    paths = [file.path for file in choice.shown]
    diffs, is_cut = _read_diffs(directory, commit, paths) if paths else ((), False)
    read = {path for path, _ in diffs}
    unread = [(path, "not read") for path in paths if is_cut and path not in read]
    return render_briefing(
        Excerpt(
            commit=commit,
            message=message.decode(errors="replace").strip(),
            diffs=diffs,
            left_out=(*choice.left_out, *unread),
            has_more_files=too_many,
            known=_find_known(store or KnowledgeStore(), [file.path for file in files]),
        )
    )


def _read_diffs(
    directory: Path, commit: str, paths: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return each file's name and diff, in git's order, and whether there were more to read."""
    # Neither the repository's configuration nor its attributes run anything here.
    safe = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch", "--find-renames")
    command = ("diff-tree", "--root", "--no-commit-id", "-r", *safe, commit, "--")
    data, is_cut = read_git(
        "--literal-pathspecs", *command, *paths, cwd=directory, limit=_MAX_DIFF_BYTES
    )
    # A line of content never starts with a letter.
    texts = [text for text in _NEXT_FILE.split(data.decode(errors="replace")) if text]
    return tuple((_find_name(text), text) for text in texts), is_cut


def _find_name(diff: str) -> str:
    names = [found[1] for found in _NAME.finditer(diff[:_HEADER_CHARS])]
    return next((name for name in reversed(names) if name != "/dev/null"), "a file")


def _find_known(store: KnowledgeStore, paths: Sequence[str]) -> tuple[Entry, ...]:
    """Return the entries of the places touched, those of the narrowest place first."""
    known = [e for e in store.entries if e.place and any(scope_matches(e.place, p) for p in paths)]
    known.sort(key=lambda entry: -len(entry.place or ""))
    return (*known, *(e for e in store.entries if e.place is None))[:MAX_ENTRIES_SHOWN]


def _find_generated(directory: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths that the repository's attributes call generated."""
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
