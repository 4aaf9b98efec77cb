"""The files that a topic takes, by patterns of gitignore's language without `!`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from llm_kb.subjects.ignore import MOST_RULES, IgnoreRules
from llm_kb.subjects.topics import Skipped

_WILDCARD = re.compile(r"(?<!\\)(?:\\\\)*[*?[]")


class Include:
    """The files that a topic takes: all without patterns; `problems` are patterns left out."""

    def __init__(self, patterns: Sequence[str]) -> None:
        usable = [pattern for pattern in patterns if not pattern.startswith("!")]
        self._rules = IgnoreRules([("include", usable)])
        self._takes_all = not patterns
        self.problems = [
            *self._rules.problems,
            *(
                Skipped(
                    path="include",
                    reason=f"{pattern!r} left out: what a topic leaves out is `ignore`",
                )
                for pattern in patterns
                if pattern.startswith("!")
            ),
        ]
        self._ways = [_list_levels(pattern) for pattern in islice(usable, MOST_RULES)]
        self._names = {
            re.sub(r"\\(.)", r"\1", pattern.removeprefix("/"))
            for pattern in islice(usable, MOST_RULES)
            if not _WILDCARD.search(pattern)
        }
        self._whole: dict[str, bool] = {"": self._takes_all}
        self._open: dict[str, Sequence[Sequence[str | None]]] = {"": self._ways}

    def takes(self, path: str) -> bool:
        """Tell whether a file, or a directory that it is in, is taken."""
        return self._takes_whole(path[: path.rfind("/") + 1]) or self._rules.ignores(path)

    def enters(self, directory: str) -> bool:
        """Tell whether a directory, which ends in `/`, may hold files that are taken."""
        return self._takes_whole(directory) or bool(self._list_open(directory))

    def names(self, path: str) -> bool:
        """Tell whether a pattern is a path written out, so that it is listed though hidden."""
        return path in self._names

    def _list_open(self, directory: str) -> Sequence[Sequence[str | None]]:
        """Return the ways that lead to a directory and go on: of those of the one above it."""
        if directory not in self._open:
            above, _, name = directory[:-1].rpartition("/")
            depth = directory.count("/")
            ways = self._list_open(f"{above}/" if above else "")
            self._open[directory] = [way for way in ways if _leads(way, depth, name)]
        return self._open[directory]

    def _takes_whole(self, directory: str) -> bool:
        """Tell whether all files of a directory are taken, for itself or one above it."""
        if directory not in self._whole:
            above = directory[: directory.rfind("/", 0, -1) + 1]
            self._whole[directory] = self._takes_whole(above) or self._rules.ignores(directory)
        return self._whole[directory]


def _list_levels(pattern: str) -> Sequence[str | None]:
    """Return the names on the way to what a pattern matches, the last one's too.

    None stands for a name with wildcards, `**` for any directories.
    """
    bare = pattern.rstrip(" ").removesuffix("/")
    names = bare.removeprefix("/").split("/") if "/" in bare else ["**"]
    return [
        name if name == "**" else None if _WILDCARD.search(name) else re.sub(r"\\(.)", r"\1", name)
        for name in names
    ]


def _leads(way: Sequence[str | None], depth: int, name: str) -> bool:
    """Tell whether something below a directory may match a pattern that led to the one above."""
    if "**" in way[:depth]:
        return True
    return depth < len(way) and way[depth - 1] in {None, name}
