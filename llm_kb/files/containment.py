"""Opening files and directories of a topic without leaving it.

Only regular files are opened: a FIFO is never waited for. Every file whose path could come from
a stranger is opened here.

The configuration resolves a topic's root once. After a file or directory below it is opened,
and before anything is read, the real path of the open descriptor is looked up. So a link
that is swapped in between the check and the opening changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from llm_kb.errors import KbError, show_place

OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for reading."""

_LARGEST_READ = 1 << 26


def open_regular(path: str | os.PathLike[str], *, follow_link: bool) -> tuple[int, os.stat_result]:
    """Open a file; return its descriptor, which the caller closes, and its status.

    Raises OSError if it cannot be opened or is not a regular file.
    """
    descriptor = os.open(path, OPEN if follow_link else OPEN | os.O_NOFOLLOW)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def read_regular(
    path: str | os.PathLike[str], *, follow_link: bool = False, most: int | None = None
) -> bytes:
    """Return a file's content, at most the first `most` bytes; raise OSError as `open_regular`."""
    descriptor, status = open_regular(path, follow_link=follow_link)
    try:
        return read_open(descriptor, status.st_size, most)
    finally:
        os.close(descriptor)


def read_open(descriptor: int, size: int, most: int | None = None) -> bytes:
    """Return the content of an open file from its position on, at most `most` bytes.

    `size` is its size when it was opened. If the file has grown since, one byte more is
    returned, so that the caller can tell.
    """
    left = size + 1 if most is None else most
    chunks: list[bytes] = []
    while left > 0:
        # Asking for one byte more than the size shows the end without reserving memory.
        chunk = os.read(descriptor, min(left, size + 1, _LARGEST_READ))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


_read_descriptor = os.readlink


def stamp(status: os.stat_result) -> list[int]:
    """Return the times and the inode of a directory, which change when files come and go."""
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


class OutsideError(OSError):
    """A file or directory that lies outside the topic; nothing was read from it."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "it leads outside the topic", path)


class Containment:
    """The directories of a topic: its root, and those that its links may lead to."""

    def __init__(self, root: Path, allowed: Iterable[Path] = ()) -> None:
        # Not resolved again: the path that the configuration checked is the boundary, and a link
        # put in its place since then leads outside.
        self.prefix = _as_prefix(os.fspath(root))
        self._allowed = (self.prefix, *(_as_prefix(os.fspath(path)) for path in allowed))

    def holds(self, real: str) -> bool:
        """Tell whether a path without links is inside the topic or another allowed directory."""
        return _as_prefix(real).startswith(self._allowed)

    def relative(self, real: str) -> str | None:
        """Return a path without links relative to the topic; None if it is outside."""
        if not _as_prefix(real).startswith(self.prefix):
            return None
        return real[len(self.prefix) :].replace(os.sep, "/")

    @cached_property
    def ignores_case(self) -> bool:
        """Whether the disk ignores the case of names."""
        try:
            with os.scandir(self.prefix) as entries:
                entry = next((each for each in entries if each.name.swapcase() != each.name), None)
                if entry is None:
                    return False
                other = os.lstat(self.prefix + entry.name.swapcase())
                return os.path.samestat(entry.stat(follow_symlinks=False), other)
        except OSError:
            return False

    def list_directory(self, path: str) -> tuple[str, list[int], dict[str, int]]:
        """Return the real path of a directory, its stamp, and the types of its entries by name.

        `path` is relative, empty for the root. Types are those of `stat`, 0 for what is neither a
        file, a directory nor a link. Raises OSError; OutsideError if it lies outside.
        """
        descriptor, real = self.open_directory(path)
        try:
            before = stamp(os.fstat(descriptor))
            with os.scandir(descriptor) as scan:
                return real, before, {entry.name: _find_type(entry) for entry in scan}
        finally:
            os.close(descriptor)

    def open_directory(self, path: str) -> tuple[int, str]:
        """Return the descriptor of a directory below the topic, and its path without links."""
        full = self.prefix + path
        fd = os.open(full, OPEN | os.O_DIRECTORY)
        try:
            real = real_path(fd, full)
            if not self.holds(real):
                raise OutsideError(real)
        except OSError:
            os.close(fd)
            raise
        return fd, real

    def read_file(self, path: str, limit: int | None = None) -> tuple[bytes, int, str]:
        """Return a file's first `limit` bytes, its size, and its path with links resolved.

        The path is relative if the file lies in the topic. Raises OSError if it cannot be
        opened, is not a regular file, or lies outside.
        """
        full = self.prefix + path
        fd, status = open_regular(full, follow_link=True)
        try:
            real = real_path(fd, full)
            if real == full:
                real = path
            elif self.holds(real):
                real = self.relative(real) or real
            else:
                raise OutsideError(full)
            data = read_open(fd, status.st_size, limit)
            # A file that grew while it was read has at least as many bytes as were read.
            return data, max(status.st_size, len(data)), real
        finally:
            os.close(fd)


def _find_type(entry: os.DirEntry[str]) -> int:
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFLNK if entry.is_symlink() else 0


def real_path(fd: int, path: str) -> str:
    """Return the path of an open file with links resolved; it was opened as `path`."""
    try:
        return _read_descriptor(f"/proc/self/fd/{fd}")
    except OSError:
        # Without /proc, as on macOS: resolve the path, and check that it is still the same file.
        real = os.path.realpath(path)
        if not os.path.samestat(os.fstat(fd), _stat_without_links(real)):
            raise OutsideError(path) from None
        return real


def _stat_without_links(path: str) -> os.stat_result:
    """Return the status of a file; raise OSError if a component of its path is a link."""
    directory = os.open(os.sep, OPEN | os.O_DIRECTORY)
    try:
        *parents, name = path.strip(os.sep).split(os.sep)
        for parent in parents:
            below = os.open(parent, OPEN | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        return os.stat(name or ".", dir_fd=directory, follow_symlinks=False)
    finally:
        os.close(directory)


def _as_prefix(path: str) -> str:
    return path if path.endswith(os.sep) else path + os.sep


def resolve_links(path: Path) -> Path:
    """Return a path with its links resolved, as far as possible in a loop of links.

    Raises KbError.
    """
    # Not `Path.resolve`, which raises for a loop of links before Python 3.13.
    try:
        return Path(os.path.realpath(path))
    except OSError as error:  # another process swaps a link for a directory just now
        reason = error.strerror or str(error)
        raise KbError(f"{show_place(path)}: its links cannot be resolved: {reason}") from error
