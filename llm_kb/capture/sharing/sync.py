"""Shares the store with a remote by fetch, merge and push, never by force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from llm_kb.capture.entries import KnowledgeStore
from llm_kb.capture.git.notes import (
    ANNOTATIONS_REF,
    KNOWLEDGE_REF,
    Note,
    commit_note,
    flatten_notes,
    read_note,
)
from llm_kb.capture.sharing.annotations import pull_annotations
from llm_kb.capture.sharing.merging import Merge, merge
from llm_kb.capture.sharing.remotes import (
    SHARED_REFS,
    fetch_ref,
    find_merge_base,
    hide_secrets,
    push_ref,
)
from llm_kb.capture.store import (
    Change,
    Snapshot,
    change_store,
    load_store,
    parse_note,
    require_repository,
)
from llm_kb.capture.store_format import dump_store
from llm_kb.git import ObjectReader


class Outcome(Enum):
    """The outcome of a pull."""

    NOTHING_THERE = "the remote has no knowledge store"
    UP_TO_DATE = "nothing new"
    TAKEN_OVER = "taken over as it is"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The outcome of a pull, and the merge of the entries."""

    outcome: Outcome
    merge: Merge
    annotations: int = 0
    """The number of commits whose annotations are new here or have changed."""


def pull(directory: Path, remote: str) -> Pull:
    """Fetch the remote's store and annotations, and merge them into ours."""
    require_repository(directory)
    pulled = _pull_store(directory, remote)
    return replace(pulled, annotations=pull_annotations(directory, remote))


def _pull_store(directory: Path, remote: str) -> Pull:
    fetched = fetch_ref(directory, remote, KNOWLEDGE_REF)
    if fetched is None:
        return Pull(outcome=Outcome.NOTHING_THERE, merge=Merge(store=KnowledgeStore()))

    def decide(snapshot: Snapshot) -> Change[Pull]:
        ours, new = snapshot.note.commit, fetched
        ancestor = find_merge_base(directory, ours, fetched) if ours else None
        if ancestor == fetched:
            nothing = Merge(store=snapshot.store)
            return Change(result=Pull(outcome=Outcome.UP_TO_DATE, merge=nothing))
        theirs = _store_at(directory, fetched, remote)
        base = _store_at(directory, ancestor, remote) if ancestor else KnowledgeStore()
        pulled = Pull(outcome=Outcome.TAKEN_OVER, merge=merge(base, snapshot.store, theirs))
        if ours and ancestor != ours:
            pulled = replace(pulled, outcome=Outcome.MERGED)
            note = _with_notes_of(directory, snapshot.note, ours, fetched)
            data, message = (
                dump_store(pulled.merge.store),
                f"Merge knowledge of {hide_secrets(remote)}",
            )
            new = commit_note(directory, note, data, message, merged=[fetched])
        moves = ((KNOWLEDGE_REF, new, ours),)
        return Change(result=pulled, message=f"Pull from {hide_secrets(remote)}", moves=moves)

    return change_store(directory, decide)


def push(directory: Path, remote: str) -> tuple[Pull, ...]:
    """Push our store and annotations; return the pulls that this took.

    Raises BusyStoreError if the remote keeps moving.
    """
    load_store(directory)  # a damaged store is not pushed
    pulls: list[Pull] = []
    with ObjectReader(directory) as reader:
        refs = [ref for ref in SHARED_REFS if reader.read(ref) is not None]
    if KNOWLEDGE_REF in refs:
        push_ref(
            directory, remote, KNOWLEDGE_REF, lambda: pulls.append(_pull_store(directory, remote))
        )
    if ANNOTATIONS_REF in refs:
        push_ref(directory, remote, ANNOTATIONS_REF, lambda: pull_annotations(directory, remote))
    return tuple(pulls)


def has_store(directory: Path) -> bool:
    """Tell whether a repository has entries or annotations to push."""
    require_repository(directory)
    with ObjectReader(directory) as reader:
        return any(reader.read(ref) is not None for ref in SHARED_REFS)


def _store_at(directory: Path, commit: str, remote: str) -> KnowledgeStore:
    with ObjectReader(directory) as reader:
        note = read_note(reader, commit)
    assert note is not None  # noqa: S101 - the commit was just fetched
    return parse_note(note, hide_secrets(remote))


def _with_notes_of(directory: Path, note: Note, ours: str, theirs: str) -> Note:
    """Return our note in a tree that holds the other notes of both commits."""
    with ObjectReader(directory) as reader:
        notes = {**flatten_notes(reader, theirs), **flatten_notes(reader, ours)}
    return replace(note, levels=(tuple(notes.values()),))
