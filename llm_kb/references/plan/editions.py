"""The versions and languages of a site, told from the addresses of its pages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_VERSION = re.compile(
    r"v?\d{1,4}(?:\.\d{1,4})+(?:\.x)?|v\d{1,4}|v?\d{1,4}(?:\.\d{1,4})?\.x"
    r"|latest|stable|current|next|dev|devel|edge|main|master|nightly|unstable"
)
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")
_KINDS = {"version": _VERSION, "language": _LANGUAGE}
_BEST = ("stable", "latest", "current", "en")
_DEPTH = 4
"""Directories of a path that are looked at."""


def find_editions(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the directories that repeat a site in another version or language, with their kind.

    `docs/2.x/` is one where most of its pages are in `docs/` or `docs/1.x/` as well. Of several
    that only repeat one another, the one that is called stable, latest, current or en, or the
    newest, is not among them.
    """
    known = frozenset(re.sub(r"(?:^|(?<=/))index\.html?$", "", path) for path in paths)
    pages: Counter[tuple[str, str, str]] = Counter()
    repeated: Counter[tuple[str, str, str]] = Counter()
    plain: set[tuple[str, str]] = set()
    for (kind, parent, rest), names in _group(known).items():
        places = [(kind, parent, name) for name in names]
        pages.update(places)
        if parent + rest in known:
            plain.add((kind, parent))
        if parent + rest in known or len(names) > 1:
            repeated.update(places)
    groups: dict[tuple[str, str], list[str]] = {}
    for kind, parent, name in sorted(repeated):
        if 2 * repeated[kind, parent, name] > pages[kind, parent, name]:
            groups.setdefault((kind, parent), []).append(name)
    for place in groups.keys() - plain:
        groups[place].remove(max(groups[place], key=_rank))
    return {f"{parent}{name}/": kind for (kind, parent), names in groups.items() for name in names}


def _group(paths: Iterable[str]) -> Mapping[tuple[str, str, str], set[str]]:
    """Return the names of editions, keyed by kind and by what is before and after the name."""
    groups: dict[tuple[str, str, str], set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for level, name in enumerate(parts[:-1][:_DEPTH]):
            parent, rest = "/".join([*parts[:level], ""]), "/".join(parts[level + 1 :])
            for kind, pattern in _KINDS.items():
                if rest and pattern.fullmatch(name):
                    groups.setdefault((kind, parent, rest), set()).add(name)
    return groups


def describe_editions(directories: Mapping[str, str]) -> str:
    """Return a note on the versions and languages that were left out."""
    told = []
    for kind in _KINDS:
        names = {path.split("/")[-2]: path for path, of in directories.items() if of == kind}
        if names:
            listed = sorted(names, key=_rank)
            more = [f"and {len(listed) - 10} more"] if len(listed) > 10 else []
            told.append(f"{kind}s {', '.join([*listed[:10], *more])}")
    first = min(directories)
    return f"left out: {' and '.join(told)}; include (--include '{first}**') takes one"


def _rank(name: str) -> tuple[int, list[int], str]:
    """Return what orders editions, the best one last."""
    place = len(_BEST) - _BEST.index(name) if name in _BEST else 0
    return place, [int(number) for number in re.findall(r"\d+", name)], name
