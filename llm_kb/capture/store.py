"""Reads and changes the knowledge store of a repository, safely for concurrent writers."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from llm_kb.capture import emission, entries, notes
from llm_kb.capture.entries import Anchor, Entry, KnowledgeStore
from llm_kb.errors import KbError
from llm_kb.files.git import run_git
from llm_kb.files.repository import Repository, find_repository

PATIENCE = 20.0
"""Seconds of attempts while others change the store."""

T = TypeVar("T")


class UnknownCommitError(KbError):
    """A name that does not refer to a commit of the repository."""

    def __init__(self, name: str) -> None:
        message = f"no commit is called {name!r} in this repository"
        if name == "HEAD":
            message = (
                "the repository has no commit yet; knowledge is recorded with the commit it comes"
                " from, so commit something first"
            )
        super().__init__(message)


class DamagedStoreError(KbError):
    """A note that is not a knowledge store; it is not overwritten."""

    def __init__(self, note: notes.Note, place: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(
            f"the knowledge store {place} cannot be read, and nothing was changed:{listed}\n"
            f"Look at it with: git show {note.blob}\n"
            f"Find the versions before it with: git log -p {note.ref}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store at one moment, and the commit that a new entry would come from."""

    commit: str
    note: notes.Note
    store: KnowledgeStore


def require_repository(directory: Path | None) -> Repository:
    """Return the repository of a directory. Raises KbError if it is in none."""
    if repository := find_repository(directory):
        return repository
    raise KbError(
        f"{str(directory or '.')!r} is not inside a git repository with a work tree; "
        "captured knowledge is kept in one, so change into it or run `git init`"
    )


def load_store(directory: Path) -> KnowledgeStore:
    """Return the store of a repository, which is empty if nothing was captured yet.

    Raises DamagedStoreError if the note is not a store.
    """
    require_repository(directory)
    return parse_note(notes.read_note(directory, notes.KNOWLEDGE_REF))


def parse_note(note: notes.Note, remote: str | None = None) -> KnowledgeStore:
    """Return the store in a note, which is empty without a note.

    Raises DamagedStoreError, which names the `remote` that the note was fetched from.
    """
    if note.data is None:
        return KnowledgeStore()
    place = f"of {remote!r}" if remote else f"under {note.ref}"
    return entries.parse_store(note.data, lambda problems: DamagedStoreError(note, place, problems))


def read_snapshot(directory: Path, commit: str = "HEAD") -> Snapshot:
    """Read the store, and resolve the commit that new entries come from."""
    found = notes.read_ref(directory, commit)
    if found is None:
        raise UnknownCommitError(commit)
    note = notes.read_note(directory, notes.KNOWLEDGE_REF)
    return Snapshot(commit=found, note=note, store=parse_note(note))


def change_store(
    directory: Path,
    decide: Callable[[Snapshot], tuple[T, Sequence[notes.Move]]],
    commit: str = "HEAD",
    patience: float = PATIENCE,
) -> T:
    """Move the refs that `decide` returns with a result, and return the result.

    `decide` is given the store at that moment, again whenever another writer was faster.
    Raises KbError if other writers always are.
    """
    require_repository(directory)
    deadline = time.monotonic() + patience
    pause = 0.005
    while True:
        result, moves = decide(read_snapshot(directory, commit))
        try:
            notes.move_refs(directory, moves)
        except notes.RefMovedError as error:
            if time.monotonic() > deadline:
                raise KbError(
                    f"the notes kept being changed by others; try again. git's message: {error}"
                ) from error
        else:
            return result
        # Jitter, so that two writers do not collide again.
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
        pause = min(pause * 2, 0.5)


def save_store(
    directory: Path,
    snapshot: Snapshot,
    store: KnowledgeStore,
    message: str,
    *,
    merged: str | None = None,
) -> notes.Move:
    """Write a commit with the store, and return the move that publishes it."""
    note = snapshot.note
    texts = {notes.EMPTY_TREES[len(snapshot.commit)]: entries.dump_store(store)}
    new = notes.commit_notes(directory, note.commit, texts, message, merged)
    return note.ref, new, note.commit


def add_to_store(
    directory: Path, entry: Entry, *, commit: str = "HEAD", is_checked: bool = False
) -> emission.Addition:
    """Write an entry to the store unless it already exists; its provenance becomes `commit`.

    With `is_checked`, for entries of models, raises InvalidEntryError if its place does not exist.
    """

    def decide(snapshot: Snapshot) -> tuple[KnowledgeStore, emission.Addition]:
        problem = find_place_problem(directory, snapshot.commit, entry) if is_checked else None
        if problem:
            raise emission.InvalidEntryError([problem])
        addition = emission.add_entry(snapshot.store, entry, snapshot.commit)
        return addition.store, addition

    return _update(directory, f"Add {entry.kind.name}", decide, commit)


