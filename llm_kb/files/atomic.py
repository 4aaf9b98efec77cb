"""Atomic writes of files, and the lock that lets one process write at a time.

A workspace may be the clone of a stranger, with links of any kind in it: what is written there
goes through the functions that end in `_below`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.containment import Containment, OutsideError, resolve_links
from llm_kb.texts.decoding import BINARY, explain_conversion

LOCK_SECONDS = 10.0

LEFT_SECONDS = 60
"""How old a hidden file is that no running process writes."""

_BESIDE = re.compile(r"\.[0-9a-f]{12}~")

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""Errors of file systems that have no locks."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES})
"""Errors of those that have no second names of a file."""


class WriteError(KbError):
    """A file that could not be written; its old content is still there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {str(path)!r}: {reason}")


class OutsideWriteError(WriteError):
    """A file that a link leads out of the directory that may be changed; nothing is written."""

    def __init__(self, path: Path, real: str) -> None:
        super().__init__(path, f"it leads to {real!r}, outside the directory that may be changed")


class BusyError(WriteError):
    """A lock that another process holds."""


def find_inside(root: Path, path: str | Path) -> Path:
    """Return the place of a file, relative to the directory above it in which we may write.

    Links are resolved. Raises OutsideWriteError if they, or `..`, lead out of that directory.
    """
    top, real = resolve_links(root), resolve_links(root / path)
    if real == top or not real.is_relative_to(top):
        raise OutsideWriteError(root / path, str(real))
    return real.relative_to(top)


