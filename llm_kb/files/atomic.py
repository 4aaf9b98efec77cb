"""Replace a file whole or not at all, one process at a time."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from llm_kb.errors import KbError

try:
    import fcntl
except ImportError:  # Windows, where the last writer wins
    fcntl = None  # type: ignore[assignment]

LOCK_SECONDS = 10.0


class WriteError(KbError):
    """A file that could not be written; what was there before is still there."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot write {str(path)!r}: {reason}")


def replace_file(path: Path, data: bytes, *, new_mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    A link stays a link: the file it leads to is replaced. Mode and owner of an
    existing file are kept; a new one gets `new_mode`, less the umask. Missing
    directories are made. Raises WriteError.
    """
    target = Path(os.path.realpath(path))
    _make_directory(target.parent)
    try:
        with _sibling(target, data, new_mode) as written:
            written.replace(target)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error


def create_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, whole or not at all.

    Where links cannot be made it is there empty for a moment, never in part.
    Missing directories are made. Raises FileExistsError, WriteError.
    """
    _make_directory(path.parent)
    try:
        with _sibling(path, data, 0o666) as written:
            _link(written, path)
    except FileExistsError:
        raise
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error


@contextmanager
def _sibling(target: Path, data: bytes, new_mode: int) -> Iterator[Path]:
    """Write a temporary file beside the target; what is left of it goes at the end."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix="~")
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _copy_attributes(target, written, new_mode)
        yield written
    finally:
        written.unlink(missing_ok=True)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(directory, error.strerror or str(error)) from error


def _link(written: Path, path: Path) -> None:
    try:
        path.hardlink_to(written)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: two steps, and still no overwriting
        path.open("xb").close()
        try:
            written.replace(path)
        except OSError:
            path.unlink(missing_ok=True)  # ours, and empty
            raise


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other writers of a directory's files out, as long as they ask as well.

    The lock is on the directory itself, so that nothing is left behind, and ends
    with the process. Raises WriteError when another holds it for too long.
    """
    _make_directory(directory)
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise WriteError(directory, error.strerror or str(error)) from error
    try:
        _wait_for_lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WriteError(directory, "another process is writing here; try again") from None
            time.sleep(0.05)
        except OSError:
            return  # a file system without locks
        else:
            return


def _copy_attributes(old: Path, new: Path, new_mode: int) -> None:
    try:
        status = old.stat()
    except FileNotFoundError:
        new.chmod(new_mode & ~_umask())
        return
    new.chmod(stat.S_IMODE(status.st_mode))
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may give a file away; others own it already
            os.chown(new, status.st_uid, status.st_gid)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


try:
    import fcntl
except ImportError:  # Windows, where nobody keeps two writers apart
    fcntl = None  # type: ignore[assignment]


class BusyError(Exception):
    """Somebody else holds a lock."""


@contextmanager
def lock_topic(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file; it stays behind, since deleting it would let two hold it.

    Raises WriteError, and BusyError where it is held and nobody wants to wait.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    try:
        while fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise BusyError from None
                time.sleep(0.05)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(descriptor)
