"""`llm kb knowledge`: the commands for captured entries; annotate a commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO

import click

from llm_kb.capture import annotation, emission, entries, notes, rendering, store
from llm_kb.capture import sync as exchange
from llm_kb.capture.rendering import render_short
from llm_kb.capture.tools import LIVE_INPUT
from llm_kb.files.atomic import read_below, replace_below
from llm_kb.rendering.plain_text import count
from llm_kb.terminal import output
from llm_kb.terminal.configured import require_cwd
from llm_kb.terminal.options import F
from llm_kb.terminal.output import say, show
from llm_kb.texts.safe import visible_text

_FIELDS = {
    "rule": "Convention: the rule",
    "scope": "Convention: the directory or file it applies to, or *",
    "stability": "Convention: how firm it is",
    "module": "Boundary: the module's directory",
    "owns": "Boundary: what the module is responsible for",
    "boundary": "Boundary: what the module must not do",
    "pattern": "Anti-pattern: what to avoid",
    "instead": "Anti-pattern: what to do instead",
}


def field_options(*left_out: str) -> Callable[[F], F]:
    """Return a decorator that adds an option for each field of an entry to a command."""

    def decorate(command: F) -> F:
        for name, text in reversed(_FIELDS.items()):
            if name not in left_out:
                kind = click.Choice(entries.STABILITIES) if name == "stability" else None
                metavar = "PATH" if name in {"scope", "module"} else None
                command = click.option(f"--{name}", metavar=metavar, type=kind, help=text)(command)
        return command

    return decorate


scope_option = click.option(
    "--scope", metavar="FILE", help="Only entries that apply to this file or directory"
)


def narrow(kept: entries.KnowledgeStore, scope: str | None) -> entries.KnowledgeStore:
    """Return the entries that apply to a file as typed; all entries without one."""
    return kept if scope is None else kept.narrow(find_place(scope))


def find_place(typed: str) -> str:
    """Return a path, typed relative to the current directory, relative to the repository's root.

    Stars alone and the root itself mean everything.
    """
    if not set(typed) - {"*", "/"}:
        return entries.EVERYWHERE
    here = require_cwd()
    root = store.require_repository(here).root
    place = os.path.relpath(here / typed.strip(), root).replace(os.sep, "/")
    if entries.is_outside(place):
        raise click.UsageError(f"{typed!r} is outside the repository, {str(root)!r}")
    place = entries.plain_place(f"{place}/" if typed.endswith("/") else place)
    problem = None if (root / place).exists() else entries.find_pattern_problem(place)
    if problem:
        raise click.UsageError(f"{typed!r} {problem}")
    return place


MOST_LISTED = 200_000
"""Most characters listed: a note that was pulled may have millions."""

NOTHING = "No entries. `llm kb knowledge add RULE` makes one."


@click.command("list")
@scope_option
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
    shown = narrow(kept, scope)
    if json_:
        # Without a filter the note is printed to the byte, whichever program wrote it.
        data = note.data if note.data and scope is None else entries.dump_store(shown)
        output.show_json_document(data)
        return
    text = rendering.render_store(shown, store.read_doubts(here, shown.entries))
    # With `color` click does not search the text for control sequences; it has none.
    total = len(kept.entries)
    nothing = f"No entries for {scope!r}, of {total} in all." if total else NOTHING
    click.echo(text[:MOST_LISTED] or nothing, err=not text, color=True)
    if len(text) > MOST_LISTED:
        say(f"Cut at {MOST_LISTED:,} of {len(text):,} characters; --scope narrows, --json has all.")


@click.command()
@click.argument("rule", required=False)
@click.argument("path", required=False)
@field_options("rule", "scope")
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
        fields |= {"rule": rule, "scope": path or entries.EVERYWHERE, "stability": stability}
    kind = next(
        (kind for kind in entries.KINDS for name in kind.required if fields.get(name)), None
    )
    if kind is None:
        raise click.UsageError(
            "what is to be added? A RULE, or --module, --owns and --boundary, or --pattern and"
            " --instead"
        )
    if kind.place and (place := fields[kind.place]):
        fields[kind.place] = find_place(place)
    entry = emission.parse_fields(kind, fields)
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
    if warning := notes.find_overwriting_refspec(here):
        say(f"Warning: {warning}")


@click.command()
@click.argument("id_", metavar="ID")
def remove(id_: str) -> None:
    """
    Remove an entry by its ID

    \b
        llm kb knowledge remove conv-3
    """
    for entry in store.remove_from_store(require_cwd(), id_):
        show(f"Removed: {render_short(entry)}")


@click.command()
@click.argument("id_", metavar="ID")
@field_options()
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
        changes[name] = find_place(changes[name])
    show(f"Changed: {render_short(store.edit_in_store(here, id_, changes))}")


@click.command(hidden=True)
def schema() -> None:
    """
    Print the JSON Schema of the input of annotate

    \b
        llm kb knowledge schema
    """
    dialect = "https://json-schema.org/draft/2020-12/schema"
    output.show_json({"$schema": dialect, "title": "LiveInput", **LIVE_INPUT})


@click.command(hidden=True)
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
    live = annotation.parse_live_input(file.read())
    output.show_json(annotation.annotate(require_cwd(), live))


def check_remote(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Raise an error for a remote that git would take for an option."""
    if not value or value.startswith("-"):
        raise click.BadParameter(f"{value!r} is not a remote")
    return value


@click.command()
@click.argument("remote", default="origin", callback=check_remote)
def sync(remote: str) -> None:
    """
    Merge the entries of REMOTE with those here, and push the result

    REMOTE is a name or a URL, by default origin. Entries that either side added stay;
    entries that one side removed and the other did not change are removed. Of an entry that
    both sides changed, that of REMOTE is kept, and both are shown. Nothing on REMOTE is ever
    overwritten; where it refuses the push, what came from it stays here.

    \b
        llm kb knowledge sync
        llm kb knowledge sync upstream
    """
    for line in exchange.sync(require_cwd(), remote):
        show(visible_text(line))
    if warning := notes.find_overwriting_refspec(require_cwd()):
        say(f"Warning: {warning}")


@click.command()
@click.option("--to", "file", metavar="FILE", help="Write the entries into this Markdown file")
@scope_option
def export(file: str | None, scope: str | None) -> None:
    """
    Write entries into a Markdown file, for review

    FILE can be a subject of a topic, or a file such as AGENTS.md or CLAUDE.md: the
    entries go into a block between two marks, and the rest of the file stays. Run it
    again to bring the block up to date. Without --to, the block is printed.

    \b
        llm kb knowledge export --to kb/conventions.md
        llm kb knowledge export --to AGENTS.md
    """
    here = require_cwd()
    kept = narrow(store.load_store(here), scope)
    block = rendering.render_block(kept)
    if file is None:
        if kept.entries:
            output.show_content(block, nl=False)
        else:
            say("Nothing to export.")
        return
    path, root = here / file, store.require_repository(here).root
    before = read_below(root, path)
    if not kept.entries and not rendering.MARKS.has_any(before):
        say("Nothing to export.")
        return
    new = rendering.TITLE + block
    after = new if before is None else rendering.MARKS.replace(before, block, file)
    number = count(len(kept.entries), "entry", "entries")
    if before == after:
        say(f"{file}: up to date, {number}.")
    else:
        replace_below(root, path, after.encode())
        say(f"{file}: written, {number}.")
