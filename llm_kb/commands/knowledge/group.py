"""`llm kb knowledge`: the commands for captured entries; annotate a commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click
from click.shell_completion import CompletionItem

from llm_kb.capture import annotation, emission, entries, notes, rendering, store, sync
from llm_kb.capture.rendering import render_short
from llm_kb.files.atomic import WriteError, find_inside, read_below, replace_below
from llm_kb.files.containment import resolve_links
from llm_kb.host.capture_tools import LIVE_INPUT
from llm_kb.rendering.plain_text import count
from llm_kb.terminal import output
from llm_kb.terminal.configured import require_cwd
from llm_kb.terminal.options import F, complete_quietly
from llm_kb.terminal.output import review_each, say, show
from llm_kb.texts.safe import visible_line, visible_text

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


@contextmanager
def explaining(**names: str) -> Iterator[None]:
    """Turn an InvalidEntryError into a usage error, which names what was typed.

    `names` has the arguments of those fields that are not options.
    """
    try:
        yield
    except emission.InvalidEntryError as error:
        split = (problem.partition(":") for problem in error.problems)
        typed = (f"{names.get(name, f'--{name}')}:{problem}" for name, _, problem in split)
        message = "; ".join(typed).replace("anti_pattern", "anti-pattern")
        raise click.UsageError(message) from error


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


@complete_quietly
def complete_id(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this repository's entries, with their texts as help."""
    return [
        CompletionItem(entry.id, help=entry.rule)
        for entry in store.load_store(require_cwd()).entries
        if entry.id.startswith(incomplete)
    ]


_LONGEST = 20_000
"""Most characters shown of an entry."""


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
    with explaining(rule="RULE", scope="PATH"):
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


@click.command()
@click.argument("id_", metavar="ID", shell_complete=complete_id)
def remove(id_: str) -> None:
    """
    Remove an entry by its ID

    \b
        llm kb knowledge remove conv-3
    """
    for entry in store.remove_from_store(require_cwd(), id_):
        show(f"Removed: {render_short(entry)}")


@click.command()
@scope_option
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
    kept = narrow(store.load_store(here), scope)
    doubts = store.read_doubts(here, kept.entries)
    waiting = [entry for entry in kept.entries if doubts.get(entry.anchor)]
    waiting += [e for e in kept.entries if not doubts.get(e.anchor) and not e.is_settled]

    def show_entry(entry: entries.Entry) -> None:
        show(rendering.render_item(entry, doubts)[:_LONGEST])
        for near in kept.find_nearest(entry):
            show(f"  near: {render_short(near)}")

    others = "`llm kb knowledge list`, `edit` and `remove`"
    review_each(waiting, show_entry, partial(_act, here), others)


def _act(here: Path, key: str, entry: entries.Entry) -> bool:
    """Do what a key asks for."""
    if key == "k":
        say(f"Kept: {render_short(store.keep_in_store(here, entry.id))}")
    elif key == "e":
        say(describe_edit(entry, _edit_fields(here, entry)))
    elif key == "r":
        for removed in store.remove_from_store(here, entry.id):
            say(f"Removed: {render_short(removed)}")
    return True


def _edit_fields(here: Path, entry: entries.Entry) -> entries.Entry:
    """Ask for each field, with its value as the default, and return the changed entry."""
    changes = {}
    for name in entry.kind.settable:
        kind = click.Choice(entries.STABILITIES) if name == "stability" else None
        default = visible_line(entry.text(name))
        typed = click.prompt(name, default=default, type=kind, err=True)
        if typed != default:
            changes[name] = find_place(typed) if name == entry.kind.place else typed
    return store.edit_in_store(here, entry.id, changes)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=complete_id)
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
    before = next((entry for entry in store.load_store(here).entries if entry.id == id_), None)
    with explaining():
        entry = store.edit_in_store(here, id_, changes)
    show(describe_edit(before, entry))


def describe_edit(before: entries.Entry | None, entry: entries.Entry) -> str:
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
    output.show_json({"$schema": dialect, "title": "LiveInput", **LIVE_INPUT})


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
    live = annotation.parse_live_input(file.read())
    output.show_json(annotation.annotate(require_cwd(), live))


def check_remote(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Raise an error for a remote that git would take for an option."""
    if not value or value.startswith("-"):
        raise click.BadParameter(f"{value!r} is not a remote")
    return value


remote_argument = click.argument("remote", default="origin", callback=check_remote)


@click.command()
@remote_argument
def pull(remote: str) -> None:
    """
    Fetch the entries of REMOTE and merge them with those here

    REMOTE is a name or a URL, by default origin. Entries that either side added stay;
    entries that one side removed and the other did not change are removed. Of an entry that
    both sides changed, that of REMOTE is kept, and both are shown.

    \b
        llm kb knowledge pull
        llm kb knowledge pull upstream
    """
    for line in sync.pull(require_cwd(), remote):
        show(visible_text(line))


@click.command()
@remote_argument
def push(remote: str) -> None:
    """
    Push the entries here to REMOTE

    If REMOTE has entries that are not here, they are pulled first. Nothing on REMOTE is
    ever overwritten.

    \b
        llm kb knowledge push
    """
    for line in sync.push(require_cwd(), remote):
        show(visible_text(line))


@click.command()
@click.option("--to", "file", metavar="FILE", help="Write the entries into this Markdown file")
@scope_option
@click.option("--check", is_flag=True, help="Write nothing; fail if FILE is not up to date")
def export(file: str | None, scope: str | None, check: bool) -> None:
    """
    Write entries into a Markdown file, for review

    FILE can be a subject of a topic, or a file such as AGENTS.md or CLAUDE.md: the
    entries go into a block between two marks, and the rest of the file stays. Run it
    again to bring the block up to date. Without --to, the block is printed.

    \b
        llm kb knowledge export --to kb/conventions.md
        llm kb knowledge export --to AGENTS.md
        llm kb knowledge export --to AGENTS.md --check
    """
    here = require_cwd()
    kept = narrow(store.load_store(here), scope)
    block = rendering.render_block(kept)
    if file is None and check:
        raise click.UsageError("--check needs --to FILE")
    if file is None:
        if kept.entries:
            output.show_content(block, nl=False)
        else:
            say("Nothing to export.")
        return
    path, root = here / file, store.require_repository(here).root
    _require_directory(root, path)
    before = read_below(root, path)
    if not kept.entries and not rendering.MARKS.has_any(before):
        say("Nothing to export.")
        return
    new = rendering.TITLE + block
    after = new if before is None else rendering.MARKS.replace(before, block, file)
    number = count(len(kept.entries), "entry", "entries")
    if before == after:
        say(f"{file}: up to date, {number}.")
    elif check:
        raise click.ClickException(
            f"{file!r} is not up to date with {number}; run `llm kb knowledge export --to {file}`"
        )
    else:
        replace_below(root, path, after.encode())
        say(f"{file}: written, {number}.")


def _require_directory(root: Path, path: Path) -> None:
    """Raise WriteError for a file outside the repository or in a directory that does not exist."""
    directory = resolve_links(root) / find_inside(root, path).parent
    if not directory.is_dir():
        raise WriteError(path, f"there is no directory {str(directory)!r}")
