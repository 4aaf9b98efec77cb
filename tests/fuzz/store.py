"""The knowledge store: any bytes give a store that reads the same again, or StoreFormatError."""

from __future__ import annotations

from llm_kb.capture.rendering import View, render_store
from llm_kb.capture.store_format import StoreFormatError, dump_store, parse_store


def fuzz(data: bytes) -> None:
    """Parse the bytes, write them and read them again, and render the entries."""
    try:
        store = parse_store(data)
    except StoreFormatError:
        return
    # Not compared itself: JSON may hold NaN, which differs from itself.
    again = parse_store(dump_store(store))
    assert [entry.anchor for entry in again.entries] == [entry.anchor for entry in store.entries]
    render_store(store, View(statuses={}, now=0))
