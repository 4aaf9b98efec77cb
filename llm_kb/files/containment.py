"""Opening files and directories of a topic without leaving it.

A topic's root is resolved once, by the configuration. What was opened below it is asked
where it lies, after it was opened: a link swapped in between a look and the opening, at
the root or below, changes nothing, as nothing is read before.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import UnresolvableError
from llm_kb.files.opener import NO_LINKS, OPEN, open_regular, read_open

DIRECTORY = getattr(os, "O_DIRECTORY", 0)
CAN_OPEN_BELOW = bool(NO_LINKS) and os.open in os.supports_dir_fd
"""Whether the system opens what lies in an open directory, and never through a link."""

MAX_OPEN = 64
"""Directories kept open at a time; a process may have few more than a thousand."""

_MAX_PATH = 1000
"""Characters of a path in the topic; of longer ones the system says whether it takes them."""

_FIRST_READ = 1 << 16
"""Bytes asked for first: most files have fewer, so that one read tells their size too."""

_CAN_LIST_OPEN = CAN_OPEN_BELOW and os.scandir in os.supports_fd
_CAN_READ_BELOW = CAN_OPEN_BELOW and hasattr(os, "pread")
_read_descriptor = os.readlink


class OutsideError(OSError):
    """Something that was opened lies outside the topic; nothing was read of it."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "it leads outside the topic", path)


class Entries(NamedTuple):
    """The entries of a directory by kind; `real` is its path with links resolved."""

    real: str
    files: list[str]
    directories: list[str]
    links: list[str]
    others: list[str]


class Containment:
    """A topic's directory and the others its links may lead to, all without links."""

    def __init__(self, root: Path, allowed: Iterable[Path] = ()) -> None:
        # Not resolved here: what the configuration checked is the boundary, and a link put in
        # its place since then leads outside.
        self.root = os.fspath(root)
        self.prefix = _as_prefix(self.root)
        self._allowed = (self.prefix, *(_as_prefix(os.fspath(path)) for path in allowed))

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

    def find_hard_link(self, path: str) -> tuple[int, int] | None:
        """Return device and inode of a file that has another name; None of any other."""
        try:
            status = os.stat(self.prefix + path)
        except OSError:
            return None
        return (status.st_dev, status.st_ino) if status.st_nlink > 1 else None

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
        """Open a directory as `list_directory` does; return it, and its path without links."""
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
        be opened, is not a regular file, or lies outside.
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
            # A file that grew while it was read has at least what was read of it.
            return data, max(status.st_size, len(data)), real
        finally:
            os.close(fd)


def list_opened(directory: int | str, real: str) -> Entries:
    """List a directory that was found to be inside; `real` is its path without links."""
    entries = Entries(real, [], [], [], [])
    with os.scandir(directory) as scan:
        # The kind comes with the name, without a call for each; most entries are files.
        for entry in scan:
            if entry.is_file(follow_symlinks=False):
                entries.files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                entries.directories.append(entry.name)
            elif entry.is_symlink():
                entries.links.append(entry.name)
            else:
                entries.others.append(entry.name)
    return entries


def real_path(fd: int, path: str) -> str:
    """Return the path of an open file, links resolved; `path` is what it was opened by."""
    try:
        return _read_descriptor(f"/proc/self/fd/{fd}")
    except OSError:
        # Without /proc, as on macOS: resolve the path, and see that it is still the same file.
        real = os.path.realpath(path)
        if not os.path.samestat(os.fstat(fd), _stat_without_links(real)):
            raise OutsideError(path) from None
        return real


def _stat_without_links(path: str) -> os.stat_result:
    """Return the status of a file that no link leads to; raise OSError if one does by now."""
    if not CAN_OPEN_BELOW:
        return os.lstat(path)
    directory = os.open(os.sep, OPEN | DIRECTORY)
    try:
        *parents, name = path.strip(os.sep).split(os.sep)
        for parent in parents:
            below = os.open(parent, OPEN | DIRECTORY | NO_LINKS, dir_fd=directory)
            os.close(directory)
            directory = below
        return os.stat(name or ".", dir_fd=directory, follow_symlinks=False)
    finally:
        os.close(directory)


