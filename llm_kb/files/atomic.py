"""Atomic writes of files, and the lock that lets one process write at a time."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.containment import Containment, OutsideError

LOCK_SECONDS = 10.0

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""Errors of file systems that have no locks."""


class WriteError(KbError):
    """A file that could not be written; its old content is still there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {str(path)!r}: {reason}")


class BusyError(WriteError):
    """A lock that another process holds."""


def replace_file(path: Path, data: bytes, *, new_mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    A link stays a link: the file it leads to is replaced. Mode and owner of an
    existing file are kept; a new one gets `new_mode`, less the umask. Missing
    directories are made. Raises WriteError.
    """
    target = Path(os.path.realpath(path))
    written = target.with_name(f".{target.name}.{os.urandom(6).hex()}~")
    make_directory(target.parent)
    with writing(path):
        with suppress(FileNotFoundError):
            new_mode &= target.stat().st_mode  # at no moment can more people read it than before
        _write_new(written, data, new_mode)
        try:
            with suppress(FileNotFoundError):
                status = target.stat()
                written.chmod(stat.S_IMODE(status.st_mode))
                with suppress(OSError):  # only root may give a file away; others own it already
                    os.chown(written, status.st_uid, status.st_gid)
            written.replace(target)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def create_below(root: Path, path: str, data: bytes) -> None:
    """Write a file that must not exist yet below a directory, and never outside of it.

    Every directory on the way is opened and checked to be inside before anything is made in
    it, so that a link swapped in meanwhile changes nothing. `root` must have its links resolved;
    missing directories are made. Raises FileExistsError, OutsideError or WriteError.
    """
    *parents, name = path.split("/")
    containment = Containment(root)
    make_directory(root)
    with writing(root):
        directory, _ = containment.open_directory("")
    try:
        for number, parent in enumerate(parents, start=1):
            place = "/".join(parents[:number])
            with writing(root / place):
                with suppress(FileExistsError):
                    os.mkdir(parent, dir_fd=directory)
                below, _ = containment.open_directory(place)
            os.close(directory)
            directory = below
        with writing(root / path):
            _write_new(name, data, 0o666, directory)
    finally:
        os.close(directory)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn system errors into WriteError; FileExistsError and OutsideError pass unchanged."""
    try:
        yield
    except (FileExistsError, OutsideError):
        raise
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error


def make_directory(directory: Path, *, mode: int = 0o777) -> None:
    """Make a directory unless it is there; raise WriteError, also if a file is in its place."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise WriteError(directory, error.strerror or str(error)) from error


def _write_new(path: str | Path, data: bytes, mode: int, directory: int | None = None) -> None:
    """Write a new file, whose path may be relative to an open directory; remove it on failure."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # the last follows no link
    descriptor = os.open(path, flags, mode, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(path, dir_fd=directory)
        raise


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
