"""`llm kb knowledge review` and `edit`: decide about entries, and change them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from llm_kb.capture.entries import STABILITIES, Anchor, Entry, Status
from llm_kb.capture.errors import InvalidEntryError
from llm_kb.capture.history import read_statuses
from llm_kb.capture.likeness import find_nearest, order_for_review
from llm_kb.capture.rendering import View, render_entry, render_short
from llm_kb.capture.store import (
    edit_in_store,
    keep_in_store,
    load_store,
    remove_from_store,
)
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show, show_content
from llm_kb.commands.knowledge._shared import (
    complete_id,
    field_options,
    find_place,
    narrow,
    scope_option,
)
from llm_kb.errors import KbError
from llm_kb.git.run import GitError, read_git
from llm_kb.host import terminal
from llm_kb.rendering.plain_text import one_line, visible_line

_MAX_DIFF = 40_000
_MOST_LISTED = 100
"""Most entries listed: each is compared with all others, of which a pull can bring thousands."""

_LONGEST = 20_000
"""Most characters shown of an entry."""

_KEYS = {
    "k": "keep",
    "e": "edit",
    "r": "reject",
    "d": "diff",
    "s": "skip",
    "q": "quit",
}


@click.command()
@scope_option
@click.option("all_", "--all", is_flag=True, help="Show every entry, not only doubtful ones")
def review(scope: str | None, all_: bool) -> None:
    """
    Look at entries one at a time, the most doubtful first

    This shows entries with other versions, entries whose place or commit is gone, and
    entries that nobody has reviewed. Keep makes a
    convention permanent; reject removes an entry. The commit's diff is shown on request.
    Without a terminal the entries are listed.

    \b
        llm kb knowledge review
        llm kb knowledge review --scope src/git/
    """
    here = require_cwd()
    store = narrow(load_store(here), scope)
    statuses = read_statuses(here, {entry.anchor for entry in store.entries})
    waiting = order_for_review(store.entries, statuses, everything=all_)
    if not waiting:
        say("Nothing to review.")
        return
    describe = partial(_describe, statuses=statuses, entries=store.entries)
    if terminal.has_terminal():
        _review(here, waiting, describe)
        return
    show("\n".join(map(describe, waiting[:_MOST_LISTED])))
    if len(waiting) > _MOST_LISTED:
        say(f"{len(waiting) - _MOST_LISTED:,} more; --scope narrows.")


def _describe(entry: Entry, statuses: Mapping[Anchor, Status], entries: Sequence[Entry]) -> str:
    text = render_entry(entry, View(statuses=statuses, now=int(time.time())))
    lines = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"]
    near = find_nearest(entry, [other for other in entries if other is not entry])
    lines += [f"    near: {render_short(other)}" for other in near]
    return "\n".join(lines)


def _review(here: Path, waiting: Sequence[Entry], describe: Callable[[Entry], str]) -> None:
    menu = ", ".join(f"[{key}]{word[1:]}" for key, word in _KEYS.items()) + "; a letter and Enter"
    for number, entry in enumerate(waiting, 1):
        show(f"\n{number}/{len(waiting)}\n{describe(entry)}")
        is_done = False
        while not is_done:
            key = click.prompt(menu, type=click.Choice(list(_KEYS)), show_choices=False, err=True)
            if key == "q":
                return
            try:
                is_done = _decide(here, entry, key)
            except KbError as error:
                say(f"Error: {error}")


def _decide(here: Path, entry: Entry, key: str) -> bool:
    """Carry out a choice; return whether it settles the entry."""
    if key == "k":
        say(f"Kept: {render_short(keep_in_store(here, entry.id))}")
    elif key == "e":
        say(describe_edit(entry, _edit_fields(here, entry)))
    elif key == "r":
        for removed in remove_from_store(here, entry.id):
            say(f"Removed: {render_short(removed)}")
    elif key == "d":
        _show_commit(here, entry)
    return key != "d"


def _show_commit(here: Path, entry: Entry) -> None:
    safe = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature")
    name = entry.provenance or ""
    command = ("show", "--stat", "--patch", *safe, "--end-of-options", name, "--")
    try:
        text, is_cut = read_git(*command, cwd=here, limit=_MAX_DIFF)
    except GitError:
        say(f"No commit is called {name!r} here.")
        return
    show_content(text)
    if is_cut:
        say(f"Cut at {_MAX_DIFF:,} bytes; `git show {name[:12]}` shows all of it.")


def _edit_fields(here: Path, entry: Entry) -> Entry:
    """Ask for each field, with its value as the default, and return the changed entry."""
    changes = {}
    for version in entry.other_versions:
        say("Another version: " + "; ".join(f"{k}: {one_line(v)}" for k, v in version.items()))
    for name in entry.kind.settable:
        kind = click.Choice(STABILITIES) if name == "stability" else None
        default = visible_line(entry.text(name))
        typed = click.prompt(name, default=default, type=kind, err=True)
        if typed != default:
            changes[name] = find_place(typed) if name == entry.kind.place else typed
    return edit_in_store(here, entry.id, changes)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=complete_id)
@field_options
def edit(id_: str, **fields: str | None) -> None:
    """
    Change the entry of an ID

    The entry keeps its id and the commit it comes from. Other versions of it, which a pull
    has kept, are dropped. Without options, the command asks for each field.

    \b
        llm kb knowledge edit conv-3 --stability permanent
        llm kb knowledge edit ap-1 --instead 'a list of arguments'
    """
    here = require_cwd()
    changes = {name: text for name, text in fields.items() if text is not None}
    for name in {"scope", "module"} & changes.keys():
        changes[name] = find_place(changes[name])
    before = next((entry for entry in load_store(here).entries if entry.id == id_), None)
    if changes or (before is None and terminal.has_terminal()):
        # Without an entry, the store's error suggests similar ids.
        try:
            entry = edit_in_store(here, id_, changes)
        except InvalidEntryError as error:
            raise click.UsageError(str(error)) from error
    elif before and terminal.has_terminal():
        entry = _edit_fields(here, before)
    else:
        raise click.UsageError("nothing to change: give an option such as --rule")
    show(describe_edit(before, entry))


def describe_edit(before: Entry | None, entry: Entry) -> str:
    """Return a line that tells whether an edit changed an entry."""
    return f"{'Nothing changed' if entry == before else 'Changed'}: {render_short(entry)}"
