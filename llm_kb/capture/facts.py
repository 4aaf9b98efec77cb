"""What a repository's history says of its entries: how old, how much has changed since."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from llm_kb.capture.likeness import EVERYWHERE, normalize_place
from llm_kb.capture.listing import MAX_COMMITS, Facts
from llm_kb.capture.tables import Anchor
from llm_kb.capture.trees import TREE, parse_tree
from llm_kb.git import FieldReader, GitError, GitObject, ObjectReader

_COMMITTED = re.compile(rb"^committer .* ([0-9]{1,12}) [+-][0-9]{4}$", re.MULTILINE)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")

_LOG = (
    *("log", "-z", "--name-only", "--no-renames", "--no-relative", "--no-show-signature"),
    # No path is empty, so an empty field can be nothing but the start of a commit.
    *("--format=tformat:%x00%H %ct", f"--max-count={MAX_COMMITS}", "HEAD", "--"),
)

_IN_VAIN = 100
"""How many commits of the log are read on without one of those looked for."""


class _Change(NamedTuple):
    """A commit of the log: what it touched, and when."""

    id: str
    time: int
    paths: list[bytes]


def open_log(directory: Path) -> FieldReader:
    """Start reading which commits touched what, newest first, for `gather_facts`."""
    return FieldReader(*_LOG, cwd=directory)


def gather_facts(
    reader: ObjectReader, log: FieldReader, anchors: Collection[Anchor]
) -> dict[Anchor, Facts]:
    """Return what is known of each place and provenance, reading no more than that takes."""
    changes = _read_changes(log)
    ids = _commit_ids({provenance for _, provenance in anchors})
    seen, times = _find_commits(changes, ids)
    times |= read_commit_times(reader, ids - times.keys())
    named = {place for place, _ in anchors if place}
    places: dict[str | None, str] = {place: normalize_place(place) for place in named}
    existing = find_existing(reader, set(places.values()) - {EVERYWHERE})
    known = [times[origin] for place, origin in anchors if place and origin in times]
    changes = chain(seen, changes)
    touches = _find_touches(changes, places.values(), min(known)) if known else {}
    return {
        (place, provenance): _facts_of(places.get(place), times.get(provenance), existing, touches)
        for place, provenance in anchors
    }


def _facts_of(
    place: str | None,
    at: int | None,
    existing: frozenset[str] | None,
    touches: Mapping[str, Sequence[int]],
) -> Facts:
    if place is None:
        return Facts(recorded_at=at)
    if place != EVERYWHERE and set(place) & set("*?") and place not in (existing or ()):
        return Facts(recorded_at=at)  # somebody's pattern: of no path, so nothing can be said
    changes = touches.get(place, ())
    return Facts(
        recorded_at=at,
        place_exists=None if existing is None else place == EVERYWHERE or place in existing,
        touched=None if at is None else len(changes) - bisect_right(changes, at),
    )


def _commit_ids(names: Iterable[str | None]) -> set[str]:
    """Return the ids; a branch of the name `BUG-42` is not what was meant."""
    return {name for name in names if name and _COMMIT_ID.fullmatch(name)}


def _find_commits(
    changes: Iterator[_Change], wanted: set[str]
) -> tuple[list[_Change], dict[str | None, int]]:
    """Return the changes read while looking for commits, and the times of those found.

    The log has most of them, and it is read for what they touched anyway. What is not
    on this branch may be nowhere: we do not go to the end of the history for it.
    """
    seen: list[_Change] = []
    times: dict[str | None, int] = {}
    in_vain = 0
    while len(times) < len(wanted) and in_vain < _IN_VAIN and (change := next(changes, None)):
        seen.append(change)
        in_vain += 1
        if change.id in wanted:
            times[change.id] = change.time
            in_vain = 0
    return seen, times


def read_commit_times(reader: ObjectReader, ids: Iterable[str]) -> dict[str | None, int]:
    """Return when each commit was committed; what names no commit here is left out."""
    names = sorted(ids)
    commits = reader.read_ids([f"{name}^{{commit}}" for name in names])
    found = zip(names, commits, strict=True)
    return {name: commit_time(commit.data) for name, commit in found if commit}


def commit_time(data: bytes) -> int:
    """Return the time in a commit's `committer` line; 0 for a commit that git did not write."""
    found = _COMMITTED.search(data)
    return int(found[1]) if found else 0


def find_existing(reader: ObjectReader, places: Iterable[str]) -> frozenset[str] | None:
    """Return the paths that HEAD has; None without a commit."""
    root = reader.read("HEAD^{tree}")
    if root is None:
        return None
    # By id, what each tree holds: of what is no tree itself, the id is left out.
    trees: dict[str, Mapping[str, str]] = {"": {}, root.id: _names_of(root)}

    def exists(place: str) -> bool:
        tree = root.id
        for part in place.split("/"):
            if tree not in trees:
                trees[tree] = _names_of(reader.read(tree))
            if part not in trees[tree]:
                return False
            tree = trees[tree][part]
        return True

    return frozenset(filter(exists, places))


def _names_of(tree: GitObject | None) -> Mapping[str, str]:
    try:
        entries = parse_tree(tree.data, len(tree.id) // 2) if tree else ()
    except ValueError:
        return {}  # `git fsck` says more than a listing could
    return {_decode(e.name): e.id.hex() if e.mode == TREE else "" for e in entries}


def _find_touches(
    changes: Iterable[_Change], places: Iterable[str], since: int
) -> dict[str, list[int]]:
    """Return the times of the commits after `since` that touched each place, oldest first."""
    touches: dict[str, list[int]] = {place: [] for place in places}
    for change in changes:
        # Newest first: what follows is older still, but where a clock was wrong.
        if change.time <= since:
            break
        touched = {EVERYWHERE}
        for path in change.paths:
            _add_with_parents(_decode(path), touched)
        for place in touched & touches.keys():
            touches[place].append(change.time)
    for times in touches.values():
        times.sort()
    return touches


def _read_changes(log: FieldReader) -> Iterator[_Change]:
    fields = log.read_fields()
    try:
        next(fields, None)  # the empty field before the first
        for said in fields:
            # What stands between a commit and its paths is a line's end.
            paths = [path.removeprefix(b"\n") for path in takewhile(bool, fields)]
            id_, time = said.split()
            yield _Change(id_.decode(), int(time), paths)
    except GitError:
        return  # no commit yet


def _add_with_parents(path: str, touched: set[str]) -> None:
    while path and path not in touched:
        touched.add(path)
        path = path.rpartition("/")[0]


def _decode(path: bytes) -> str:
    return path.decode(errors="surrogateescape")
