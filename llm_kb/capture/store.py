"""Reads and changes the knowledge store of a repository, safely for concurrent writers."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from llm_kb.capture.emission import (
    Addition,
    add_entry,
    edit_entry,
    keep_entry,
    remove_entry,
    with_provenance,
)
from llm_kb.capture.entries import Entry, KnowledgeStore, dump_store, parse_store
from llm_kb.capture.errors import (
    BusyStoreError,
    DamagedStoreError,
    InvalidEntryError,
    NoCommitError,
    NotARepositoryError,
    UnknownCommitError,
)
from llm_kb.capture.history import has_path
from llm_kb.capture.likeness import find_place_problem, normalize_place
from llm_kb.capture.notes import (
    EMPTY_TREES,
    KNOWLEDGE_REF,
    Note,
    RefMovedError,
    Repository,
    commit_notes,
    find_repository,
    move_refs,
    read_note,
)
from llm_kb.git.read import ObjectReader

PATIENCE = 30.0
"""Seconds of attempts while others change the store."""

LOCK_PATIENCE = 3.0
"""Seconds to wait for the same lock of git, which a running git holds only for a moment."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store at one moment, and the commit that a new entry would come from."""

    commit: str
    note: Note
    store: KnowledgeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """A store to be written, and further refs that move together with it.

    With a `store` of None the store stays as it is.
    """

    result: T
    """The value that `change_store` returns."""
    message: str = ""
    store: KnowledgeStore | None = None
    moves: tuple[tuple[str, str, str | None], ...] = ()


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
    with ObjectReader(directory) as reader:
        return parse_note(read_note(reader, KNOWLEDGE_REF))


def parse_note(note: Note | None, remote: str | None = None) -> KnowledgeStore:
    """Return the store in a note, which is empty without a note.

    Raises DamagedStoreError, which names the `remote` that the note was fetched from.
    """
    if note is None or note.data is None:
        return KnowledgeStore()
    return parse_store(
        note.data, lambda problems: DamagedStoreError(note.ref, note.path, problems, remote)
    )


def read_snapshot(directory: Path, commit: str = "HEAD") -> Snapshot:
    """Read the store, and resolve the commit that new entries come from."""
    with ObjectReader(directory) as reader:
        found = reader.read(f"{commit}^{{commit}}")
        if found is None:
            raise NoCommitError(directory) if commit == "HEAD" else UnknownCommitError(commit)
        note = read_note(reader, KNOWLEDGE_REF, EMPTY_TREES[len(found.id)])
    assert note is not None  # noqa: S101 - an object was named
    return Snapshot(commit=found.id, note=note, store=parse_note(note))


def change_store(
    directory: Path, decide: Callable[[Snapshot], Change[T]], commit: str = "HEAD"
) -> T:
    """Write the change that `decide` returns, and return its result.

    `decide` is called again whenever another writer was faster. Raises BusyStoreError if
    other writers always are.
    """
    require_repository(directory)
    deadline = time.monotonic() + PATIENCE
    locked_since: float | None = None
    pause = 0.005
    while True:
        snapshot = read_snapshot(directory, commit)
        change = decide(snapshot)
        try:
            _write(directory, snapshot.note, change)
        except RefMovedError as error:
            now = time.monotonic()
            locked_since = (locked_since or now) if error.is_locked else None
            if now > deadline or now - (locked_since or now) > LOCK_PATIENCE:
                raise BusyStoreError(KNOWLEDGE_REF, str(error)) from error
        else:
            return change.result
        # Jitter, so that two writers do not collide again.
        time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
        pause = min(pause * 2, 0.5)


def _write(directory: Path, note: Note, change: Change[T]) -> None:
    moves = list(change.moves)
    if change.store is not None:
        notes = {note.target: dump_store(change.store)}
        new = commit_notes(directory, note.commit, notes, change.message)
        moves.append((note.ref, new, note.commit))
    if moves:
        move_refs(directory, moves, change.message)


def add_to_store(
    directory: Path,
    entry: Entry,
    *,
    id_: str | None = None,
    commit: str = "HEAD",
    check: Callable[[Snapshot, Addition], None] = lambda _snapshot, _addition: None,
) -> Addition:
    """Write an entry to the store unless it already exists.

    Its provenance becomes `commit`, unless it names another. Nothing is written if `check` raises.
    """

    def decide(snapshot: Snapshot) -> Change[Addition]:
        known = with_provenance(entry, snapshot.commit)
        addition = add_entry(snapshot.store, known, id_)
        check(snapshot, addition)
        store = addition.store if addition.is_new else None
        return Change(result=addition, store=store, message=f"Add {addition.entry.id}")

    return change_store(directory, decide, commit)


def record_entry(directory: Path, entry: Entry, *, commit: str = "HEAD") -> Addition:
    """Record an entry that a model found in a commit, with that commit as its provenance.

    Raises InvalidEntryError if its place is neither in the commit nor, for HEAD, in the
    work tree.
    """

    def check(snapshot: Snapshot, _addition: Addition) -> None:
        place = entry.place
        if place and not has_place(directory, snapshot.commit, place, head=commit == "HEAD"):
            problem = find_place_problem(place, exists=False) or (
                f"does not exist at {snapshot.commit[:12]}; "
                "give a directory or file that does, or '*' for everything"
            )
            raise InvalidEntryError([f"{entry.kind.place}: {place!r} {problem}"])

    return add_to_store(directory, entry, commit=commit, check=check)


def has_place(directory: Path, commit: str, place: str, *, head: bool) -> bool:
    """Tell whether a place is in a commit or, with `head`, in the work tree."""
    return has_path(directory, commit, place) or (
        head and os.path.lexists(require_repository(directory).root / normalize_place(place))
    )


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
    directory: Path, message: str, decide: Callable[[Snapshot], tuple[KnowledgeStore, T]]
) -> T:
    def change(snapshot: Snapshot) -> Change[T]:
        store, result = decide(snapshot)
        is_changed = store != snapshot.store
        return Change(result=result, store=store if is_changed else None, message=message)

    return change_store(directory, change)
