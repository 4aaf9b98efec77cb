"""What a repository's history says of its entries: how old, how much has changed since."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from math import inf
from pathlib import Path
from typing import NamedTuple

from llm_kb.capture.git.trees import TREE, parse_tree
from llm_kb.capture.likeness import EVERYWHERE, normalize_place
from llm_kb.capture.rendering import MAX_COMMITS, Facts
from llm_kb.capture.store_format import Anchor
from llm_kb.git import FieldReader, GitError, GitObject, ObjectReader, run_git

_COMMITTED = re.compile(rb"^committer .* ([0-9]{1,12}) [+-][0-9]{4}$", re.MULTILINE)
_TIME = re.compile(rb"[0-9]{1,12}")
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


class _Origin(NamedTuple):
    """The commit that an entry comes from."""

    id: str
    time: int


class _History(NamedTuple):
    """The commits of the log by their number in it, newest first."""

    numbers: Mapping[str, int]
    """Those that entries come from, by their ids."""
    touches: Mapping[str, Sequence[int]]
    """The commits that touched each place."""
    ages: Sequence[float]
    """Minus the time of each, or of the oldest before it: they rise where a clock was wrong too."""

    def count_since(self, origin: _Origin, place: str) -> int:
        """Return how many commits since the origin touched the place."""
        number = self.numbers.get(origin.id)
        if number is None:
            # It is elsewhere, and its time is all there is to go by. In the log the order says
            # more: a rebase makes many commits in a second.
            number = bisect_left(self.ages, -origin.time)
        return bisect_left(self.touches[place], number)


def open_log(directory: Path) -> FieldReader:
    """Start reading which commits touched what, newest first, for `gather_facts`."""
    return FieldReader(*_LOG, cwd=directory)


def gather_facts(
    reader: ObjectReader, log: FieldReader, anchors: Collection[Anchor]
) -> dict[Anchor, Facts]:
    """Return what is known of each place and provenance, reading no more than that takes."""
    changes = _read_changes(log)
    ids = _commit_ids({provenance for _, provenance in anchors})
    seen, origins = _find_commits(changes, ids)
    origins |= _read_origins(reader, ids - origins.keys())
    named = {place for place, _ in anchors if place}
    places: dict[str | None, str] = {place: normalize_place(place) for place in named}
    existing = find_existing(reader, set(places.values()) - {EVERYWHERE})
    wanted = {origins[name] for place, name in anchors if place and name in origins}
    history = _read_history(_read_on(seen, changes, wanted), places.values(), wanted)
    return {
        (place, name): _facts_of(places.get(place), origins.get(name), existing, history)
        for place, name in anchors
    }


def _facts_of(
    place: str | None,
    origin: _Origin | None,
    existing: frozenset[str] | None,
    history: _History,
) -> Facts:
    at = origin and origin.time
    if place is None:
        return Facts(recorded_at=at)
    if place != EVERYWHERE and set(place) & set("*?") and place not in (existing or ()):
        return Facts(recorded_at=at)  # somebody's pattern: of no path, so nothing can be said
    return Facts(
        recorded_at=at,
        place_exists=None if existing is None else place == EVERYWHERE or place in existing,
        touched=history.count_since(origin, place) if origin else None,
    )


def _commit_ids(names: Iterable[str | None]) -> set[str]:
    """Return the ids; a branch of the name `BUG-42` is not what was meant."""
    return {name for name in names if name and _COMMIT_ID.fullmatch(name)}


def _find_commits(
    changes: Iterator[_Change], wanted: set[str]
) -> tuple[list[_Change], dict[str | None, _Origin]]:
    """Return the changes read while looking for commits, and those commits that were found.

    The log has most of them, and it is read for what they touched anyway. What is not
    on this branch may be nowhere: we do not go to the end of the history for it.
    """
    seen: list[_Change] = []
    found: dict[str | None, _Origin] = {}
    in_vain = 0
    while len(found) < len(wanted) and in_vain < _IN_VAIN and (change := next(changes, None)):
        seen.append(change)
        in_vain += 1
        if change.id in wanted:
            found[change.id] = _Origin(change.id, change.time)
            in_vain = 0
    return seen, found


def _read_origins(reader: ObjectReader, names: Iterable[str]) -> dict[str | None, _Origin]:
    """Return the commits of these ids, in full or not; what names none here is left out."""
    ordered = sorted(names)
    commits = reader.read_ids([f"{name}^{{commit}}" for name in ordered])
    found = zip(ordered, commits, strict=True)
    return {name: _Origin(commit.id, commit_time(commit.data)) for name, commit in found if commit}


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


def _read_on(
    seen: Sequence[_Change], changes: Iterator[_Change], wanted: Collection[_Origin]
) -> Iterator[_Change]:
    """Yield the changes seen, and more until the rest of the wanted are there or elsewhere."""
    yield from seen
    known = {change.id for change in seen}
    missing = {origin.id: origin.time for origin in wanted if origin.id not in known}
    since = min(missing.values(), default=0)
    last = next((change.time for change in reversed(seen) if change.time), since)
    # Newest first: what follows is older still, but where a clock was wrong.
    while missing and last >= since and (change := next(changes, None)):
        yield change
        missing.pop(change.id, None)
        last = change.time or last


def _read_history(
    changes: Iterable[_Change], places: Iterable[str], wanted: Iterable[_Origin]
) -> _History:
    ids = {origin.id for origin in wanted}
    numbers: dict[str, int] = {}
    touches: dict[str, list[int]] = {place: [] for place in places}
    times: list[float] = []
    for number, change in enumerate(changes):
        times.append(change.time or inf)  # without one it is not the oldest for that
        if change.id in ids:
            numbers[change.id] = number
        touched = {EVERYWHERE}
        for path in change.paths:
            _add_with_parents(_decode(path), touched)
        for place in touched & touches.keys():
            touches[place].append(number)
    ages = [-time for time in accumulate(times, min)]
    return _History(numbers=numbers, touches=touches, ages=ages)


def _read_changes(log: FieldReader) -> Iterator[_Change]:
    fields = log.read_fields()
    try:
        next(fields, None)  # the empty field before the first
        for said in fields:
            # What stands between a commit and its paths is a line's end.
            paths = [path.removeprefix(b"\n") for path in takewhile(bool, fields)]
            id_, _, time = said.partition(b" ")
            yield _Change(id_.decode(), _parse_time(time), paths)
    except GitError:
        if _has_commit(log.directory):
            raise


def _parse_time(said: bytes) -> int:
    """Return the time that git says; 0 for that of a commit that git did not write."""
    return int(said) if _TIME.fullmatch(said) else 0


def _has_commit(directory: Path) -> bool:
    try:
        run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=directory)
    except GitError as error:
        return error.code != 1  # what it says of a branch without one
    return True


def _add_with_parents(path: str, touched: set[str]) -> None:
    while path and path not in touched:
        touched.add(path)
        path = path.rpartition("/")[0]


def _decode(path: bytes) -> str:
    return path.decode(errors="surrogateescape")
