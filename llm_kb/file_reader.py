"""Reading the files of a topic one after another, at little more than the system's own cost."""

from __future__ import annotations

import os

from llm_kb.containment import CAN_OPEN_BELOW, NO_LINKS, OPEN, Containment

_AT_ONCE = 1 << 16
"""Bytes asked for: most files have fewer, so that one read tells their size too."""

_CAN_PIN = CAN_OPEN_BELOW and hasattr(os, "pread")


class FileReader:
    """Reads what `Containment.read_file` reads, asking once a directory where it lies.

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
        """Let go of the directory."""
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
                    data = os.pread(fd, _AT_ONCE, 0)
                finally:
                    os.close(fd)
            except OSError:
                self.close()  # it may be that too many are open
                data = b""
            if 0 < len(data) < _AT_ONCE:
                return data if limit is None else data[:limit], len(data), path
        return self._containment.read_file(path, limit)

    def _open_directory(self, path: str) -> int:
        """Open a directory that is in the topic and that no link leads to; -1 for any other."""
        if not _CAN_PIN:
            return -1
        try:
            fd, real = self._containment.open_directory(path)
        except OSError:
            return -1
        if f"{real}/" == self._containment.prefix + path:
            return fd
        os.close(fd)
        return -1
