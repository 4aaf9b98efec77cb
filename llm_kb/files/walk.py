"""Walking a topic's directory: which files belong to subjects, and which are skipped.

Real directories come before links to directories, and visible ones before hidden ones,
so that a file that can be reached twice always has the same name: its own, visible path.
Directories that are not a topic are walked by `iter_files`.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple, Protocol

from llm_kb.files.containment import Containment, Entries, OutsideError, Stamp
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules, is_always_ignored
from llm_kb.subjects.names import find_flaw, printable
from llm_kb.subjects.topics import Skipped

MAX_LEVELS = 100
"""Deepest nesting that is entered; hostile trees are thousands of directories deep."""

_OUTSIDE = "the link leads outside the topic"
_NEITHER = "it is neither a file nor a directory"
_LINK_PROBLEMS = {
    errno.ELOOP: "the link leads to itself",
    errno.ENOENT: "the link has no target",
}


class Place(NamedTuple):
    """A directory of the topic; `path` and `slug` are empty or end in `/`.

    Places sort in the order in which they are walked.
    """

    is_hidden: bool = False
    is_linked: bool = False
    path: str = ""
    slug: str = ""


class FoundFiles(NamedTuple):
    """The files of one directory that are subjects."""

    place: Place
    names: Sequence[str]
    real: str | None
    """The directory's path in the topic with links resolved, if it was reached through one."""
    targets: dict[str, str]
    """For each link among the files, the path in the topic that it leads to."""


