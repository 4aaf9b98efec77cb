"""What git ignores, as git itself says, and the repositories of their own below a topic."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from bisect import bisect_left
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from llm_kb.files.containment import read_regular
from llm_kb.files.git import GitError, run_git
from llm_kb.files.repository import find_repository
from llm_kb.subjects.topics import compose

MOST_SECONDS = 2.0
"""How long git may take to say what it ignores, and how long its answer counts."""

_MOST_BYTES = 16_000_000

_COMMAND = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")

_failures: dict[str, str] = {}
"""Why git could not answer, by work tree: it is not asked again in this process."""


def is_repository(directory: str) -> bool:
    """Tell whether a directory is a clone, a submodule or a work tree."""
    place = f"{directory.rstrip(os.sep)}{os.sep}.git"
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.lstat(place).st_mode):
            return read_regular(place, most=7) == b"gitdir:"
        return os.path.lexists(f"{place}{os.sep}HEAD")
    return False


class Ignored:
    """The untracked paths that git ignores in a work tree.

    Of an ignored directory only its own path is there. `problem` is the reason why there are none.
    """

    def __init__(self, root: str = "", paths: Sequence[str] = (), problem: str = "") -> None:
        """`root` ends in `/`, and so do those of the paths in it that are directories'."""
        self.problem = problem
        # Composed, as git has the names on a Mac.
        self._root = compose(root)
        self._paths = sorted(map(compose, paths))
        self._names: dict[str, set[str]] = {}
        for path in self._paths:
            above, name = _split(self._root + path)
            self._names.setdefault(above, set()).add(name)

    def list_names(self, directory: str) -> Collection[str]:
        """Return the names in NFC that are ignored in a directory, which ends in `/`."""
        return self._names.get(compose(directory), ()) if self._names else ()

    def holds(self, path: str) -> bool:
        """Tell whether a path, which ends in `/` for a directory, or one above it is ignored."""
        path = compose(path)
        while self._names and len(path) > len(self._root):
            path, name = _split(path)
            if name in self.list_names(path):
                return True
        return False

    def means(self, directory: str) -> bool:
        """Tell whether a directory is ignored itself, or one above it.

        One of which git names what it ignores in it is not.
        """
        directory = compose(directory)
        while len(directory) > len(self._root):
            above, name = _split(directory)
            if name in self.list_names(above) and len(self._list_below(directory)) == 1:
                return True
            directory = above
        return False

    def make_state(self, directory: str) -> str:
        """Return a text that changes with what is ignored in a directory."""
        paths = "\0".join(self._list_below(directory)).encode(errors="surrogateescape")
        return hashlib.blake2b(paths, digest_size=8).hexdigest()

    def _list_below(self, directory: str) -> Sequence[str]:
        start = compose(directory)[len(self._root) :]
        if not start:
            return self._paths
        first = bisect_left(self._paths, start)
        return self._paths[first : bisect_left(self._paths, f"{start[:-1]}0", first)]


class GitIgnored:
    """What git ignores; it is asked once for each work tree."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[float, Ignored]] = {}

    def find(self, directory: Path) -> Ignored:
        """Return what git ignores in the work tree of a topic.

        A topic whose own directory is ignored is meant as it is.
        """
        found = find_repository(directory)
        if found is None:
            return Ignored()
        root = os.path.join(found.root, "")  # noqa: PTH118 - as text, with a slash at its end
        asked, answer = self._answers.get(root, (0.0, None))
        if answer is None or time.monotonic() - asked > MOST_SECONDS:
            answer = _ask(root)
            self._answers[root] = time.monotonic(), answer
        return Ignored() if answer.means(os.path.join(directory, "")) else answer  # noqa: PTH118


def _ask(root: str) -> Ignored:
    if root not in _failures:
        try:
            answer = run_git(
                *_COMMAND,
                cwd=Path(root),
                timeout=MOST_SECONDS,
                max_output=_MOST_BYTES,
                # Nothing is run that it names, so it may be another user's.
                settings=[("safe.directory", "*")],
                env={"GIT_WORK_TREE": "."},
            )
        except GitError as error:
            _failures[root] = f"git cannot say what it ignores, so nothing counts as that: {error}"
        else:
            return Ignored(root, [*filter(None, os.fsdecode(answer).split("\0"))])
    return Ignored(root, problem=_failures[root])


def _split(path: str) -> tuple[str, str]:
    """Return the directory above a path, with a slash, and the last name, with one if it has."""
    at = path.rfind("/", 0, -1) + 1
    return path[:at], path[at:]
