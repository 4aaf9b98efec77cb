"""Opening files and directories of a topic without leaving it.

What was opened is asked where it lies, after it was opened: a link swapped in
between a look and the opening changes nothing, as nothing is read before.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

OPEN = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)
"""FIFOs must not block, terminals not become ours. Windows lacks all but O_BINARY."""

DIRECTORY = getattr(os, "O_DIRECTORY", 0)
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
CAN_OPEN_BELOW = bool(NO_LINKS) and os.open in os.supports_dir_fd
"""Whether the system opens what lies in an open directory, and never through a link."""

_LARGEST_READ = 1 << 26
_read_descriptor = os.readlink


class OutsideError(OSError):
    """Something that was opened lies outside the topic; nothing was read of it."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "it leads outside the topic", path)


class Entries(NamedTuple):
    """What a directory holds, by kind; `real` is where it lies once links are resolved."""

    real: str
    files: list[str]
    directories: list[str]
    links: list[str]
    others: list[str]


class Containment:
    """A topic's directory and the others its links may lead to."""

    def __init__(self, root: Path, allowed: Iterable[Path] = ()) -> None:
        self.root = os.path.realpath(root)
        self.prefix = _as_prefix(self.root)
        self._allowed = (self.prefix, *(_as_prefix(os.path.realpath(path)) for path in allowed))

    def holds(self, real: str) -> bool:
        """Tell whether a path without links is inside the topic or where links may lead."""
        return real.startswith(self._allowed) or _as_prefix(real).startswith(self._allowed)

    def relative(self, real: str) -> str | None:
        """Return a path without links relative to the topic; None outside of it."""
        if not _as_prefix(real).startswith(self.prefix):
            return None
        return real[len(self.prefix) :].replace(os.sep, "/")

    @cached_property
    def ignores_case(self) -> bool:
        """Whether the disk finds a name under another case too."""
        try:
            with os.scandir(self.root) as entries:
                entry = next((each for each in entries if each.name.swapcase() != each.name), None)
                if entry is None:
                    return False
                other = os.lstat(self.prefix + entry.name.swapcase())
                return os.path.samestat(entry.stat(follow_symlinks=False), other)
        except OSError:
            return False

    def list_directory(self, path: str) -> Entries:
        """List a directory below the topic, `path` being relative, `""` the root.

        Raises OSError, of which OutsideError when it lies elsewhere.
        """
        if os.scandir not in os.supports_fd:
            full = self.prefix + path
            return list_opened(full, self._require_inside(os.path.realpath(full)))
        fd, real = self.open_directory(path)
        try:
            return list_opened(fd, real)
        finally:
            os.close(fd)

    def open_directory(self, path: str) -> tuple[int, str]:
        """Open a directory as `list_directory` does; return it, and where it really lies."""
        full = self.prefix + path
        fd = os.open(full, OPEN | DIRECTORY)
        try:
            return fd, self._require_inside(real_path(fd, full))
        except OSError:
            os.close(fd)
            raise

    def _require_inside(self, real: str) -> str:
        if not self.holds(real):
            raise OutsideError(real)
        return real

    def read_file(self, path: str, limit: int | None = None) -> tuple[bytes, int, str]:
        """Return a file's first `limit` bytes, its size, and its path once links are resolved.

        The last is relative where it lies in the topic. Raises OSError when it cannot
        be opened, is no regular file, or lies outside.
        """
        full = self.prefix + path
        fd = os.open(full, OPEN)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", full)
            real = real_path(fd, full)
            if real == full:
                real = path
            elif self.holds(real):
                real = self.relative(real) or real
            else:
                raise OutsideError(full)
            size = status.st_size
            wanted = size + 1 if limit is None else limit
            # Room is made for all that is asked for, and for a high limit that costs more than
            # the rest of this: so ask for what the file has, and a byte to see whether it grew.
            asked = min(wanted, size + 1, _LARGEST_READ)
            data = os.read(fd, asked)
            if len(data) == asked < wanted:
                data = _read_on(fd, data, wanted)
            # A file that grew while it was read has at least what was read of it.
            return data, max(size, len(data)), real
        finally:
            os.close(fd)


def list_opened(directory: int | str, real: str) -> Entries:
    """List a directory that was found to be inside; `real` is where it lies."""
    rest: list[os.DirEntry[str]] = []
    with os.scandir(directory) as scan:
        # Most entries are files, and the kind comes with the name: no call for each. Those
        # that are none go to `rest`; `append` returns None, so one pass does both.
        files = [
            entry.name
            for entry in scan
            if entry.is_file(follow_symlinks=False) or rest.append(entry)  # type: ignore[func-returns-value]
        ]
    directories: list[str] = []
    links: list[str] = []
    others: list[str] = []
    for entry in rest:
        if entry.is_dir(follow_symlinks=False):
            directories.append(entry.name)
        elif entry.is_symlink():
            links.append(entry.name)
        else:
            others.append(entry.name)
    return Entries(real, files, directories, links, others)


def real_path(fd: int, path: str) -> str:
    """Return where an open file lies, links resolved; `path` is what it was opened by."""
    try:
        return _read_descriptor(f"/proc/self/fd/{fd}")
    except OSError:
        # No /proc, as on macOS: resolve the path, and see that it is still the same file.
        real = os.path.realpath(path)
        if not os.path.samestat(os.fstat(fd), os.stat(real, follow_symlinks=False)):
            raise OutsideError(path) from None
        return real


def _read_on(fd: int, start: bytes, wanted: int) -> bytes:
    chunks = [start]
    left = wanted - len(start)
    while left > 0 and (chunk := os.read(fd, min(left, _LARGEST_READ))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _as_prefix(path: str) -> str:
    return path if path.endswith(os.sep) else path + os.sep