class Places:
    """The places that a walk has read, and how they were: a change of files changes one.

    Files come and go with a new time of their directory. `directories` are keyed by their paths
    in the topic, those reached through links too; `links` are those that lead to no subject,
    with the paths they lead to.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.directories: dict[str, Stamp] = {}
        self.links: dict[str, str] = {}
        self.is_complete = True

    def add_link(self, path: str) -> None:
        """Note a link that leads to no subject, or not yet."""
        try:
            self.links[path] = os.path.realpath(self._prefix + path)
        except OSError:  # another process swaps it just now
            self.is_complete = False

    def note(self) -> str:
        """Return the places as text; empty if a change could go unnoticed."""
        # Imported here, since every command imports this module.
        from llm_kb.search.index.documents import tick  # noqa: PLC0415

        now = time.time_ns()
        is_recent = any(
            now - stamp.mtime_ns < tick(stamp.mtime_ns) for stamp in self.directories.values()
        )
        if is_recent or not self.is_complete:
            return ""
        rules = self._prefix + RULES_FILE
        return json.dumps([self.directories, self.links, _read_stamp(rules)])

    def hold(self, note: str) -> bool:
        """Tell whether the places of a note are as they were."""
        directories, links, rules = json.loads(note)
        prefix = self._prefix
        if _read_stamp(prefix + RULES_FILE) != (rules and tuple(rules)):
            return False
        if any(_read_stamp(prefix + path) != tuple(was) for path, was in directories.items()):
            return False
        try:
            return all(os.path.realpath(prefix + path) == was for path, was in links.items())
        except OSError:
            return False


def _read_stamp(path: str) -> Stamp | None:
    try:
        return Stamp.of(os.stat(path))
    except OSError:
        return None


class Way(Protocol):
    """The way to some files of a topic."""

    def enters(self, slug: str) -> bool:
        """Tell whether the directory with a slug is on the way."""

    def keeps(self, name: str) -> bool:
        """Tell whether a file or directory of this name may be on the way."""


class Walk:
    """A walk of a topic; `skipped` collects the entries that are left out, with the reasons."""

    def __init__(
        self, containment: Containment, ignore: IgnoreRules, skipped: Sequence[Skipped] = ()
    ) -> None:
        self._containment = containment
        self._ignore = ignore
        self.skipped = list(skipped)
        self.places = Places(containment.prefix)

    def find_files(self, way: Way | None = None) -> Iterator[FoundFiles]:
        """Yield the files of every directory that has some, each directory once.

        With a way, only what it keeps of the directories on it; a directory that links lead to
        is then found under each of its slugs.
        """
        pending = [Place()]
        visited: set[tuple[str, str]] = set()
        while pending:
            place = heappop(pending)
            entries = self.list_place(place)
            if entries is None or (key := (entries.real, place.slug if way else "")) in visited:
                continue
            visited.add(key)
            if way:
                kept = (list(filter(way.keeps, kind)) for kind in entries[2:])
                entries = Entries(*entries[:2], *kept)
            found, places = self.sort_entries(place, entries)
            if found.names:
                yield found
            for child in places:
                if way and not way.enters(child.slug[:-1]):
                    continue
                if child.path.count("/") > MAX_LEVELS:
                    self.skip(child.path, f"it is more than {MAX_LEVELS} directories deep")
                else:
                    heappush(pending, child)

    def list_place(self, place: Place) -> Entries | None:
        """Return the entries of a directory; None if it cannot be read, which is recorded."""
        try:
            entries = self._containment.list_directory(place.path)
        except OutsideError:
            self.skip(place.path, _OUTSIDE)
        except FileNotFoundError:
            # A directory that has gone since its parent was listed is not worth a report.
            if not place.path:
                self.skip(place.path, "no such directory")
        except OSError as error:
            self.skip(place.path, describe(error))
        else:
            self.places.directories[place.path] = entries.stamp
            return entries
        self.places.is_complete = False
        return None

    def sort_entries(self, place: Place, entries: Entries) -> tuple[FoundFiles, list[Place]]:
        """Return the subjects' files in a directory and the directories to enter."""
        names = [name for name in entries.files if self.admits(place, name)]
        places = [
            self.enter(place, name) for name in entries.directories if self.admits(place, name, "/")
        ]
        targets: dict[str, str] = {}
        for name in entries.links:
            real = self.resolve_link(place, name)
            if real is None:
                self.places.add_link(place.path + name)
            elif os.path.isdir(real):
                places.append(self.enter(place, name, linked=True))
            else:
                names.append(name)
                targets[name] = self._containment.relative(real) or ""
        for name in entries.others:
            if self.admits(place, name):
                self.skip(place.path + name, _NEITHER)
        real = entries.real
        is_moved = real + "/" != self._containment.prefix + place.path
        moved = self._containment.relative(real + "/") if is_moved else None
        return FoundFiles(place, names, moved, targets), places

    def admits(self, place: Place, name: str, suffix: str = "") -> bool:
        """Tell whether an entry may be in the topic; `suffix` is `/` for a directory."""
        if is_always_ignored(name):
            return False
        path = place.path + name
        if path == RULES_FILE or self._ignore.ignores(path + suffix):
            return False
        flaw = find_flaw(name)
        if flaw:
            self.skip(path, flaw)
        return not flaw

    def enter(self, place: Place, name: str, *, linked: bool = False) -> Place:
        """Return the place of a directory in another one."""
        hidden, path, slug = place.is_hidden, f"{place.path}{name}/", place.slug
        if name[0] == "." or not name.isascii():
            hidden = hidden or name[0] == "."
            slug += f"{slugify_component(name)}/"
        else:
            slug = path if slug == place.path else f"{slug}{name}/"
        return Place(hidden, linked or place.is_linked, path, slug)

    def resolve_link(self, place: Place, name: str) -> str | None:
        """Return the real path that a link leads to; None if the link is not allowed.

        The target is checked like every entry of the topic, so that no link makes an
        ignored file a subject.
        """
        if not self.admits(place, name):
            return None
        path = place.path + name
        try:
            real = os.path.realpath(self._containment.prefix + path, strict=True)
            mode = os.stat(real).st_mode
        except OSError as error:
            self.skip(path, _LINK_PROBLEMS.get(error.errno or 0) or describe(error))
            return None
        inside = self._containment.relative(real)
        if not self._containment.holds(real):
            self.skip(path, _OUTSIDE)
        elif not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            self.skip(path, _NEITHER)
        elif stat.S_ISDIR(mode) and not self.admits(place, name, "/"):
            return None
        elif not (inside and self.ignores_any(inside)):
            return real
        return None

    def ignores_any(self, path: str) -> bool:
        """Tell whether a path in the topic, or a directory above it, is ignored."""
        names = path.split("/")
        return any(map(is_always_ignored, names)) or any(
            self._ignore.ignores("/".join(names[: count + 1]) + "/"[: count < len(names) - 1])
            for count in range(len(names))
        )

    def skip(self, path: str, reason: str) -> None:
        """Record that an entry is left out."""
        self.skipped.append(Skipped(path=printable(path.rstrip("/")), reason=reason))


def describe(error: OSError) -> str:
    """Return the reason of a system error, without the path it names."""
    return (error.strerror or str(error)).lower()


def slugify_component(name: str) -> str:
    """Return the part of a slug that a directory's name becomes."""
    bare = name.lstrip(".")
    return bare if bare.isascii() else unicodedata.normalize("NFC", bare)


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
            with os.scandir(root / below) as entries:
                found = list(entries)
        except OSError as error:
            yield below or "./", error
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield f"{below}{entry.name}", entry
            elif enters(f"{below}{entry.name}/"):
                pending.append(f"{below}{entry.name}/")
