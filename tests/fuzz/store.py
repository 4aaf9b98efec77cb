"""The knowledge store: any bytes give a store that reads the same again, or DamagedStoreError."""

from __future__ import annotations

from functools import partial

from llm_kb.capture.entries import dump_store, parse_store
from llm_kb.capture.notes import Note
from llm_kb.capture.rendering import render_store
from llm_kb.capture.store import DamagedStoreError

refuse = partial(DamagedStoreError, Note(ref="ref"), "under ref")


def fuzz(data: bytes) -> None:
    """Parse the bytes, write them and read them again, and render the entries."""
    try:
        store = parse_store(data, refuse)
    except DamagedStoreError:
        return
    # Not compared itself: JSON may hold NaN, which differs from itself.
    again = parse_store(dump_store(store), refuse)
    assert [entry.anchor for entry in again.entries] == [entry.anchor for entry in store.entries]
    render_store(store, {})
