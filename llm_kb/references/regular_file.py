"""Reading regular files, where somebody may have put something else in their place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from llm_kb.containment import NO_LINKS, OPEN


def read_regular(path: Path, *, follow_link: bool = False) -> bytes:
    """Return a file's content; raise OSError for a link, a FIFO or whatever else is no file.

    With `follow_link` it may be a link to a file.
    """
    descriptor = os.open(path, OPEN if follow_link else OPEN | NO_LINKS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)
