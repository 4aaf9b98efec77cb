"""The knowledge store of a repository: read it, change it, lose nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from llm_kb.capture.emission import Addition, add_entry, remove_entry, with_provenance
from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.errors import (
    BusyStoreError,
    DamagedStoreError,
    NoCommitError,
    NotARepositoryError,
    UnknownCommitError,
)
from llm_kb.capture.git.notes import (
    ANNOTATIONS_REF,
    CHRONICLE_TARGET,
    EMPTY_TREES,
    KNOWLEDGE_REF,
    Note,
    RefMovedError,
    commit_note,
    empty_tree_of,
    move_refs,
    read_note,
)
from llm_kb.capture.git.repository import Repository, find_repository
from llm_kb.capture.store_format import (
    StoreFormatError,
    StoreTables,
    dump_store,
    make_tables,
    parse_tables,
)
from llm_kb.files.atomic import WriteError, locked
from llm_kb.git import ObjectReader
from llm_kb.rendering.plain_text import count

PATIENCE = 30.0
"""Seconds to go on trying while others change the store."""

_QUEUE_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store at one moment, and the commit of its repository it would be written for."""

    commit: str
    note: Note
    store: KnowledgeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptStore:
    """A store and the bytes it is kept in; None where nothing was captured yet."""

    tables: StoreTables
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A store to be written, and further refs that move with it or not at all.

    A `store` of None leaves the store as it is.
    """

    store: KnowledgeStore | None
    message: str
    moves: tuple[tuple[str, str, str | None], ...] = ()


def require_repository(directory: Path) -> Repository:
    """Return the repository of a directory or raise NotARepositoryError."""
    repository = find_repository(directory)
    if repository is None:
        raise NotARepositoryError(directory)
    return repository


def load_store(directory: Path) -> KnowledgeStore:
    """Return the store of a repository, empty where nothing was captured yet.

    Raises NotARepositoryError, or DamagedStoreError when the note is no store.
    """
    require_repository(directory)
    with ObjectReader(directory) as reader:
        return read_store(reader).tables.to_store()


def read_store(reader: ObjectReader) -> KeptStore:
    """Return the store of a reader's repository, beside the bytes it was read from."""
    # Where it nearly always is, and one question instead of three.
    blob = reader.read(f"{KNOWLEDGE_REF}:{EMPTY_TREES[40]}")
    if blob:
        tables = _parse(blob.data, KNOWLEDGE_REF, EMPTY_TREES[40])
        return KeptStore(tables=tables, data=blob.data)
    note = read_note(reader, KNOWLEDGE_REF)
    if note is None or note.data is None:
        return KeptStore(tables=make_tables(KnowledgeStore()), data=None)
    return KeptStore(tables=_parse(note.data, note.ref, note.target), data=note.data)


def parse_note(note: Note) -> KnowledgeStore:
    """Return the store a note holds; raise DamagedStoreError when it holds none."""
    if note.data is None:
        return KnowledgeStore()
    return _parse(note.data, note.ref, note.target).to_store()


def _parse(data: bytes, ref: str, target: str) -> StoreTables:
    try:
        return parse_tables(data)
    except StoreFormatError as error:
        raise DamagedStoreError(ref, target, error.problems) from error


def read_snapshot(directory: Path, commit: str = "HEAD") -> Snapshot:
    """Read the store and resolve the commit that knowledge is about to come from."""
    with ObjectReader(directory) as reader:
        found = reader.read(f"{commit}^{{commit}}")
        if found is None:
            raise NoCommitError(directory) if commit == "HEAD" else UnknownCommitError(commit)
        note = read_note(reader, KNOWLEDGE_REF, empty_tree_of(found.id))
    assert note is not None  # noqa: S101 - an object was named
    return Snapshot(commit=found.id, note=note, store=parse_note(note))


def change_store(
    directory: Path, decide: Callable[[Snapshot], Change | None], commit: str = "HEAD"
) -> None:
    """Let `decide` change the store, again and again until nobody else did meanwhile.

    `decide` answers None to leave everything as it is. The store is written when
    this returns. Raises BusyStoreError when others never let go.
    """
    repository = require_repository(directory)
    deadline = time.monotonic() + PATIENCE
    pause = 0.005
    with _queue_of_writers(repository.common_dir):
        while True:
            snapshot = read_snapshot(directory, commit)
            change = decide(snapshot)
            if change is None:
                return
            try:
                _write(directory, snapshot.note, change)
                return
            except RefMovedError as error:
                if time.monotonic() > deadline:
                    raise BusyStoreError(KNOWLEDGE_REF, str(error)) from error
            # Jitter, so that those who collided once do not collide again.
            time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
            pause = min(pause * 2, 0.5)


