"""Reads the status of entries at HEAD: their commits, their places, and later changes there.

The result is cached in the git directory until HEAD or the entries change.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from llm_kb.capture.entries import MAX_COMMITS, Anchor, Status
from llm_kb.capture.likeness import EVERYWHERE, normalize_place
from llm_kb.capture.notes import Repository
from llm_kb.files.atomic import WriteError, replace_file
from llm_kb.git.read import ObjectReader
from llm_kb.git.run import GitError, read_git, run_git

_MAX_BYTES = 64_000_000
_SKEW = 30 * 86400
"""Seconds by which the clocks of two committers may differ without affecting the counts."""

_COMMITTED = re.compile(rb"^committer .* ([0-9]{1,12}) [+-][0-9]{4}$", re.MULTILINE)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")


class _Commit(NamedTuple):
    id: str
    time: int
    subject: str


class _History(NamedTuple):
    """The commits before HEAD, numbered from the newest, and the numbers that touch each place."""

    numbers: dict[str, int]
    times: list[int]
    touches: dict[str, list[int]]

    def count_since(self, origin: _Commit, place: str) -> int:
        """Return how many commits since the origin touched the place."""
        touched = self.touches[place]
        if origin.id in self.numbers:
            return bisect_left(touched, self.numbers[origin.id])
        # It is on another branch or too far back, so only its time is known.
        return sum(self.times[number] > origin.time for number in touched)


_CACHE_VERSION = 2


def load_statuses(
    repository: Repository, head: str | None, anchors: Collection[Anchor]
) -> dict[Anchor, Status]:
    """Return the status of each anchor at `head`, from the cache if possible."""
    ordered = sorted(anchors, key=repr)
    key = sha256(repr((_CACHE_VERSION, head, ordered)).encode("utf-8", "replace")).hexdigest()
    path = repository.git_dir / "llm-kb" / "status.json"
    kept = _read_cache(path, key, ordered)
    if kept is not None:
        return kept
    statuses = read_statuses(repository.root, anchors)
    rows = [asdict(statuses[anchor]) for anchor in ordered]
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, json.dumps({"key": key, "statuses": rows}).encode())
    except (OSError, WriteError):
        pass  # a repository that cannot be written to is still read
    return statuses


def _read_cache(path: Path, key: str, anchors: list[Anchor]) -> dict[Anchor, Status] | None:
    try:
        record = json.loads(path.read_bytes())
        if record["key"] != key:
            return None
        rows = zip(anchors, record["statuses"], strict=True)
        return {anchor: Status(**row) for anchor, row in rows}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None  # an invalid cache is replaced


def read_statuses(directory: Path, anchors: Collection[Anchor]) -> dict[Anchor, Status]:
    """Return the status of each place and provenance at HEAD."""
    places = {place: normalize_place(place) for place, _ in anchors if place}
    # A provenance such as `BUG-42` is not the branch of that name.
    ids = {name for _, name in anchors if name and _COMMIT_ID.fullmatch(name)}
    with ObjectReader(directory) as reader:
        has_head = reader.read("HEAD") is not None
        origins = _read_commits(reader, sorted(ids))
    if not has_head and not _has_branch(directory):
        return {anchor: Status() for anchor in anchors}
    paths = _read_paths(directory)
    history = _read_history(directory, set(places.values()), origins.values())
    ancestors = _find_ancestors(directory, origins.values(), history)

    def describe(place: str | None, name: str | None) -> Status:
        origin = origins.get(name or "")
        plain = places.get(place or "")
        # The status of a pattern is unknown: it is not a path.
        is_path = plain is not None and (not set(plain) & set("*?") or plain in paths)
        is_known = is_path or plain == EVERYWHERE
        return Status(
            recorded_at=origin and origin.time,
            subject=origin.subject if origin else "",
            is_on_branch=origin and origin.id in ancestors,
            is_missing=name in ids and origin is None,
            place_exists=(plain == EVERYWHERE or plain in paths) if is_known else None,
            changes=history.count_since(origin, plain) if plain and is_known and origin else None,
        )

    return {(place, name): describe(place, name) for place, name in anchors}


def _has_branch(directory: Path) -> bool:
    """Tell whether HEAD names a commit, as it does from the first commit on."""
    try:
        run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=directory)
    except GitError as error:
        return error.code != 1  # the exit code for a branch without a commit
    return True


def _read_commits(reader: ObjectReader, names: Sequence[str]) -> dict[str, _Commit]:
    """Return the commits of these ids, which may be abbreviated; unknown ones are left out."""
    return {
        name: _Commit(commit.id, commit_time(commit.data), _subject_of(commit.data))
        for name in names
        if (commit := reader.read(f"{name}^{{commit}}"))
    }


def commit_time(data: bytes) -> int:
    """Return the time in a commit's `committer` line; 0 if the line is invalid."""
    found = _COMMITTED.search(data.partition(b"\n\n")[0])
    return int(found[1]) if found else 0