def find_place_problem(directory: Path, commit: str, entry: Entry) -> str | None:
    """Return what is wrong with the place of an entry.

    None if there is such a path in a commit or in the work tree.
    """
    place = entries.normalize_place(entry.place or entries.EVERYWHERE)
    if place == entries.EVERYWHERE or _find_objects(directory, [f"{commit}:{place}"]):
        return None
    if os.path.lexists(require_repository(directory).root / place):
        return None
    problem = entries.find_pattern_problem(place) or (
        f"does not exist at {commit[:12]}; give a directory or file that does,"
        " or '*' for everything"
    )
    return f"{entry.kind.place}: {entry.place!r} {problem}"


NOT_ON_BRANCH = "not on this branch"
"""The doubt about an entry whose commit is neither HEAD nor an ancestor of it."""

_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_UPWARD = re.compile(r"[:/]\.\.(/|$)")


def read_doubts(directory: Path, stored: Collection[Entry]) -> dict[Anchor, list[str]]:
    """Return the reasons to doubt entries at HEAD, keyed by their places and commits."""
    anchors = {entry.anchor for entry in stored}
    places = {place: entries.normalize_place(place) for place, _ in anchors if place}
    # A pattern is not a path. A provenance such as `BUG-42` is not the branch of that name.
    paths = {p: f"HEAD:{plain}" for p, plain in places.items() if not set(plain) & set("*?")}
    commits = {c: f"{c}^{{commit}}" for _, c in anchors if c and _COMMIT_ID.fullmatch(c)}
    found = _find_objects(directory, ["HEAD", *paths.values(), *commits.values()])
    if "HEAD" not in found:
        return {}
    ids = {found[name] for name in commits.values() if name in found}
    asked = "".join(f"{id_}\n" for id_ in ids) + "^HEAD\n"
    listed = run_git("rev-list", "--stdin", cwd=directory, stdin=asked.encode()) if ids else b""
    elsewhere = {*listed.decode().split()}

    def describe(place: str | None, commit: str | None) -> Iterator[str]:
        if place in paths and paths[place] not in found:
            yield "place gone"
        if commit in commits and commits[commit] not in found:
            yield "its commit is not in this clone"
        elif commit in commits and found[commits[commit]] in elsewhere:
            yield NOT_ON_BRANCH

    return {anchor: [*describe(*anchor)] for anchor in anchors}


def _find_objects(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of those objects that exist, keyed by their names."""
    # The names go through a pipe, one on a line, since there may be thousands. At `..` git ends.
    asked = [name for name in names if name.isprintable() and not _UPWARD.search(name)]
    stdin = "".join(f"{name}\n" for name in asked).encode(errors="surrogateescape")
    listed = run_git("cat-file", "--batch-check=%(objectname)", cwd=directory, stdin=stdin)
    answers = zip(asked, listed.decode(errors="replace").splitlines(), strict=True)
    return {name: id_ for name, id_ in answers if " " not in id_}


def edit_in_store(directory: Path, id_: str, changes: Mapping[str, object]) -> Entry:
    """Change fields of an entry and return it; raises like `edit_entry`."""
    return _update(directory, f"Edit {id_}", lambda s: emission.edit_entry(s.store, id_, changes))


def keep_in_store(directory: Path, id_: str) -> Entry:
    """Record that a person confirmed an entry, and return it; a convention becomes permanent."""
    return _update(directory, f"Keep {id_}", lambda s: emission.keep_entry(s.store, id_, s.commit))


def remove_from_store(directory: Path, id_: str) -> tuple[Entry, ...]:
    """Remove the entries of an id and return them. Raises KbError for an unknown id."""
    return _update(directory, f"Remove {id_}", lambda s: emission.remove_entry(s.store, id_))


def _update(
    directory: Path,
    message: str,
    decide: Callable[[Snapshot], tuple[KnowledgeStore, T]],
    commit: str = "HEAD",
) -> T:
    def change(snapshot: Snapshot) -> tuple[T, Sequence[notes.Move]]:
        store, result = decide(snapshot)
        if store == snapshot.store:
            return result, ()
        return result, [save_store(directory, snapshot, store, message)]

    return change_store(directory, change, commit)
