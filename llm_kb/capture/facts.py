"""What a repository's history says of its entries: how old, how much has changed since."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from llm_kb.capture.entries import Entry
from llm_kb.capture.likeness import normalize_place
from llm_kb.capture.listing import MAX_COMMITS, Facts
from llm_kb.git import GitError, ObjectReader, run_git

EVERYWHERE = "*"

_PATHS_AT_ONCE = 500
_COMMITTED = re.compile(rb"^committer .* ([0-9]{1,12}) [+-][0-9]{4}$", re.MULTILINE)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")


def gather_facts(directory: Path, entries: Sequence[Entry]) -> tuple[Facts, ...]:
    """Return the facts of every entry, in their order, with a handful of git processes."""
    times = read_commit_times(directory, (entry.provenance for entry in entries))
    places = {normalize_place(entry.place) for entry in entries if entry.place}
    existing = find_existing(directory, places - {EVERYWHERE})
    known = [times[e.provenance] for e in entries if e.place and e.provenance in times]
    touches = read_touches(directory, places, min(known)) if known else {}
    return tuple(_facts_of(entry, times, existing, touches) for entry in entries)


def _facts_of(
    entry: Entry,
    times: Mapping[str | None, int],
    existing: frozenset[str] | None,
    touches: Mapping[str, Sequence[int]],
) -> Facts:
    at = times.get(entry.provenance)
    if not entry.place:
        return Facts(recorded_at=at)
    place = normalize_place(entry.place)
    if place != EVERYWHERE and set(place) & set("*?") and place not in (existing or ()):
        return Facts(recorded_at=at)  # somebody's pattern: of no path, so nothing can be said
    changes = touches.get(place, ())
    return Facts(
        recorded_at=at,
        place_exists=None if existing is None else place == EVERYWHERE or place in existing,
        touched=None if at is None else len(changes) - bisect_right(changes, at),
    )


def read_commit_times(directory: Path, names: Iterable[str | None]) -> dict[str | None, int]:
    """Return when each commit was committed; what names no commit here is left out.

    Only ids are looked up: a branch of the name `BUG-42` is not what was meant.
    """
    times: dict[str | None, int] = {}
    with ObjectReader(directory) as reader:
        for name in dict.fromkeys(names):
            if name and _COMMIT_ID.fullmatch(name):
                commit = reader.read(f"{name}^{{commit}}")
                if commit:
                    times[name] = commit_time(commit.data)
    return times


def commit_time(data: bytes) -> int:
    """Return the time in a commit's `committer` line; 0 for a commit that git did not write."""
    found = _COMMITTED.search(data)
    return int(found[1]) if found else 0


def find_existing(directory: Path, places: Iterable[str]) -> frozenset[str] | None:
    """Return the paths that HEAD has; None without a commit."""
    wanted = {place for place in places if _is_path(place)}
    found: set[str] = set()
    for level in _apart(wanted):
        for start in range(0, len(level), _PATHS_AT_ONCE):
            some = level[start : start + _PATHS_AT_ONCE]
            command = ("ls-tree", "-z", "--full-tree", "--name-only", "HEAD", "--", *some)
            try:
                listed = run_git("--literal-pathspecs", *command, cwd=directory)
            except GitError:
                return None
            found.update(path.decode(errors="surrogateescape") for path in listed.split(b"\0"))
    return frozenset(found)


def _apart(places: set[str]) -> list[list[str]]:
    """Return the places by how many of the others lie above them: no list has one above another.

    Asked for a directory and for something in it, `git ls-tree` names only the latter.
    """
    levels: dict[int, list[str]] = {}
    for place in sorted(places):
        above = sum(str(parent) in places for parent in PurePosixPath(place).parents)
        levels.setdefault(above, []).append(place)
    return list(levels.values())


def _is_path(place: str) -> bool:
    # git refuses what leaves the repository, and a NUL cannot be passed at all.
    path = PurePosixPath(place)
    return bool(place) and not path.is_absolute() and ".." not in path.parts and "\0" not in place


def read_touches(directory: Path, places: Iterable[str], since: int) -> dict[str, list[int]]:
    """Return the times of the commits that touched each place, oldest first."""
    touches: dict[str, list[int]] = {place: [] for place in places}
    command = (
        *(
            "log",
            "--no-show-signature",
            "-z",
            "--name-only",
            "--no-renames",
            "--format=tformat:%x01%ct",
        ),
        *(f"--max-age={since}", f"--max-count={MAX_COMMITS}", "HEAD", "--"),
    )
    try:
        log = run_git(*command, cwd=directory)
    except GitError:
        return {}
    for commit in log.split(b"\x01")[1:]:
        time, *paths = commit.split(b"\0")
        touched = {EVERYWHERE}
        for path in paths:
            _add_with_parents(path.lstrip(b"\n").decode(errors="surrogateescape"), touched)
        for place in touched & touches.keys():
            touches[place].append(int(time))
    for times in touches.values():
        times.sort()
    return touches


def _add_with_parents(path: str, touched: set[str]) -> None:
    while path and path not in touched:
        touched.add(path)
        path = path.rpartition("/")[0]