def _subject_of(data: bytes) -> str:
    message = data.partition(b"\n\n")[2].strip(b"\n")
    return " ".join(message.partition(b"\n\n")[0].decode(errors="replace").split())


def _read_paths(directory: Path) -> frozenset[str]:
    """Return every path of HEAD, directories too."""
    command = ("ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", "HEAD")
    listed, _ = read_git(*command, cwd=directory, limit=_MAX_BYTES)
    return frozenset(_decode(path) for path in listed.split(b"\0")[:-1])


def has_path(directory: Path, commit: str, place: str) -> bool:
    """Tell whether a commit has a file or directory at this place."""
    plain = normalize_place(place)
    command = ("--literal-pathspecs", "ls-tree", "-z", "--name-only", "--full-tree", commit, "--")
    try:
        return plain == EVERYWHERE or bool(run_git(*command, plain, cwd=directory))
    except (GitError, ValueError):
        return False  # not the name of a file


def _find_ancestors(
    directory: Path, origins: Iterable[_Commit], history: _History
) -> frozenset[str]:
    """Return the ids of the commits that are HEAD or an ancestor of it."""
    ids = {origin.id for origin in origins}
    unread = sorted(ids - history.numbers.keys())
    if not unread:
        return frozenset(ids)
    # The ids go through a pipe, since there may be thousands.
    asked = "".join(f"{id_}\n" for id_ in unread) + "^HEAD\n"
    elsewhere = run_git("rev-list", "--stdin", cwd=directory, stdin=asked.encode())
    return frozenset(ids - set(elsewhere.decode().split()))


def _read_history(
    directory: Path, places: Collection[str], origins: Collection[_Commit]
) -> _History:
    history = _History({}, [], {place: [] for place in places})
    oldest = min((origin.time for origin in origins if origin.time), default=0)
    log = _read_log(directory, oldest) if origins and places else ()
    for number, (id_, time, paths) in enumerate(log):
        history.numbers[id_] = number
        history.times.append(time)
        touched = {EVERYWHERE}
        for path in paths:
            _add_with_parents(_decode(path), touched)
        for place in touched & history.touches.keys():
            history.touches[place].append(number)
    return history


def _read_log(directory: Path, oldest: int) -> Iterator[tuple[str, int, list[bytes]]]:
    """Yield the id, the time and the paths of each commit since `oldest`, newest first."""
    command = (
        *("log", "-z", "--name-only", "--no-renames", "--no-relative", "--no-show-signature"),
        # No path is empty, so an empty field starts a commit.
        *("--format=tformat:%x00%H %ct", f"--max-count={MAX_COMMITS}"),
        *([f"--since=@{oldest - _SKEW}"] if oldest > _SKEW else []),
        *("HEAD", "--"),
    )
    data, _ = read_git(*command, cwd=directory, limit=_MAX_BYTES)
    for record in data.split(b"\0\0"):
        header, *paths = record.removeprefix(b"\0").rstrip(b"\0").split(b"\0")
        id_, _, time = header.partition(b" ")
        if id_:
            seconds = int(time) if time.isdigit() and len(time) <= 12 else 0
            yield id_.decode(), seconds, [path.removeprefix(b"\n") for path in paths]


def _add_with_parents(path: str, touched: set[str]) -> None:
    while path and path not in touched:
        touched.add(path)
        path = path.rpartition("/")[0]


def _decode(path: bytes) -> str:
    return path.decode(errors="surrogateescape")
