"""`llm kb knowledge`: list, add and remove the captured entries of a repository; annotate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import BinaryIO

import click

from llm_kb.capture.annotation import annotate as write_annotation
from llm_kb.capture.annotation import parse_live_input
from llm_kb.capture.emission import clean, parse_emission, with_provenance
from llm_kb.capture.entries import (
    ANTI_PATTERN,
    CONVENTION,
    KINDS,
    Entry,
    Kind,
    dump_json,
    dump_store,
)
from llm_kb.capture.errors import InvalidEntryError
from llm_kb.capture.history import read_statuses
from llm_kb.capture.likeness import EVERYWHERE
from llm_kb.capture.notes import KNOWLEDGE_REF, read_note
from llm_kb.capture.rendering import View, render_short, render_store
from llm_kb.capture.store import (
    add_to_store,
    edit_in_store,
    has_place,
    parse_note,
    remove_from_store,
    require_repository,
)
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show, show_json_document
from llm_kb.commands.knowledge._shared import (
    complete_id,
    field_options,
    find_place,
    narrow,
    parse_id,
    parse_provenance,
    scope_option,
)
from llm_kb.git.read import ObjectReader
from llm_kb.host.capture_tools import SCHEMAS

MOST_LISTED = 200_000
"""Most characters listed: a note that was pulled may have millions."""


def _type_of(kind: Kind) -> str:
    """Return the name of a kind as `--type` takes it."""
    return kind.name.replace("_", "-")


@click.command("list")
@scope_option
@click.option("json_", "--json", is_flag=True, help="Output the store as it is kept, as JSON")
def list_(scope: str | None, json_: bool) -> None:
    """
    List conventions, module boundaries and anti-patterns

    Each entry is shown with the place it applies to, its commit and its age, and any reason
    for doubt: its place is gone, or its commit is not on this branch.

    \b
        llm kb knowledge list
        llm kb knowledge list --scope src/git/ops.py
        llm kb knowledge list --json
    """
    here = require_cwd()
    require_repository(here)
    with ObjectReader(here) as reader:
        note = read_note(reader, KNOWLEDGE_REF)
        store = parse_note(note)
    total = len(store.entries)
    store = narrow(store, scope)
    if json_:
        # Without a filter the note is printed to the byte, whichever program wrote it.
        data = note.data if note and note.data and scope is None else dump_store(store)
        show_json_document(data)
        return
    statuses = read_statuses(here, {entry.anchor for entry in store.entries})
    text = render_store(store, View(statuses=statuses, now=int(time.time())))
    # With `color` click does not search the text for control sequences; it has none.
    nothing = f"No entries for {scope!r}, of {total} in all." if total else "No entries."
    click.echo(text[:MOST_LISTED] or nothing, err=not text, color=True)
    if len(text) > MOST_LISTED:
        say(f"Cut at {MOST_LISTED:,} of {len(text):,} characters; --scope narrows, --json has all.")


@click.command()
@click.argument("short_rule", metavar="[RULE]", required=False)
@click.argument("path", required=False)
@click.option(
    "type_",
    "--type",
    type=click.Choice([_type_of(kind) for kind in KINDS]),
    help="Type of the entry  [default: the type that the other options belong to]",
)
@click.option(
    "id_", "--id", metavar="ID", callback=parse_id, help="Id of the entry  [default: the next one]"
)
@field_options
@click.option(
    "--decided-in",
    metavar="COMMIT",
    help="Convention, boundary: the commit that decided it  [default: HEAD]",
)
@click.option(
    "--learned-from",
    metavar="COMMIT",
    help="Anti-pattern: the commit or issue that taught it  [default: HEAD]",
)
def add(
    short_rule: str | None,
    path: str | None,
    type_: str | None,
    id_: str | None,
    decided_in: str | None,
    learned_from: str | None,
    **fields: str | None,
) -> None:
    """
    Add an entry

    RULE is a convention for PATH, or without a PATH for everything; the options make
    entries of any type. A convention is permanent unless --stability sets another value. If
    the same entry exists for the same place, nothing is added; with --stability, that entry
    gets the new stability. A PATH is relative to the current directory.

    \b
        llm kb knowledge add 'Every error is a child of KbError' src/
        llm kb knowledge add --module src/git/ \\
          --owns 'running git' --boundary 'imports no command'
        llm kb knowledge add --pattern 'shell=True' \\
          --instead 'a list of arguments'
    """
    if short_rule is not None:
        if fields["rule"] or (path and fields["scope"]):
            raise click.UsageError("RULE and PATH stand for --rule and --scope; give either")
        others = sorted(name for name in fields if fields[name] and name not in CONVENTION.settable)
        if others or type_ not in (None, _type_of(CONVENTION)):
            with_ = f"--{others[0]}" if others else f"--type {type_}"
            raise click.UsageError(f"RULE makes a convention; leave it out with {with_}")
        if not clean(short_rule):
            raise click.UsageError("RULE is empty")
        fields |= {"rule": short_rule, "scope": path or fields["scope"] or EVERYWHERE}
    type_ = type_ or _infer_type(fields)
    entry = _read_entry(type_, fields)
    provenance = parse_provenance(entry.kind, decided_in=decided_in, learned_from=learned_from)
    if provenance:
        entry = with_provenance(entry, provenance)
    addition = add_to_store(require_cwd(), entry, id_=id_)
    if addition.is_new:
        show(f"Added {type_}: {addition.entry.id}")
    elif fields["stability"] and addition.entry.text("stability") != fields["stability"]:
        # The entry keeps its id and its provenance.
        edit_in_store(require_cwd(), addition.entry.id, {"stability": fields["stability"]})
        show(f"Changed {type_}: {addition.entry.id} is now {fields['stability']}")
    else:
        say(f"Already exists: {render_short(addition.entry)}")
    for near in addition.near:
        say(f"Similar: {render_short(near)}")
    place = addition.entry.place
    if addition.is_new and place and not has_place(require_cwd(), "HEAD", place, head=True):
        say(f"Warning: {place!r} is neither in the current commit nor in the work tree")


def _read_entry(type_: str, fields: Mapping[str, str | None]) -> Entry:
    """Return the entry of the given fields. Raises UsageError."""
    kind = next(kind for kind in KINDS if _type_of(kind) == type_)
    if missing := _find_missing(kind, fields):
        raise click.UsageError(f"{_name_with_article(kind)} needs {', '.join(missing)}")
    given = dict(fields)
    for name in ("scope", "module"):
        place = given[name]
        if place and place.strip():
            given[name] = find_place(place)
    if kind is CONVENTION:
        # A person who writes a rule down means it; a model that infers one may be wrong.
        given["stability"] = given["stability"] or "permanent"
    try:
        arguments = {"--type": type_.replace("-", "_"), **given}
        return parse_emission(arguments, tag="--type", where="--")
    except InvalidEntryError as error:
        raise click.UsageError(str(error)) from error


def _find_missing(kind: Kind, fields: Mapping[str, str | None]) -> list[str]:
    """Return the options that a kind lacks; none if an option of another kind is given."""
    given = {name for name, value in fields.items() if value and clean(value)}
    missing = [f"--{name}" for name in kind.required if name not in given]
    return missing if given <= set(kind.settable) else []


def _name_with_article(kind: Kind) -> str:
    return f"{'an' if kind is ANTI_PATTERN else 'a'} {_type_of(kind)}"


def _infer_type(fields: Mapping[str, str | None]) -> str:
    """Return the type of entry that the given fields belong to. Raises UsageError."""
    found = {kind: name for kind in KINDS for name in kind.settable if fields[name]}
    if len(found) == 1:
        return _type_of(*found)
    if found:
        owners = [f"--{name} to {_name_with_article(kind)}" for kind, name in found.items()]
        owners[0] = owners[0].replace(" to ", " belongs to ", 1)
        raise click.UsageError(f"{' and '.join(owners)}: give one kind")
    takes = (f"{_type_of(k)} with --{', --'.join(k.required)}" for k in KINDS)
    raise click.UsageError(f"what kind of entry is it? {'; '.join(takes)}")


@click.command()
@click.argument("id_", metavar="ID", shell_complete=complete_id)
def remove(id_: str) -> None:
    """
    Remove an entry by its ID

    The ID is not given to another entry later.

    \b
        llm kb knowledge remove conv-3
    """
    for entry in remove_from_store(require_cwd(), id_):
        show(f"Removed: {render_short(entry)}")


@click.command()
@click.argument("name", type=click.Choice(list(SCHEMAS)), default="knowledge")
def schema(name: str) -> None:
    """
    Print the JSON Schema of the data that is read or written

    live-input is the input of annotate, annotation its note on the commit, and knowledge is
    the store.

    \b
        llm kb knowledge schema live-input
    """
    show_json_document(dump_json(SCHEMAS[name]))


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
    data = file.read()
    if not data.strip():
        name = getattr(file, "name", "<stdin>")
        raise click.ClickException(
            "standard input is empty" if name == "<stdin>" else f"{name!r} is empty"
        )
    live = parse_live_input(data)
    show_json_document(dump_json(asdict(write_annotation(require_cwd(), live))))