def _write(directory: Path, note: Note, change: Change) -> None:
    moves = list(change.moves)
    if change.store is not None:
        data = dump_store(change.store)
        new = commit_note(directory, note, data, change.message)
        moves.append((note.ref, new, note.commit))
    move_refs(directory, moves, change.message)


def add_to_store(
    directory: Path,
    entry: Entry,
    *,
    id_: str | None = None,
    commit: str = "HEAD",
    provenance: bool = True,
) -> Addition:
    """Record an entry unless it already exists; it is in the store when this returns.

    With `provenance` the entry is given `commit` as the one it comes from.
    """
    done: list[Addition] = []

    def decide(snapshot: Snapshot) -> Change | None:
        known = with_provenance(entry, snapshot.commit) if provenance else entry
        addition = add_entry(snapshot.store, known, id_)
        done.append(addition)
        if not addition.is_new:
            return None
        return Change(store=addition.store, message=f"Add {addition.entry.id}")

    change_store(directory, decide, commit)
    return done[-1]


def remove_from_store(directory: Path, id_: str) -> tuple[Entry, ...]:
    """Remove the entries of an id and return them; raise UnknownEntryError without one."""
    done: list[tuple[Entry, ...]] = []

    def decide(snapshot: Snapshot) -> Change:
        store, removed = remove_entry(snapshot.store, id_)
        done.append(removed)
        return Change(store=store, message=f"Remove {id_}")

    change_store(directory, decide)
    return done[-1]


@contextmanager
def _queue_of_writers(common_dir: Path) -> Iterator[None]:
    """Let writers on this machine take turns.

    The ref alone keeps the store right; turns spare ten writers nine failures each.
    So where there are no such locks, or one is held too long, we go on without.
    """
    with ExitStack() as stack:
        with suppress(WriteError):  # git says what is wrong with the directory
            stack.enter_context(locked(common_dir / "llm-kb.lock", seconds=_QUEUE_PATIENCE))
        yield


OLDER_PLACES = (
    (ANNOTATIONS_REF, CHRONICLE_TARGET),
    (ANNOTATIONS_REF, None),
    (KNOWLEDGE_REF, CHRONICLE_TARGET),
)
"""Where its releases keep the store, and where they may yet: beside the annotations, and
on an id they take for the empty tree's. None stands for the empty tree itself."""


def load_older_stores(directory: Path) -> tuple[tuple[Note, KnowledgeStore], ...]:
    """Return the stores that were found, each with the note it is in."""
    require_repository(directory)
    with ObjectReader(directory) as reader:
        return read_older_stores(reader)


def read_older_stores(reader: ObjectReader) -> tuple[tuple[Note, KnowledgeStore], ...]:
    """Return those stores of a reader's repository."""
    notes = [read_note(reader, ref, target) for ref, target in OLDER_PLACES]
    return tuple((note, parse_note(note)) for note in notes if note and note.data is not None)


def import_older(directory: Path) -> tuple[Addition, ...]:
    """Add the entries of those stores to ours, and say what became of each.

    An entry keeps its id where that is free, and everything else it holds.
    """
    entries = [e for _, store in load_older_stores(directory) for e in store.entries]
    done: list[tuple[Addition, ...]] = []

    def decide(snapshot: Snapshot) -> Change | None:
        store, additions = snapshot.store, []
        for entry in entries:
            additions.append(_add(store, entry))
            store = additions[-1].store
        done.append(tuple(additions))
        new = sum(addition.is_new for addition in additions)
        message = f"Import {count(new, 'entry', 'entries')}"
        return Change(store=store, message=message) if new else None

    change_store(directory, decide)
    return done[-1]


def _add(store: KnowledgeStore, entry: Entry) -> Addition:
    is_free = all(other.id != entry.id for other in store.entries)
    fields = {name: value for name, value in entry.fields.items() if name != "id"}
    return add_entry(store, entry._replace(fields=fields), entry.id if is_free else None)
