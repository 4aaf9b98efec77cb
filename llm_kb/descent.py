"""Listing the directories of a topic depth first, each opened in the one above it."""

from __future__ import annotations

import os

from llm_kb.containment import (
    CAN_OPEN_BELOW,
    DIRECTORY,
    NO_LINKS,
    OPEN,
    Containment,
    Entries,
    list_opened,
)

MOST_OPEN = 64
"""Directories kept open at a time; a process may have few more than a thousand."""

_LONGEST_PATH = 1000
"""Characters of a path in the topic; of longer ones the system says whether it takes them."""

_CAN_DESCEND = CAN_OPEN_BELOW and os.scandir in os.supports_fd


class Descent:
    """Lists what `Containment.list_directory` lists, for less where the parent came before.

    The directories above the last one stay open. One that is opened by its name in a
    directory of the topic, and not through a link, is in the topic too, so the system
    need not be asked where it lies. Anything else, errors included, is left to
    `list_directory`.
    """

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._open: list[tuple[str, int]] = []

    def close(self) -> None:
        """Let go of all directories."""
        while self._open:
            os.close(self._open.pop()[1])

    def list(self, path: str) -> Entries:
        """List a directory, and raise what `Containment.list_directory` raises.

        `path` is relative to the topic, and empty or ends in `/`.
        """
        if not _CAN_DESCEND or len(path) > _LONGEST_PATH:
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
                is_kept = is_own and bool(entries.directories) and len(self._open) < MOST_OPEN
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
