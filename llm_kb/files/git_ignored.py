"""The untracked files below a topic that git ignores, and repositories of their own below it.

Nothing starts git: its rules and its index are read, each bounded. Without a readable
index nothing counts as ignored, since what git tracks it never ignores.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from llm_kb.files.containment import read_regular
from llm_kb.files.repository import Repository, find_repository
from llm_kb.subjects.ignore import IgnoreRules

RULES = ".gitignore"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is read at most."""

    rules_bytes: int = 200_000
    """Of all `.gitignore` files together: rules are compiled, and compared with every path."""
    index_bytes: int = 64_000_000
    entries: int = 500_000
    """Files in the index."""
    names_bytes: int = 64_000_000
    """Of all their names: an entry may repeat the one before it, and add to it."""


def is_repository(directory: str) -> bool:
    """Tell whether a directory is a clone, a submodule or a work tree."""
    place = f"{directory.rstrip(os.sep)}{os.sep}.git"
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.lstat(place).st_mode):
            return read_regular(place, most=7) == b"gitdir:"
        return os.path.lexists(f"{place}{os.sep}HEAD")
    return False


class GitIgnored:
    """What git ignores and does not track below a directory, by paths relative to it.

    `read` are the files that the answers so far depend on, relative as well, and `problems` those
    that were not used, each with the reason.
    """

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self._root = os.fspath(root)
        self._limits = limits or Limits()
        self._left = self._limits.rules_bytes
        self._rules: dict[str, IgnoreRules | None] = {}
        self._places: dict[str, bool] = {}
        self.read: set[str] = set()
        self.problems: list[tuple[str, str]] = []
        found = find_repository(root)
        self._repository = found or Repository(root=root, git_dir=root, common_dir=root)
        below = root.relative_to(self._repository.root).as_posix()
        self._prefix = "" if below == "." else f"{below}/"
        # A topic whose own directory is ignored is meant as it is.
        self._applies = found is not None and not self._ignores_place(self._prefix)

    def leaves_out(self, path: str) -> bool:
        """Tell whether git ignores an untracked file, or a directory without tracked files.

        The path of a directory ends in `/`.
        """
        return self._applies and self._ignores(self._prefix + path) and not self._has(path)

    def _has(self, path: str) -> bool:
        """Tell whether git tracks a file, or a file in a directory; True if that is not known."""
        tracked = self._tracked
        if tracked is None:
            return True
        place = self._prefix + path
        at = bisect_left(tracked, place)
        return at < len(tracked) and (tracked[at] == place or tracked[at].startswith(_end(place)))

    @cached_property
    def _tracked(self) -> Sequence[str] | None:
        index = os.fspath(self._repository.git_dir / "index")
        name = os.path.relpath(index, self._root)
        self.read.add(name)
        tracked = None
        try:
            status = os.stat(index)  # noqa: PTH116 - as text, for speed
            key = (index, status.st_size, status.st_mtime_ns, status.st_ino)
            tracked = _load_index(key, self._limits)
        except FileNotFoundError:
            return ()  # nothing was added yet
        except OSError:
            pass
        if tracked is None:
            self.problems.append((name, "it cannot be read: no file counts as ignored by git"))
        return tracked

    def _ignores(self, path: str) -> bool:
        """Tell whether a path in the work tree is ignored, or a directory above it."""
        above = path[: path.rfind("/", 0, -1) + 1]
        return self._ignores_place(above) or self._matches(path)

    def _ignores_place(self, place: str) -> bool:
        if not place:
            return False
        if place not in self._places:
            self._places[place] = self._ignores(place)
        return self._places[place]

    def _matches(self, path: str) -> bool:
        """Return what the last rule for a path says, those nearest to it first."""
        for above in reversed([*_list_above(path)]):
            rules = self._load_rules(above)
            verdict = rules.decide(path[len(above) :]) if rules else None
            if verdict is not None:
                return verdict
        verdicts = (rules.decide(path) for rules in self._everywhere)
        return next((verdict for verdict in verdicts if verdict is not None), False)

    def _load_rules(self, place: str) -> IgnoreRules | None:
        if place not in self._rules:
            self._rules[place] = self._read_rules(f"{self._repository.root}/{place}{RULES}")
        return self._rules[place]

    @cached_property
    def _everywhere(self) -> Sequence[IgnoreRules]:
        """The rules of the clone, and of the user."""
        of_clone = self._read_rules(f"{self._repository.common_dir}/info/exclude")
        settings = _list_settings_of_user()
        self.read.update(os.path.relpath(each, self._root) for each in settings)
        of_user = self._read_rules(_find_rules_of_user(settings), follow_link=True)
        return [rules for rules in (of_clone, of_user) if rules]

    def _read_rules(self, path: str, *, follow_link: bool = False) -> IgnoreRules | None:
        path = os.path.normpath(path)
        name = os.path.relpath(path, self._root)
        self.read.add(name)
        data = b""
        with suppress(OSError):
            data = read_regular(path, follow_link=follow_link, most=self._left + 1)
        if len(data) > self._left:
            self.problems.append((name, "its rules are left out: all such files are too long"))
            return None
        self._left -= len(data)
        rules = IgnoreRules([(RULES, data.decode("utf-8-sig", "replace").splitlines())])
        self.problems += [(name, problem.reason) for problem in rules.problems[:1]]
        return rules


