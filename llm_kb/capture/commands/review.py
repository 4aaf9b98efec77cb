"""Captured entries as they wait for a person in `llm kb review`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from llm_kb.capture import entries, rendering, store
from llm_kb.capture.commands.knowledge import find_place
from llm_kb.capture.rendering import render_short
from llm_kb.hookspecs import Waiting
from llm_kb.texts.safe import visible_line

_LONGEST = 20_000
"""Most characters shown of an entry."""


def list_waiting(here: Path) -> Sequence[Waiting]:
    """Return the entries whose place or commit is gone, then those that nobody has reviewed."""
    kept = store.load_store(here)
    doubts = store.read_doubts(here, kept.entries)
    waiting = [entry for entry in kept.entries if doubts.get(entry.anchor)]
    waiting += [e for e in kept.entries if not doubts.get(e.anchor) and not e.is_settled]
    return [_Entry(here, entry) for entry in waiting]


class _Entry:
    """An entry that waits. Implements `Waiting`."""

    def __init__(self, here: Path, entry: entries.Entry) -> None:
        self._here, self._entry = here, entry
        self.id = entry.id

    def show(self) -> Iterator[str]:
        """Yield the entry with any reason for doubt."""
        doubts = store.read_doubts(self._here, [self._entry])
        yield rendering.render_item(self._entry, doubts)[:_LONGEST]

    def describe(self) -> Mapping[str, object]:
        """Return the entry's fields."""
        entry = self._entry
        return {"id": entry.id, **{name: entry.text(name) for name in entry.kind.settable}}

    def keep(self) -> str:
        """Make a convention permanent."""
        return f"Kept: {render_short(store.keep_in_store(self._here, self.id))}"

    def reject(self) -> str:
        """Remove the entry."""
        (removed,) = store.remove_from_store(self._here, self.id)
        return f"Removed: {render_short(removed)}"

    def edit(self) -> str:
        """Ask for each field, with its value as the default."""
        changes = {}
        for name in self._entry.kind.settable:
            kind = click.Choice(entries.STABILITIES) if name == "stability" else None
            default = visible_line(self._entry.text(name))
            typed = click.prompt(name, default=default, type=kind, err=True)
            if typed != default:
                changes[name] = find_place(typed) if name == self._entry.kind.place else typed
        self._entry = store.edit_in_store(self._here, self.id, changes)
        return ""
