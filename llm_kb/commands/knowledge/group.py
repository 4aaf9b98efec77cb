"""`llm kb knowledge`: list, add, edit, review and remove captured entries; annotate a commit."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from llm_kb.capture import notes, store
from llm_kb.capture.annotation import annotate as write_annotation
from llm_kb.capture.annotation import parse_live_input
from llm_kb.capture.emission import parse_fields
from llm_kb.capture.entries import EVERYWHERE, KINDS, STABILITIES, Entry, dump_store
from llm_kb.capture.rendering import render_item, render_short, render_store
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show, show_json, show_json_document
from llm_kb.commands.knowledge import _shared
from llm_kb.errors import KbError
from llm_kb.host import terminal
from llm_kb.host.capture_tools import LIVE_INPUT
from llm_kb.rendering.plain_text import visible_line

_LONGEST = 20_000
"""Most characters shown of an entry."""

_KEYS = {"k": "keep", "e": "edit", "r": "reject", "s": "skip", "q": "quit"}


MOST_LISTED = 200_000
"""Most characters listed: a note that was pulled may have millions."""

NOTHING = "No entries. `llm kb knowledge add RULE` makes one."


@click.command("list")
@_shared.scope_option
@click.option("json_", "--json", is_flag=True, help="Output the store as it is kept, as JSON")
def list_(scope: str | None, json_: bool) -> None:
    """
    List conventions, module boundaries and anti-patterns

    Each entry is shown with the place it applies to, its commit, and any reason for doubt:
    its place is gone, or its commit is not on this branch.

    \b
        llm kb knowledge list
        llm kb knowledge list --scope src/git/ops.py
        llm kb knowledge list --json
    """
    here = require_cwd()
    store.require_repository(here)
    note = notes.read_note(here, notes.KNOWLEDGE_REF)
    kept = store.parse_note(note)
    shown = _shared.narrow(kept, scope)
    if json_:
        # Without a filter the note is printed to the byte, whichever program wrote it.
        data = note.data if note.data and scope is None else dump_store(shown)
        show_json_document(data)
        return
    text = render_store(shown, store.read_doubts(here, shown.entries))
    # With `color` click does not search the text for control sequences; it has none.
    total = len(kept.entries)
    nothing = f"No entries for {scope!r}, of {total} in all." if total else NOTHING
    click.echo(text[:MOST_LISTED] or nothing, err=not text, color=True)
    if len(text) > MOST_LISTED:
        say(f"Cut at {MOST_LISTED:,} of {len(text):,} characters; --scope narrows, --json has all.")


@click.command()
@click.argument("rule", required=False)
@click.argument("path", required=False)
@_shared.field_options("rule", "scope")
def add(rule: str | None, path: str | None, **fields: str | None) -> None:
    """
    Add an entry

    RULE is a convention for PATH, or without a PATH for everything; the options make
    boundaries and anti-patterns. A convention is permanent unless --stability sets another
    value. If the same entry exists for the same place, nothing is added. A PATH is relative
    to the current directory.

    \b
        llm kb knowledge add 'Every error is a child of KbError' src/
        llm kb knowledge add --module src/git/ \\
          --owns 'running git' --boundary 'imports no command'
        llm kb knowledge add --pattern 'shell=True' \\
          --instead 'a list of arguments'
    """
    if rule is not None:
        # A person who writes a rule down means it; a model that infers one may be wrong.
        stability = fields["stability"] or "permanent"
        fields |= {"rule": rule, "scope": path or EVERYWHERE, "stability": stability}
    kind = next((kind for kind in KINDS for name in kind.required if fields.get(name)), None)
    if kind is None:
        raise click.UsageError(
            "what is to be added? A RULE, or --module, --owns and --boundary, or --pattern and"
            " --instead"
        )
    if kind.place and (place := fields[kind.place]):
        fields[kind.place] = _shared.find_place(place)
    with _shared.explaining(rule="RULE", scope="PATH"):
        entry = parse_fields(kind, fields)
    here = require_cwd()
    addition = store.add_to_store(here, entry)
    if addition.is_new:
        show(f"Added {kind.name.replace('_', '-')}: {addition.entry.id}")
    else:
        say(f"Already exists: {render_short(addition.entry)}")
    for near in addition.near:
        say(f"Similar: {render_short(near)}")
    if problem := store.find_place_problem(here, "HEAD", entry):
        say(f"Warning: {problem.partition(': ')[2]}")


@click.command()
@click.argument("id_", metavar="ID", shell_complete=_shared.complete_id)
def remove(id_: str) -> None:
    """
    Remove an entry by its ID

    \b
        llm kb knowledge remove conv-3
    """
    for entry in store.remove_from_store(require_cwd(), id_):
        show(f"Removed: {render_short(entry)}")


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
    kept = _shared.narrow(store.load_store(here), scope)
    doubts = store.read_doubts(here, kept.entries)
    waiting = [entry for entry in kept.entries if doubts.get(entry.anchor)]
    waiting += [e for e in kept.entries if not doubts.get(e.anchor) and not e.is_settled]
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
        for near in kept.find_nearest(entry):
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


@click.command()
def schema() -> None:
    """
    Print the JSON Schema of the input of annotate

    \b
        llm kb knowledge schema
    """
    dialect = "https://json-schema.org/draft/2020-12/schema"
    show_json({"$schema": dialect, "title": "LiveInput", **LIVE_INPUT})


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def annotate(file: BinaryIO) -> None:
    """
    Annotate a commit with what an agent learned while making it

    Reads a LiveInput as JSON from FILE or standard input, writes a chronicle/v3
    annotation on its commit and its knowledge to the store, and prints a
    LiveResult. If any part of the input is invalid, nothing is written.

    \b
        llm kb knowledge annotate <<'EOF'
        {"commit": "HEAD", "summary": "Why it was done this way",
         "wisdom": [{"category": "gotcha", "content": "…", "file": "src/x.py"}],
         "knowledge": [{"type": "convention", "scope": "src/", "rule": "…"}]}
        EOF
    """
    live = parse_live_input(file.read())
    show_json(write_annotation(require_cwd(), live))
