"""`llm kb knowledge review` and `edit`: decide about entries, and change them."""

from __future__ import annotations

from pathlib import Path

import click

from llm_kb.capture import store
from llm_kb.capture.entries import STABILITIES, Entry, find_nearest
from llm_kb.capture.rendering import render_item, render_short
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show
from llm_kb.commands.knowledge import _shared
from llm_kb.errors import KbError
from llm_kb.host import terminal
from llm_kb.rendering.plain_text import visible_line

_LONGEST = 20_000
"""Most characters shown of an entry."""

_KEYS = {"k": "keep", "e": "edit", "r": "reject", "s": "skip", "q": "quit"}


@click.command()
@_shared.scope_option
def review(scope: str | None) -> None:
    """
    Look at entries one at a time, the doubtful ones first

    This shows entries whose place or commit is gone, then those that nobody has reviewed.
    Keep makes a convention permanent; reject removes an entry.

    \b
        llm kb knowledge review
        llm kb knowledge review --scope src/git/
    """
    here = require_cwd()
    entries = _shared.narrow(store.load_store(here), scope).entries
    doubts = store.read_doubts(here, entries)
    waiting = [entry for entry in entries if doubts.get(entry.anchor)]
    waiting += [e for e in entries if not doubts.get(e.anchor) and not e.is_settled]
    if not waiting:
        say("Nothing to review.")
        return
    if not terminal.has_terminal():
        raise click.ClickException(
            f"{len(waiting):,} to review, and no terminal to ask on; `llm kb knowledge list`, "
            "`edit` and `remove` do without"
        )
    menu = ", ".join(f"[{key}]{word[1:]}" for key, word in _KEYS.items()) + "; a letter and Enter"
    for number, entry in enumerate(waiting, 1):
        text = render_item(entry, doubts)
        show(f"\n{number}/{len(waiting)}\n{text[:_LONGEST]}")
        for near in find_nearest(entry, [e for e in entries if e is not entry]):
            show(f"  near: {render_short(near)}")
        key = _ask(here, entry, menu)
        if key == "q":
            return


def _ask(here: Path, entry: Entry, menu: str) -> str:
    """Ask what to do with an entry until it is done, and return the key."""
    while True:
        key: str = click.prompt(menu, type=click.Choice(list(_KEYS)), show_choices=False, err=True)
        try:
            if key == "k":
                say(f"Kept: {render_short(store.keep_in_store(here, entry.id))}")
            elif key == "e":
                say(describe_edit(entry, _edit_fields(here, entry)))
            elif key == "r":
                for removed in store.remove_from_store(here, entry.id):
                    say(f"Removed: {render_short(removed)}")
        except KbError as error:
            say(f"Error: {error}")
        else:
            return key


def _edit_fields(here: Path, entry: Entry) -> Entry:
    """Ask for each field, with its value as the default, and return the changed entry."""
    changes = {}
    for name in entry.kind.settable:
        kind = click.Choice(STABILITIES) if name == "stability" else None
        default = visible_line(entry.text(name))
        typed = click.prompt(name, default=default, type=kind, err=True)
        if typed != default:
            changes[name] = _shared.find_place(typed) if name == entry.kind.place else typed
    return store.edit_in_store(here, entry.id, changes)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=_shared.complete_id)
@_shared.field_options()
def edit(id_: str, **fields: str | None) -> None:
    """
    Change fields of an entry

    The entry keeps its id and the commit it comes from.

    \b
        llm kb knowledge edit conv-3 --stability permanent
        llm kb knowledge edit ap-1 --instead 'a list of arguments'
    """
    here = require_cwd()
    changes = {name: text for name, text in fields.items() if text is not None}
    if not changes:
        raise click.UsageError("nothing to change: give an option such as --rule")
    for name in {"scope", "module"} & changes.keys():
        changes[name] = _shared.find_place(changes[name])
    before = next((entry for entry in store.load_store(here).entries if entry.id == id_), None)
    with _shared.explaining():
        entry = store.edit_in_store(here, id_, changes)
    show(describe_edit(before, entry))


def describe_edit(before: Entry | None, entry: Entry) -> str:
    """Return a line that tells whether an edit changed an entry."""
    return f"{'Nothing changed' if entry == before else 'Changed'}: {render_short(entry)}"