def read_below(root: Path, path: str | Path, most: int = 5_000_000) -> str | None:
    """Return a text below a directory that is to be changed; None if the file does not exist.

    Raises WriteError for a file that is larger, not in UTF-8, or outside.
    """
    place, whole = find_inside(root, path), root / path
    with writing(whole):
        try:
            data, size, _ = Containment(resolve_links(root)).read_file(place.as_posix(), most)
        except FileNotFoundError:
            return None
    if size > len(data):
        raise WriteError(whole, f"it has more than {most:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WriteError(whole, explain_conversion(data) or BINARY) from error


def replace_below(
    root: Path,
    path: str | Path,
    data: bytes,
    *,
    new_mode: int = 0o644,
    check: Callable[[], object] = lambda: None,
) -> None:
    """Write a file below a directory, as a whole, and never outside of it.

    Everything that we write into a directory that others may have filled, such as a clone, is
    written here or by `create_below`. A link to another place below `root` stays a link; one
    that leads out is refused. Mode and owner of an existing file are kept; a new one gets
    `new_mode`, less the umask. Missing directories are made. `check` is called right before the
    file is replaced, and may raise. Raises WriteError.
    """
    place, whole = find_inside(root, path), root / path
    with writing(whole), _opening(resolve_links(root), place.parent) as directory:
        with suppress(FileNotFoundError):
            new_mode &= _stat_file(place.name, directory).st_mode  # never more open than before
        with _written_beside(place.name, data, new_mode, directory) as written:
            with suppress(FileNotFoundError):
                _keep_status(written, _stat_file(place.name, directory), directory)
            check()
            os.replace(written, place.name, src_dir_fd=directory, dst_dir_fd=directory)


@contextmanager
def _written_beside(name: str, data: bytes, mode: int, directory: int) -> Iterator[str]:
    """Write a hidden file beside the one that it becomes in the block, and yield its name.

    Those that killed processes left of the same file are removed.
    """
    for other in os.listdir(directory):
        if other.startswith(f".{name}.") and _BESIDE.fullmatch(other, len(name) + 1):
            with suppress(OSError):
                if time.time() - _stat_file(other, directory).st_mtime > LEFT_SECONDS:
                    os.unlink(other, dir_fd=directory)
    written = f".{name}.{os.urandom(6).hex()}~"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # the last follows no link
    descriptor = os.open(written, flags, mode, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield written
    finally:
        with suppress(FileNotFoundError):  # it has its own name now
            os.unlink(written, dir_fd=directory)


def _stat_file(name: str, directory: int) -> os.stat_result:
    return os.stat(name, dir_fd=directory, follow_symlinks=False)


def _is_there(name: str, directory: int) -> bool:
    with suppress(FileNotFoundError):
        return bool(_stat_file(name, directory))
    return False


def _keep_status(name: str, status: os.stat_result, directory: int) -> None:
    """Give a file the mode and the owner of the one that it replaces."""
    os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=directory)
    with suppress(OSError):  # only root may give a file away; others own it already
        os.chown(name, status.st_uid, status.st_gid, dir_fd=directory)


def replace_file(path: Path, data: bytes, *, new_mode: int = 0o644) -> None:
    """Write a file of the user's own, wherever its links lead; see `replace_below`.

    A configuration file in the home directory is often a link into a directory of dotfiles. The
    link stays, and the file it leads to is replaced.
    """
    target = resolve_links(path)
    make_directory(target.parent)
    replace_below(target.parent, target.name, data, new_mode=new_mode)


def append_below(root: Path, path: str | Path, data: bytes) -> None:
    """Append to a file below a directory, which is made if needed, and never outside of it.

    Raises WriteError.
    """
    place = find_inside(root, path)
    with writing(root / path), _opening(resolve_links(root), place.parent) as directory:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(place.name, flags, 0o666, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def create_below(root: Path, path: str, data: bytes) -> None:
    """Write a file that must not exist yet below a directory, and never outside of it.

    `root` must have its links resolved; missing directories are made. Raises FileExistsError
    or WriteError.
    """
    place = Path(path)
    make_directory(root)
    with (
        writing(root / path),
        _opening(root, place.parent) as directory,
        _written_beside(place.name, data, 0o666, directory) as written,
    ):
        try:
            # Unlike a rename, this fails if the file is there.
            os.link(written, place.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno not in _NO_LINKS or _is_there(place.name, directory):
                raise
            os.rename(written, place.name, src_dir_fd=directory, dst_dir_fd=directory)


def remove_below(root: Path, path: str | Path) -> None:
    """Remove a file below a directory, never outside of it, and what is empty then above it.

    Raises WriteError.
    """
    top, place = resolve_links(root), find_inside(root, path)
    with writing(root / path), _opening(top, place.parent) as directory:
        os.unlink(place.name, dir_fd=directory)
    for emptied in place.parents[:-1]:
        with suppress(OSError), _opening(top, emptied.parent) as directory:  # it is not empty
            os.rmdir(emptied.name, dir_fd=directory)


def make_directory_below(root: Path, path: str | Path) -> None:
    """Make a directory and those above it, up to one that is there. Raises WriteError."""
    place = find_inside(root, path)
    with writing(root / path), _opening(resolve_links(root), place):
        pass


@contextmanager
def _opening(root: Path, place: Path) -> Iterator[int]:
    """Open a directory below a root without links, after making what is missing of it.

    Every directory on the way is opened and checked to be inside before anything is made in
    it, so that a link swapped in meanwhile changes nothing. Raises OSError.
    """
    containment = Containment(root)
    directory, _ = containment.open_directory("")
    try:
        for number, name in enumerate(place.parts, start=1):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=directory)
            try:
                below, _ = containment.open_directory("/".join(place.parts[:number]))
            except NotADirectoryError as error:
                in_the_way = root.joinpath(*place.parts[:number])
                raise WriteError(in_the_way, str(error.strerror)) from error
            os.close(directory)
            directory = below
        yield directory
    finally:
        os.close(directory)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn system errors into WriteError; FileExistsError passes unchanged."""
    try:
        yield
    except FileExistsError:
        raise
    except OutsideError as error:
        raise OutsideWriteError(path, str(error.filename)) from error
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error


def make_directory(directory: Path, *, mode: int = 0o777) -> None:
    """Make a directory unless it is there; raise WriteError, also if a file is in its place."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise WriteError(directory, error.strerror or str(error)) from error


@contextmanager
def locked(path: Path, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold a lock file during the block, so that one process at a time runs it.

    Waits at most `seconds` for the lock; without limit if they are negative. The lock ends
    with the process, and its file is removed. On a file system without locks the block runs
    unlocked. Raises WriteError; BusyError if another process holds the lock for too long.
    """
    # Imported here, since only commands that write need it.
    from filelock import FileLock, Timeout  # noqa: PLC0415

    make_directory(path.parent)
    lock = FileLock(path, timeout=seconds, poll_interval=0.02, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(path.parent, "another process is writing here; try again") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise WriteError(path, error.strerror or str(error)) from error
    try:
        yield
    finally:
        if lock.is_locked:
            # Removed while the lock is held: a waiting process sees that its file is gone, and
            # makes a new one.
            with suppress(OSError):
                path.unlink(missing_ok=True)
            lock.release()