def _end(place: str) -> str:
    return place if place.endswith("/") else f"{place}/"


def _list_above(path: str) -> Iterator[str]:
    """Yield the directories above a path, the outermost first, each ending in `/`."""
    yield ""
    at = path.find("/")
    while 0 <= at < len(path) - 1:
        yield path[: at + 1]
        at = path.find("/", at + 1)


_EXCLUDES_FILE = re.compile(r"(?im)^[ \t]*excludesfile[ \t]*=[ \t]*\"?([^\"\n#;]+)")


def _list_settings_of_user() -> Sequence[str]:
    """Return the configuration files of git for the user, there or not."""
    home = os.path.expanduser("~")  # noqa: PTH111 - a user may have none
    settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return f"{home}/.gitconfig", f"{settings}/git/config"


def _find_rules_of_user(settings: Sequence[str]) -> str:
    """Return the file with the rules for all repositories of the user, there or not.

    https://git-scm.com/docs/gitignore
    """
    for file in settings:
        with suppress(OSError):
            text = read_regular(file, follow_link=True, most=100_000).decode(errors="replace")
            if found := _EXCLUDES_FILE.search(text):
                return os.path.expanduser(found[1].strip())  # noqa: PTH111 - as above
    return f"{os.path.dirname(settings[-1])}/ignore"  # noqa: PTH120 - as text, like the others


# The index


@lru_cache(maxsize=8)
def _load_index(key: tuple[str, int, int, int], limits: Limits) -> Sequence[str] | None:
    """Return the sorted paths of git's index; None for one that cannot be read."""
    try:
        data = read_regular(key[0], most=limits.index_bytes + 1)
    except OSError:
        return None
    if len(data) > limits.index_bytes:
        return None
    for hash_size in (20, 32):
        with suppress(ValueError, IndexError, struct.error):
            return sorted(map(os.fsdecode, _parse_index(data, hash_size, limits)))
    return None


def _parse_index(data: bytes, hash_size: int, limits: Limits) -> list[bytes]:
    """Return the names in an index of version 2 to 4. Raises what the caller suppresses.

    https://git-scm.com/docs/index-format
    """
    signature, version, number = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in {2, 3, 4} or number > limits.entries:
        raise ValueError
    names: list[bytes] = []
    at, name, left = 12, b"", limits.names_bytes
    for _ in range(number):
        start = at
        at += 40 + hash_size
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & 0x4000 else 2
        kept = 0
        if version == 4:
            kept, at = _read_number(data, at)
        end = data.index(0, at)
        name = (name[: len(name) - kept] if version == 4 else b"") + data[at:end]
        left -= len(name)
        if left < 0 or min(len(name), 0xFFF) != flags & 0xFFF:
            raise ValueError
        names.append(name)
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
    while at + 8 <= len(data) - hash_size:
        kind, size = struct.unpack_from(">4sI", data, at)
        if kind == b"link":  # most entries are in another file
            raise ValueError
        at += 8 + size
    return names


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    value = data[at] & 0x7F
    for after in range(at + 1, at + 8):
        if not data[after - 1] & 0x80:
            return value, after
        value = ((value + 1) << 7) | (data[after] & 0x7F)
    raise ValueError
