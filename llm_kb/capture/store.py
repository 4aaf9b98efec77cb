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

from llm_kb.capture.emission import (
    Addition,
    InvalidEntryError,
    add_entry,
    edit_entry,
    keep_entry,
    remove_entry,
)
from llm_kb.capture.entries import (
    EVERYWHERE,
    Anchor,
    Entry,
    KnowledgeStore,
    dump_store,
    find_place_problem,
    normalize_place,
    parse_store,
)
from llm_kb.capture.notes import (
    EMPTY_TREES,
    KNOWLEDGE_REF,
    Move,
    Note,
    RefMovedError,
    Repository,
    commit_notes,
    find_repository,
    move_refs,
    read_note,
    read_ref,
)
from llm_kb.errors import KbError
from llm_kb.files.git import run_git

PATIENCE = 20.0
"""Seconds of attempts while others change the store."""

T = TypeVar("T")


class NotARepositoryError(KbError):
    """A directory that is not in a git repository."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"{str(directory)!r} is not inside a git repository with a work tree; "
            "captured knowledge is kept in one, so change into it or run `git init`"
        )


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

    def __init__(
        self, ref: str, path: str, problems: Sequence[str], remote: str | None = None
    ) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        place = f"under {ref}" if remote is None else f"of {remote!r}"
        super().__init__(
            f"the knowledge store {place} cannot be read, and nothing was changed:{listed}\n"
            f"Look at it with: git show {ref}:{path}\n"
            f"Find the versions before it with: git log -p {ref}"
        )


class BusyStoreError(KbError):
    """A store that other writers kept changing until the time was over."""

    def __init__(self, ref: str, reason: str) -> None:
        super().__init__(
            f"{ref} kept being changed or locked by others; try again. git's message: {reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store at one moment, and the commit that a new entry would come from."""

    commit: str
    note: Note
    store: KnowledgeStore


def require_repository(directory: Path) -> Repository:
    """Return the repository of a directory or raise NotARepositoryError."""
    repository = find_repository(directory)
    if repository is None:
        raise NotARepositoryError(directory)
    return repository


def load_store(directory: Path) -> KnowledgeStore:
    """Return the store of a repository, which is empty if nothing was captured yet.

    Raises NotARepositoryError, or DamagedStoreError if the note is not a store.
    """
    require_repository(directory)
    return parse_note(read_note(directory, KNOWLEDGE_REF))


def parse_note(note: Note, remote: str | None = None) -> KnowledgeStore:
    """Return the store in a note, which is empty without a note.

    Raises DamagedStoreError, which names the `remote` that the note was fetched from.
    """
    if note.data is None:
        return KnowledgeStore()
    return parse_store(
        note.data, lambda problems: DamagedStoreError(note.ref, note.path, problems, remote)
    )


def read_snapshot(directory: Path, commit: str = "HEAD") -> Snapshot:
    """Read the store, and resolve the commit that new entries come from."""
    found = read_ref(directory, commit)
    if found is None:
        raise UnknownCommitError(commit)
    note = read_note(directory, KNOWLEDGE_REF, EMPTY_TREES[len(found)])
    return Snapshot(commit=found, note=note, store=parse_note(note))


def move_with(directory: Path, decide: Callable[[], tuple[T, Sequence[Move]]]) -> T:
    """Move the refs that `decide` returns with a result, and return the result.

    `decide` is called again whenever another writer was faster. Raises BusyStoreError if
    other writers always are.
    """
    deadline = time.monotonic() + PATIENCE
    pause = 0.005
    while True:
        result, moves = decide()
        try:
            if moves:
                move_refs(directory, moves)
        except RefMovedError as error:
            if time.monotonic() > deadline:
                raise BusyStoreError(moves[0][0], str(error)) from error
        else:
            return result
        # Jitter, so that two writers do not collide again.
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
        pause = min(pause * 2, 0.5)


def change_store(
    directory: Path,
    decide: Callable[[Snapshot], tuple[T, Sequence[Move]]],
    commit: str = "HEAD",
) -> T:
    """Do the same with a `decide` that is given the store at that moment."""
    require_repository(directory)
    return move_with(directory, lambda: decide(read_snapshot(directory, commit)))


def save_store(
    directory: Path,
    snapshot: Snapshot,
    store: KnowledgeStore,
    message: str,
    *,
    merged: str | None = None,
) -> Move:
    """Write a commit with the store, and return the move that publishes it."""
    note = snapshot.note
    notes = {note.target: dump_store(store)}
    return note.ref, commit_notes(directory, note.commit, notes, message, merged), note.commit


def add_to_store(
    directory: Path, entry: Entry, *, commit: str = "HEAD", is_checked: bool = False
) -> Addition:
    """Write an entry to the store unless it already exists; its provenance becomes `commit`.

    With `is_checked`, for entries of models, raises InvalidEntryError if its place is neither in
    the commit nor, for HEAD, in the work tree.
    """

    def decide(snapshot: Snapshot) -> tuple[KnowledgeStore, Addition]:
        if is_checked:
            _require_place(directory, snapshot.commit, entry, head=commit == "HEAD")
        addition = add_entry(snapshot.store, entry, snapshot.commit)
        return addition.store, addition

    return _update(directory, f"Add {entry.kind.name}", decide, commit)


