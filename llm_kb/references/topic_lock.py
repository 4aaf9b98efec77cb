"""Who may write a topic: one process at a time, for as long as it lives."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llm_kb.atomic import WriteError

try:
    import fcntl
except ImportError:  # Windows, where nobody keeps two writers apart
    fcntl = None  # type: ignore[assignment]


class BusyError(Exception):
    """Somebody else holds a lock."""


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
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