def _as_prefix(path: str) -> str:
    return path if path.endswith(os.sep) else path + os.sep


class DirectoryLister:
    """Lists directories as `Containment.list_directory` does, and faster below the last one.

    The directories above the last one stay open. One that is opened by its name in a
    directory of the topic, and not through a link, is in the topic too, so the system
    need not be asked where it lies. Anything else, errors included, is left to
    `list_directory`.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._open: list[tuple[str, int]] = []

    def close(self) -> None:
        """Close all directories."""
        while self._open:
            os.close(self._open.pop()[1])

    def list(self, path: str) -> Entries:
        """List a directory, and raise what `Containment.list_directory` raises.

        `path` is relative to the topic, and empty or ends in `/`.
        """
        if not _CAN_LIST_OPEN or len(path) > _MAX_PATH:
            return self._containment.list_directory(path)
        start = path.rfind("/", 0, -1) + 1
        while self._open and self._open[-1][0] != path[:start]:
            os.close(self._open.pop()[1])
        try:
            if self._open:
                above = self._open[-1][1]
                fd = os.open(path[start:-1], OPEN | DIRECTORY | NO_LINKS, dir_fd=above)
                real = self._containment.prefix + path[:-1]
                is_own = True
            else:
                fd, real = self._containment.open_directory(path)
                is_own = f"{real}/" == self._containment.prefix + path
            is_kept = False
            try:
                entries = list_opened(fd, real)
                is_kept = is_own and bool(entries.directories) and len(self._open) < MAX_OPEN
            finally:
                if not is_kept:
                    os.close(fd)
        except OSError:
            # It may be that too many are open.
            self.close()
            return self._containment.list_directory(path)
        if is_kept:
            self._open.append((path, fd))
        return entries


class FileReader:
    """Reads files as `Containment.read_file` does, and faster in the directory of the last one.

    The directory of the last file is kept open, and files are opened in it by name
    and never through a link: so they lie where it does. A directory that is moved
    out of the topic meanwhile is read on until one of another directory is read, or
    the reader is closed; keep one for one piece of work. Whatever is not a file of
    this kind, links, long files and all errors included, is left to `read_file`.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._directory: str | None = None
        self._fd = -1

    def close(self) -> None:
        """Close the directory."""
        self._directory = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, path: str, limit: int | None = None) -> tuple[bytes, int, str]:
        """Return what `Containment.read_file` does, and raise what it raises."""
        start = path.rfind("/") + 1
        if path[:start] != self._directory:
            self.close()
            self._directory = path[:start]
            self._fd = self._open_directory(path[:start])
        if self._fd >= 0:
            try:
                fd = os.open(path[start:], OPEN | NO_LINKS, dir_fd=self._fd)
                try:
                    # At an offset, so that nothing is taken from a FIFO or a terminal: these have
                    # none and refuse. A device has nothing or more than this.
                    data = os.pread(fd, _FIRST_READ, 0)
                finally:
                    os.close(fd)
            except OSError:
                self.close()  # it may be that too many are open
                data = b""
            if 0 < len(data) < _FIRST_READ:
                return data if limit is None else data[:limit], len(data), path
        return self._containment.read_file(path, limit)

    def _open_directory(self, path: str) -> int:
        """Open a directory that is in the topic and that no link leads to; -1 for any other."""
        if not _CAN_READ_BELOW:
            return -1
        try:
            fd, real = self._containment.open_directory(path)
        except OSError:
            return -1
        if f"{real}/" == self._containment.prefix + path:
            return fd
        os.close(fd)
        return -1


def resolve_links(path: Path) -> Path:
    """Return a path with its links resolved; of a loop, as much as can be.

    Raises UnresolvableError.
    """
    # Not `Path.resolve`, which raises for a loop of links before Python 3.13.
    try:
        return Path(os.path.realpath(path))
    except OSError as error:  # another process swaps a link for a directory just now
        raise UnresolvableError(str(path), error.strerror or str(error)) from error
