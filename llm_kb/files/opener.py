"""Opening regular files, and nothing else: a FIFO is never waited for.

Every file whose path could come from a stranger is opened here.
"""

from __future__ import annotations

import errno
import os
import stat

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
