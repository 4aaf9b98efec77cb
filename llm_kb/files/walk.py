"""Walking a topic's directory: which files belong to subjects, and which are skipped.

Real directories come before links to directories, and visible ones before hidden ones,
so that a file that can be reached twice always has the same name: its own, visible path.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from llm_kb.files.containment import Containment, Entries, OutsideError
from llm_kb.subjects.ignore import RULES_FILE, IgnoreRules, is_always_ignored
from llm_kb.subjects.names import find_flaw, printable
from llm_kb.subjects.topics import Skipped

Enters: TypeAlias = Callable[[str], bool]
"""Tells whether to enter the directory with this slug."""

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


class Walk:
    """A walk of a topic; `skipped` collects the entries that are left out, with the reasons."""

    def __init__(
        self, containment: Containment, ignore: IgnoreRules, skipped: list[Skipped]
    ) -> None:
        self._containment = containment
        self._ignore = ignore
        self._skipped = skipped
        self.has_linked_directories = False
        """Whether the walk has found a link to a directory."""

    def find_files(
        self,
        enters: Enters | None = None,
        *,
        hidden: bool = True,
        keep: Callable[[str], bool] | None = None,
    ) -> Iterator[FoundFiles]:
        """Yield the files of every directory that has some, each directory once.

        Only directories whose slug `enters` accepts are entered, and hidden files and directories
        only if `hidden`. With `keep`, entries of other names are passed over, and a directory
        that links lead to is found under each of its slugs.
        """
        pending = [Place()]
        visited: set[tuple[str, str]] = set()
        while pending:
            place = heappop(pending)
            entries = self.list_place(place)
            if entries is None or (key := (entries.real, place.slug if keep else "")) in visited:
                continue
            visited.add(key)
            if keep:
                entries = Entries(entries.real, *(list(filter(keep, kind)) for kind in entries[1:]))
            found, places = self.sort_entries(place, entries, hidden=hidden)
            if found.names:
                yield found
            for child in places:
                if enters is not None and not enters(child.slug[:-1]):
                    continue
                if child.path.count("/") > MAX_LEVELS:
                    self._skip(child.path, f"it is more than {MAX_LEVELS} directories deep")
                else:
                    heappush(pending, child)

    def list_place(self, place: Place) -> Entries | None:
        """Return the entries of a directory; None if it cannot be read, which is recorded."""
        try:
            return self._containment.list_directory(place.path)
        except OutsideError:
            self._skip(place.path, _OUTSIDE)
        except FileNotFoundError:
            # A directory that has gone since its parent was listed is not worth a report.
            if not place.path:
                self._skip(place.path, "no such directory")
        except OSError as error:
            self._skip(place.path, describe(error))
        return None

    def sort_entries(
        self, place: Place, entries: Entries, *, hidden: bool = True
    ) -> tuple[FoundFiles, list[Place]]:
        """Return the subjects' files in a directory and the directories to enter."""
        names = [name for name in entries.files if self.admits(place, name, hidden=hidden)]
        places = [
            self.enter(place, name)
            for name in entries.directories
            if self.admits(place, name, "/", hidden=hidden)
        ]
        targets: dict[str, str] = {}
        for name in entries.links:
            real = self.resolve_link(place, name, hidden=hidden)
            if real is None:
                continue
            if os.path.isdir(real):
                self.has_linked_directories = True
                places.append(self.enter(place, name, linked=True))
            else:
                names.append(name)
                targets[name] = self._containment.relative(real) or ""
        for name in entries.others:
            if self.admits(place, name, hidden=hidden):
                self._skip(place.path + name, _NEITHER)
        real = entries.real
        is_moved = real + "/" != self._containment.prefix + place.path
        moved = self._containment.relative(real + "/") if is_moved else None
        return FoundFiles(place, names, moved, targets), places

    def admits(self, place: Place, name: str, suffix: str = "", *, hidden: bool = True) -> bool:
        """Tell whether an entry may be in the topic; `suffix` is `/` for a directory."""
        if (name[0] == "." and not hidden) or is_always_ignored(name):
            return False
        path = place.path + name
        if path == RULES_FILE or self._ignore.ignores(path + suffix):
            return False
        flaw = find_flaw(name)
        if flaw:
            self._skip(path, flaw)
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

    def resolve_link(self, place: Place, name: str, *, hidden: bool = True) -> str | None:
        """Return the real path that a link leads to; None if the link is not allowed.

        The target is checked like every entry of the topic, so that no link makes an
        ignored file a subject.
        """
        if not self.admits(place, name, hidden=hidden):
            return None
        path = place.path + name
        try:
            real = os.path.realpath(self._containment.prefix + path, strict=True)
            mode = os.stat(real).st_mode
        except OSError as error:
            self._skip(path, _LINK_PROBLEMS.get(error.errno or 0) or describe(error))
            return None
        inside = self._containment.relative(real)
        if not self._containment.holds(real):
            self._skip(path, _OUTSIDE)
        elif not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            self._skip(path, _NEITHER)
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

    def _skip(self, path: str, reason: str) -> None:
        self._skipped.append(Skipped(path=printable(path.rstrip("/")), reason=reason))


def describe(error: OSError) -> str:
    """Return the reason of a system error, without the path it names."""
    return (error.strerror or str(error)).lower()


def slugify_component(name: str) -> str:
    """Return the part of a slug that a directory's name becomes."""
    bare = name.lstrip(".")
    return bare if bare.isascii() else unicodedata.normalize("NFC", bare)