def _require_place(directory: Path, commit: str, entry: Entry, *, head: bool) -> None:
    place = entry.place
    if not place or has_place(directory, commit, place, head=head):
        return
    problem = find_place_problem(place, exists=False) or (
        f"does not exist at {commit[:12]}; give a directory or file that does,"
        " or '*' for everything"
    )
    raise InvalidEntryError([f"{entry.kind.place}: {place!r} {problem}"])


def has_place(directory: Path, commit: str, place: str, *, head: bool) -> bool:
    """Tell whether a place is in a commit or, with `head`, in the work tree."""
    plain = normalize_place(place)
    if plain == EVERYWHERE or _find_objects(directory, [f"{commit}:{plain}"]):
        return True
    return head and os.path.lexists(require_repository(directory).root / plain)


NOT_ON_BRANCH = "not on this branch"
"""The doubt about an entry whose commit is neither HEAD nor an ancestor of it."""

_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_UPWARD = re.compile(r"[:/]\.\.?(/|$)")


def read_doubts(directory: Path, entries: Collection[Entry]) -> dict[Anchor, list[str]]:
    """Return the reasons to doubt entries at HEAD, keyed by their places and commits."""
    anchors = {entry.anchor for entry in entries}
    places = {place: normalize_place(place) for place, _ in anchors if place}
    # A pattern is not a path.
    asked = {plain for plain in places.values() if not set(plain) & set("*?")}
    # A provenance such as `BUG-42` is not the branch of that name.
    ids = {name for _, name in anchors if name and _COMMIT_ID.fullmatch(name)}
    names = [*(f"HEAD:{plain}" for plain in asked), *(f"{id_}^{{commit}}" for id_ in ids)]
    found = _find_objects(directory, ["HEAD", *names])
    if "HEAD" not in found:
        return {}
    commits = {id_: found[name] for id_ in ids if (name := f"{id_}^{{commit}}") in found}
    elsewhere = _find_elsewhere(directory, set(commits.values()))

    def describe(place: str | None, name: str | None) -> Iterator[str]:
        plain = places.get(place or "")
        if plain in asked and f"HEAD:{plain}" not in found:
            yield "place gone"
        if commits.get(name or "") in elsewhere:
            yield NOT_ON_BRANCH
        if name in ids and name not in commits:
            yield "its commit is not in this clone"

    return {(place, name): [*describe(place, name)] for place, name in anchors}


def _find_objects(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of those objects that exist, keyed by their names."""
    # The names go through a pipe, one on a line, since there may be thousands. At `..` git ends.
    asked = [name for name in names if name.isprintable() and not _UPWARD.search(name)]
    stdin = "".join(f"{name}\n" for name in asked).encode(errors="surrogateescape")
    listed = run_git("cat-file", "--batch-check=%(objectname)", cwd=directory, stdin=stdin)
    answers = zip(asked, listed.decode(errors="replace").splitlines(), strict=True)
    return {name: id_ for name, id_ in answers if " " not in id_}


def _find_elsewhere(directory: Path, ids: Collection[str]) -> Collection[str]:
    """Return the ids of the commits that are neither HEAD nor an ancestor of it."""
    asked = "".join(f"{id_}\n" for id_ in ids) + "^HEAD\n"
    listed = run_git("rev-list", "--stdin", cwd=directory, stdin=asked.encode()) if ids else b""
    return set(listed.decode().split()) & set(ids)


def edit_in_store(directory: Path, id_: str, changes: Mapping[str, object]) -> Entry:
    """Change fields of an entry and return it; raises like `edit_entry`."""
    return _update(directory, f"Edit {id_}", lambda s: edit_entry(s.store, id_, changes))


def keep_in_store(directory: Path, id_: str) -> Entry:
    """Record that a person confirmed an entry, and return it; a convention becomes permanent."""
    return _update(directory, f"Keep {id_}", lambda s: keep_entry(s.store, id_, s.commit))


def remove_from_store(directory: Path, id_: str) -> tuple[Entry, ...]:
    """Remove the entries of an id and return them. Raises KbError for an unknown id."""
    return _update(directory, f"Remove {id_}", lambda s: remove_entry(s.store, id_))


def _update(
    directory: Path,
    message: str,
    decide: Callable[[Snapshot], tuple[KnowledgeStore, T]],
    commit: str = "HEAD",
) -> T:
    def change(snapshot: Snapshot) -> tuple[T, Sequence[Move]]:
        store, result = decide(snapshot)
        if store == snapshot.store:
            return result, ()
        return result, [save_store(directory, snapshot, store, message)]

    return change_store(directory, change, commit)
