"""The documents of an index: anything that can be listed and read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from llm_kb.search.roles import Role, find_role
from llm_kb.texts.decoding import MOST_BYTES
from llm_kb.texts.formats import find_extension, find_format, is_unread_document

MAX_FILES = 100_000
MAX_BYTES = 500_000_000
"""Files beyond this number or total size are not indexed; every answer reports them."""

MOST_NAMED = 5
"""Directories of files beyond the bounds that a notice names."""

_MAX_INTEGER = 2**63 - 1


class File(NamedTuple):
    """A document: its `/`-separated path, and its size and times, by which changes are found."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    """When it changed in any way, which no program can set: copies and builds set the other."""
    role: str = ""
    """The role given by its owner; if empty, the role is found by its path."""

    def stamp(self) -> tuple[int, int, int, str]:
        """Return size, times and the owner's wishes, by which a change is noticed.

        The times are within the range of SQLite; they may lie beyond the year 2262.
        """
        mtime_ns = max(-_MAX_INTEGER, min(self.mtime_ns, _MAX_INTEGER))
        ctime_ns = max(-_MAX_INTEGER, min(self.ctime_ns, _MAX_INTEGER))
        return self.size, mtime_ns, ctime_ns, self.role


def tick(mtime_ns: int) -> int:
    """Return how long, in ns, a file system may give the same modification time.

    Times without a fraction of a second are from one that has none: FAT counts
    in steps of two seconds. Others follow the kernel's clock tick.
    """
    return 50_000_000 if mtime_ns % 1_000_000_000 else 2_000_000_000


class Documents(Protocol):
    """The documents of a topic; by default of one that is not a directory."""

    name: str
    """The topic's id."""
    index: Path | None = None
    """The path of the index, in which scores are comparable; None for one made in memory."""
    root: str = ""
    """The directory of the topic; empty if it has none."""
    place: str = ""
    """The part of that directory, with a slash at its end, below the workspace."""
    trust: int | None = None
    """The owner's trust score, from 0 to 10; None if not given."""
    absent: Sequence[str] = ()
    """What the last list found not to be part of the topic, in words."""

    def note(self) -> str:
        """Return a note on the state that a list depends on; empty if only a list shows changes."""
        return ""

    def holds(self, note: str, files: Iterable[tuple[str, int, int, int]]) -> bool:
        """Tell whether a note's state, and path, size and times of the files, are unchanged."""
        return False

    def list(self) -> Iterable[File]:
        """Return all documents, in no order. Raises OSError if the topic is missing."""

    def read(self, path: str) -> bytes:
        """Return the content of a listed document. Raises UnreadableError."""


def bound_files(
    files: Sequence[File], most: int = MAX_BYTES, count: int = MAX_FILES
) -> tuple[Sequence[File], list[str]]:
    """Return the files that are indexed, and notes on those that are left out.

    `most` is the largest total size in bytes.
    """
    notes: list[str] = []
    if unread := [file.path for file in files if is_unread_document(file.path)]:
        notes.append(describe_unread(unread))
        files = [file for file in files if not is_unread_document(file.path)]
    if len(files) <= count and sum(map(_indexed_size, files)) <= most:
        return files, notes
    kept = _keep_most_useful(files, most, count)
    left_out = [file.path for file in files if file.path not in kept]
    notes.append(
        f"{len(left_out):,} of {len(files):,} files, beyond {count:,} files or"
        f" {most // 1_000_000} MB of a topic (documentation and small files come first); `ignore`"
        f" others, or make topics of directories: {_name_directories(left_out)}"
    )
    return [file for file in files if file.path in kept], notes


def describe_unread(paths: Collection[str]) -> str:
    """Return the number and kinds of documents that need the extra, and what to install."""
    kinds = ", ".join(sorted({find_extension(path).upper() for path in paths}))
    what = "1 document" if len(paths) == 1 else f"{len(paths):,} documents"
    commands = {row.needs for path in paths if (row := find_format(path))}
    return f"{what} ({kinds}); to read them: {'; '.join(sorted(commands))}"


def _keep_most_useful(files: Sequence[File], most: int, count: int) -> set[str]:
    """Return the paths of the files that fit: documentation, then small files, then the rest."""
    by_use = sorted(files, key=lambda file: (not _is_docs(file), _indexed_size(file), file.path))
    totals = accumulate(map(_indexed_size, by_use))
    first = zip(by_use[:count], totals, strict=False)
    return {file.path for file, total in first if total <= most}


def _indexed_size(file: File) -> int:
    return file.size if file.size <= MOST_BYTES else 0


def _is_docs(file: File) -> bool:
    return (Role(file.role) if file.role else find_role(file.path)) is Role.DOCS


def _name_directories(paths: Sequence[str]) -> str:
    """Return the directories that hold some paths, with the number in each: `src/ 12, lib/ 3`."""
    above = os.path.commonpath([path.rpartition("/")[0] for path in paths])
    start = len(above) + 1 if above else 0
    names = Counter(
        path[: path.find("/", start) + 1] if "/" in path[start:] else path for path in paths
    )
    shown = [f"{name} {number:,}" for name, number in names.most_common(MOST_NAMED)]
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return ", ".join([*shown, *more])
