"""The files of a topic as its index sees them: what is there, and what they hold."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from llm_kb.opener import open_regular, read_open
from llm_kb.search.chunking.documents import decode_document

MAX_FILE_BYTES = 20_000_000
"""A larger file is data, and only its name is kept."""

RESERVED = frozenset({"topic.md", ".provenance.json"})
"""The topic's own files at its root. As in the store, which a search need not import."""

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})


class File(NamedTuple):
    """A regular file: its `/`-separated path below the topic, and its stat."""

    path: str
    size: int
    mtime_ns: int


class Reading(NamedTuple):
    """What was read of a file; `text` is None where it holds none."""

    size: int
    mtime_ns: int
    racy: bool
    """Whether the file could change now and still have the same time and size."""
    hash: bytes
    text: str | None


def walk_files(root: Path) -> Iterator[File]:
    """Yield every document of a topic, in no order.

    Links are not followed. Left out are the topic's own files and names that are
    no UTF-8. Raises OSError when the root cannot be read; a directory below it
    that cannot is left out.
    """
    pending = [("", os.fspath(root))]
    while pending:
        prefix, directory = pending.pop()
        try:
            entries = os.scandir(directory)
        except OSError:
            if not prefix:
                raise
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name in _VERSION_CONTROL or (not prefix and name in RESERVED):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append((f"{prefix}{name}/", entry.path))
                elif entry.is_file(follow_symlinks=False) and (name.isascii() or _is_utf8(name)):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    yield File(f"{prefix}{name}", status.st_size, status.st_mtime_ns)


def read_file(root: Path, path: str) -> Reading | None:
    """Read a document; None when it is no longer there to read."""
    try:
        descriptor, status = open_regular(f"{root}/{path}", follow_link=False)
    except OSError:
        return None
    try:
        now = time.time_ns()
        is_data = status.st_size > MAX_FILE_BYTES
        data = b"" if is_data else read_open(descriptor, status.st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return Reading(
        status.st_size,
        status.st_mtime_ns,
        now - status.st_mtime_ns < _tick(status.st_mtime_ns),
        hashlib.blake2b(data, digest_size=16).digest(),
        decode_document(data),
    )


def _tick(mtime_ns: int) -> int:
    """Return how long, in ns, a file system may give the same modification time.

    Times without a fraction of a second are from one that has none: FAT counts
    in steps of two seconds. Others follow the kernel's clock tick.
    """
    return 50_000_000 if mtime_ns % 1_000_000_000 else 2_000_000_000


def _is_utf8(name: str) -> bool:
    """Whether a file name was valid UTF-8, and so can be stored."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
