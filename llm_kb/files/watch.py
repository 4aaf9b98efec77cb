"""Detects that the files of a directory have not changed, without listing them again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from llm_kb.search.index.documents import tick
from llm_kb.subjects.ignore import RULES_FILE, is_always_ignored


class DirectoryWatch:
    """Compares the times of directories: they change when files come and go.

    `rules` are the settings that also determine which of its files are documents.

    Implements `Watch` of the search.
    """

    def __init__(self, root: Path, rules: str) -> None:
        self._root = str(root)
        self._rules = rules

    def note(self) -> str:
        """Return the times of all directories; empty if they are not reliable, or not yet."""
        places: dict[str, tuple[int, ...]] = {}
        try:
            for place in self._find_places():
                status = os.stat(place)  # noqa: PTH116 - as in the loop over all files
                if time.time_ns() - status.st_mtime_ns < tick(status.st_mtime_ns):
                    return ""
                places[place] = _stamp(status)
        except (OSError, _LinkError):
            return ""
        return json.dumps([self._rules, places])

    def holds(self, note: str, files: Iterable[tuple[str, int, int]]) -> bool:
        """Tell whether a note's state, and path, size and time of the files, are unchanged."""
        rules, places = json.loads(note)
        prefix = f"{self._root}{os.sep}"
        stat = os.stat
        try:
            if rules != self._rules or any(
                _stamp(stat(place)) != tuple(stamp) for place, stamp in places.items()
            ):
                return False
            for path, size, mtime_ns in files:
                status = stat(prefix + path)
                if status.st_size != size or status.st_mtime_ns != mtime_ns:
                    return False
        except OSError:
            return False
        return True

    def _find_places(self) -> Iterator[str]:
        """Yield the directories that can get new files, and the file with the ignore rules."""
        pending = [self._root]
        while pending:
            directory = pending.pop()
            yield directory
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_symlink() and not self._is_inside(entry):
                        raise _LinkError
                    if entry.is_dir() and not is_always_ignored(entry.name):
                        pending.append(entry.path)
        rules = os.path.join(self._root, RULES_FILE)  # noqa: PTH118
        if os.path.lexists(rules):
            yield rules

    def _is_inside(self, link: os.DirEntry[str]) -> bool:
        """Tell whether a link leads to a file of this directory, which has its own time."""
        real = os.path.realpath(link.path)
        return link.is_file() and real.startswith(os.path.realpath(self._root) + os.sep)


class _LinkError(Exception):
    """A link out of the directory, where the times of other directories would matter."""


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino
