"""Walking a topic's directory: which files belong to subjects, and which are skipped.

Real directories come before links to directories, and visible ones before hidden ones,
so that a file that can be reached twice always has the same name: its own, visible path.
Directories that are not a topic are walked by `iter_files`.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

from llm_kb.files.containment import Containment, OutsideError, stamp
from llm_kb.files.git_ignored import Ignored, is_repository
from llm_kb.files.layouts import MAX_LEVELS, SKILL_FILE, is_agent_skill
from llm_kb.subjects.ignore import LEFTOVER, NEVER, IgnoreRules, Include, find_fault
from llm_kb.subjects.topics import Skipped, compose, strip_dots

REPOSITORY = "a repository of its own"
GIT_IGNORED = "ignored by git"
OUTSIDE = "the link leads outside the topic"
"""Reasons why something below a topic is not part of it."""

_NEITHER = "it is neither a file nor a directory"
_LINK_PROBLEMS = {
    errno.ELOOP: "the link leads to itself",
    errno.ENOENT: "the link has no target",
}

Stamps = Mapping[str, "list[int] | None"]
"""The stamps of what a walk has read, by path in the topic; None for what does not exist.

Files come and go with a new stamp of their directory.
"""


class Place(NamedTuple):
    """A directory of the topic; `path` and `slug` are empty or end in `/`.

    Places sort in the order in which they are walked.
    """

    is_hidden: bool = False
    is_linked: bool = False
    path: str = ""
    slug: str = ""

    def enter(self, name: str, *, linked: bool) -> Place:
        """Return the place of a directory in this one."""
        slug = f"{self.slug}{compose(name.lstrip('.'))}/"
        is_hidden = self.is_hidden or name[0] == "."
        return Place(is_hidden, linked or self.is_linked, f"{self.path}{name}/", slug)


class FoundFiles(NamedTuple):
    """The files of one directory that are subjects."""

    place: Place
    real: str | None
    """The directory's path in the topic with links resolved, if it was reached through one."""
    targets: dict[str, str | None]
    """The files by name; for a link, the path in the topic that it leads to, empty if outside."""


class Way:
    """The way to the files that a reference can name, through the directories above them."""

    def __init__(self, reference: str) -> None:
        self._path = strip_dots(compose(reference))
        self._components = self._path.split("/")
        self._stem = self._components[-1].partition(".")[0]
        self.is_possible = "\0" not in reference and all(self._components)

    def enters(self, slug: str) -> bool:
        """Tell whether the directory with a slug is on the way."""
        return f"{self._path}/".startswith(f"{slug}/")

    def keeps(self, name: str) -> bool:
        """Tell whether a file or directory of this name is on the way, or may share its slug."""
        if self._stem in name or name == SKILL_FILE or not name.isascii():
            return True
        return name.lstrip(".") in self._components


class Walk:
    """A walk of a topic; `skipped` collects the entries that are left out, with the reasons."""

    def __init__(
        self,
        containment: Containment,
        ignore: IgnoreRules,
        include: Include,
        ignored: Ignored,
        skipped: Sequence[Skipped] = (),
    ) -> None:
        self._containment = containment
        self._ignore = ignore
        self._include = include
        self._ignored = ignored
        self._has_rules = bool(ignore.rules) or not include.takes_all
        self.absent: Counter[str] = Counter()
        self.skipped = list(skipped)
        self._stamps: dict[str, list[int] | None] = {}
        self._is_complete = True

    def find_files(self, way: Way | None = None) -> Iterator[FoundFiles]:
        """Yield the files of every directory that has some, each directory once.

        With a way, only what it keeps of the directories on it; a directory that links lead to
        is then found under each of its slugs.
        """
        pending = [Place()]
        visited: set[tuple[str, str]] = set()
        while pending:
            place = heappop(pending)
            real, types = self._list_place(place)
            if ".git" in types and place.path and is_repository(real):
                self.absent[REPOSITORY] += 1
                continue
            if (key := (real, place.slug if way else "")) in visited:
                continue
            visited.add(key)
            is_moved = f"{real}/" != self._containment.prefix + place.path
            moved = self._containment.relative(f"{real}/") if is_moved else None
            found = FoundFiles(place, moved, {})
            ignored = self._ignored.list_names(f"{real}/")
            for name, type_ in types.items():
                if way and not way.keeps(name):
                    continue
                child = self._sort_entry(found, name, type_, ignored)
                if child and (way is None or way.enters(child.slug[:-1])):
                    heappush(pending, child)
            if SKILL_FILE in found.targets and is_agent_skill(
                self._containment, path := place.path + SKILL_FILE
            ):
                self._stamps[path] = _read_stamp(self._containment.prefix + path)
                del found.targets[SKILL_FILE]
            if found.targets:
                yield found

    def _list_place(self, place: Place) -> tuple[str, Mapping[str, int]]:
        """Return the real path of a directory and the types of its entries.

        They are empty if it cannot be read, which is recorded.
        """
        try:
            real, self._stamps[place.path], types = self._containment.list_directory(place.path)
        except OutsideError:
            self.skip(place.path, OUTSIDE)
        except FileNotFoundError:
            # A directory that has gone since its parent was listed is not worth a report.
            if not place.path:
                self.skip(place.path, "no such directory")
        except OSError as error:
            self.skip(place.path, describe(error))
        else:
            return real, types
        self._is_complete = False
        return "", {}

    def _sort_entry(
        self, found: FoundFiles, name: str, type_: int, ignored: Collection[str]
    ) -> Place | None:
        """Add an entry to the files of its directory, or return it as a directory to enter.

        `ignored` are the names in that directory that git ignores.
        """
        fault, path, target = find_fault(name), found.place.path + name, None
        is_directory = type_ == stat.S_IFDIR
        if fault == NEVER or (self._has_rules and self._is_ruled_out(path, type_)):
            return None
        if ignored and compose(name) + "/" * is_directory in ignored:
            self.absent[GIT_IGNORED] += 1
            return None
        if fault and fault != LEFTOVER:
            self.skip(path, fault)
            return None
        if fault and not is_directory:
            self.absent[LEFTOVER] += 1
            return None
        if type_ == stat.S_IFLNK:
            type_, target = self._follow_link(path)
        if type_ == stat.S_IFDIR:
            child = found.place.enter(name, linked=target is not None)
            if child.path.count("/") <= MAX_LEVELS:
                return child
            self.skip(child.path, f"it is more than {MAX_LEVELS} directories deep")
        elif type_ == stat.S_IFREG:
            found.targets[name] = target
        elif type_ != stat.S_IFLNK:
            self.skip(path, _NEITHER)
        return None

    def _is_ruled_out(self, path: str, type_: int) -> bool:
        """Tell whether the rules of the topic leave out an entry."""
        is_directory = type_ == stat.S_IFDIR
        if self._ignore.ignores(path + "/" * is_directory):
            return True
        if self._include.takes(path):
            return False
        if type_ == stat.S_IFLNK:
            is_directory = os.path.isdir(self._containment.prefix + path)
        return not is_directory or not self._include.enters(f"{path}/")

    def _follow_link(self, path: str) -> tuple[int, str | None]:
        """Return the type of what a link leads to, and its path in the topic, empty if outside.

        The target is checked like every entry of the topic, so that no link makes an
        ignored file a subject. The type is that of a link if it leads to none.
        """
        try:
            real = os.path.realpath(self._containment.prefix + path, strict=True)
            type_ = stat.S_IFMT(os.stat(real).st_mode)
            inside = self._containment.relative(real) or ""
            if not self._containment.holds(real):
                self.skip(path, OUTSIDE)
            elif type_ not in {stat.S_IFDIR, stat.S_IFREG}:
                self.skip(path, _NEITHER)
            elif not (type_ == stat.S_IFDIR and self._ignore.ignores(f"{path}/")) and not (
                inside and self.leaves_out(inside + "/" * (type_ == stat.S_IFDIR))
            ):
                return type_, inside
        except OSError as error:
            self.skip(path, _LINK_PROBLEMS.get(error.errno or 0) or describe(error))
        # It may lead to a subject later.
        self._stamps[path] = _read_stamp(self._containment.prefix + path)
        return stat.S_IFLNK, None

    def leaves_out(self, path: str) -> bool:
        """Tell whether a path in the topic, or a directory above it, is not part of it.

        A path that ends in `/` is a directory.
        """
        include = self._include
        if not (include.enters(path) if path.endswith("/") else include.takes(path)):
            return True
        if self._ignored.holds(self._containment.prefix + path):
            return True
        names = path.split("/")
        above = ("/".join(names[:count]) for count in range(1, len(names)))
        if any(is_repository(self._containment.prefix + each) for each in above):
            return True
        return (
            any(find_fault(name) == NEVER for name in names)
            or find_fault(names[-1]) == LEFTOVER
            or any(
                self._ignore.ignores("/".join(names[: count + 1]) + "/"[: count < len(names) - 1])
                for count in range(len(names))
            )
        )

    def skip(self, path: str, reason: str) -> None:
        """Record that an entry is left out."""
        path = path.rstrip("/")
        shown = path if path.isprintable() else ascii(path)[1:-1]
        self.skipped.append(Skipped(path=shown, reason=reason))

    def find_stamps(self) -> Stamps | None:
        """Return the stamps of all that was read; None if a change could go unnoticed."""
        # Imported here, since every command imports this module.
        from llm_kb.search.index.documents import tick  # noqa: PLC0415

        now = time.time_ns()
        times = [each[0] for each in self._stamps.values() if each]
        is_settled = all(now - mtime_ns >= tick(mtime_ns) for mtime_ns in times)
        return self._stamps if is_settled and self._is_complete else None


def are_unchanged(root: Path, stamps: Stamps) -> bool:
    """Tell whether what a walk has read of a directory is as it was."""
    prefix = f"{root}{os.sep}"
    return all(_read_stamp(prefix + path) == was for path, was in stamps.items())


def _read_stamp(path: str) -> list[int] | None:
    try:
        return stamp(os.stat(path))
    except OSError:
        return None


def describe(error: OSError) -> str:
    """Return the reason of a system error, without the path it names."""
    return (error.strerror or str(error)).lower()


def iter_files(
    root: Path, enters: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, os.DirEntry[str] | OSError]]:
    """Yield path and entry of everything that is not a directory, in no order.

    Paths are relative and `/`-separated; `enters` is given those of directories, which end in
    `/`, and tells whether to enter them. For a directory that cannot be read, the error stands
    in place of the entry; the path of the root is then `./`.
    """
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(f"{root}{os.sep}{below}") as entries:
                found = list(entries)
        except OSError as error:
            yield below or "./", error
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield f"{below}{entry.name}", entry
            elif enters(f"{below}{entry.name}/"):
                pending.append(f"{below}{entry.name}/")
