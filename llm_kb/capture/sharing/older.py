"""Reads and imports the stores of git-chronicle, which are in other places."""

from __future__ import annotations

from pathlib import Path

from llm_kb.capture.emission import Addition, add_entry
from llm_kb.capture.entries import KnowledgeStore
from llm_kb.capture.git.notes import (
    ANNOTATIONS_REF,
    CHRONICLE_TARGET,
    KNOWLEDGE_REF,
    Note,
    read_note,
)
from llm_kb.capture.store import Change, Snapshot, change_store, parse_note, require_repository
from llm_kb.git import ObjectReader
from llm_kb.rendering.plain_text import count

OLDER_PLACES = (
    (ANNOTATIONS_REF, CHRONICLE_TARGET),
    (ANNOTATIONS_REF, None),
    (KNOWLEDGE_REF, CHRONICLE_TARGET),
)
"""The ref and the object of each store: beside the annotations, and on the id that
git-chronicle uses for the empty tree. None stands for the empty tree itself."""


def read_older_stores(reader: ObjectReader) -> tuple[tuple[Note, KnowledgeStore], ...]:
    """Return the stores of git-chronicle in a repository, each with the note it is in."""
    notes = [read_note(reader, ref, target) for ref, target in OLDER_PLACES]
    return tuple((note, parse_note(note)) for note in notes if note and note.data is not None)


def import_older(directory: Path) -> tuple[Addition, ...]:
    """Add the entries of those stores to ours, and return the result for each.

    An entry keeps its other fields, and its id if that is free.
    """
    require_repository(directory)
    with ObjectReader(directory) as reader:
        entries = [e for _, store in read_older_stores(reader) for e in store.entries]

    def decide(snapshot: Snapshot) -> Change[tuple[Addition, ...]]:
        store, additions = snapshot.store, []
        for entry in entries:
            is_free = all(other.id != entry.id for other in store.entries)
            id_ = entry.id if is_free else None
            additions.append(add_entry(store, entry.with_fields(id=None), id_))
            store = additions[-1].store
        new = sum(addition.is_new for addition in additions)
        return Change(
            result=tuple(additions),
            store=store if new else None,
            message=f"Import {count(new, 'entry', 'entries')}",
        )

    return change_store(directory, decide)
