"""Reads the status of entries at HEAD: their commits, and whether their places exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from llm_kb.capture.entries import Anchor, Status
from llm_kb.capture.likeness import EVERYWHERE, find_place_problem, normalize_place
from llm_kb.git.read import ObjectReader
from llm_kb.git.run import GitError, run_git

_COMMITTED = re.compile(rb"^committer .* ([0-9]{1,12}) [+-][0-9]{4}$", re.MULTILINE)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")


def read_statuses(directory: Path, anchors: Collection[Anchor]) -> dict[Anchor, Status]:
    """Return the status of each place and provenance at HEAD."""
    places = {place: normalize_place(place) for place, _ in anchors if place}
    # A provenance such as `BUG-42` is not the branch of that name.
    ids = sorted({name for _, name in anchors if name and _COMMIT_ID.fullmatch(name)})
    with ObjectReader(directory) as reader:
        if reader.read("HEAD") is None:
            return {anchor: Status() for anchor in anchors}
        commits = {id_: found for id_ in ids if (found := reader.read(f"{id_}^{{commit}}"))}
    existing = _find_existing(directory, sorted(set(places.values())))
    ancestors = _find_ancestors(directory, {commit.id for commit in commits.values()})

    def describe(place: str | None, name: str | None) -> Status:
        commit = commits.get(name or "")
        plain = places.get(place or "")
        # The status of a pattern is unknown: it is not a path.
        is_path = plain is not None and (plain in existing or not set(plain) & set("*?"))
        return Status(
            recorded_at=commit_time(commit.data) if commit else None,
            subject=_subject_of(commit.data) if commit else "",
            is_on_branch=commit.id in ancestors if commit else None,
            is_missing=name in ids and commit is None,
            place_exists=plain in existing if is_path else None,
        )

    return {(place, name): describe(place, name) for place, name in anchors}


def commit_time(data: bytes) -> int:
    """Return the time in a commit's `committer` line; 0 if the line is invalid."""
    found = _COMMITTED.search(data.partition(b"\n\n")[0])
    return int(found[1]) if found else 0


def _subject_of(data: bytes) -> str:
    message = data.partition(b"\n\n")[2].strip(b"\n")
    return " ".join(message.partition(b"\n\n")[0].decode(errors="replace").split())


def has_path(directory: Path, commit: str, place: str) -> bool:
    """Tell whether a commit has a file or directory at this place."""
    plain = normalize_place(place)
    command = ("--literal-pathspecs", "ls-tree", "-z", "--name-only", "--full-tree", commit, "--")
    try:
        return plain == EVERYWHERE or bool(run_git(*command, plain, cwd=directory))
    except (GitError, ValueError):
        return False  # not the name of a file


def _find_existing(directory: Path, places: Sequence[str]) -> frozenset[str]:
    """Return the places that are files or directories of HEAD."""
    # The names go through a pipe, one on a line, since there may be thousands.
    asked = [p for p in places if p.isprintable() and not find_place_problem(p, exists=True)]
    stdin = "".join(f"HEAD:{place}\n" for place in asked).encode(errors="surrogateescape")
    listed = run_git("cat-file", "--batch-check=%(objecttype)", cwd=directory, stdin=stdin)
    answers = zip(asked, listed.splitlines(), strict=True)
    kinds = {b"blob", b"tree", b"commit"}
    return frozenset({EVERYWHERE, *(place for place, answer in answers if answer in kinds)})


def _find_ancestors(directory: Path, ids: Collection[str]) -> frozenset[str]:
    """Return the ids of the commits that are HEAD or an ancestor of it."""
    asked = "".join(f"{id_}\n" for id_ in ids) + "^HEAD\n"
    elsewhere = run_git("rev-list", "--stdin", cwd=directory, stdin=asked.encode()) if ids else b""
    return frozenset(ids) - frozenset(elsewhere.decode().split())
