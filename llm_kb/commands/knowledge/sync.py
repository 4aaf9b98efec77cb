"""`llm kb knowledge pull`, `push` and `import`: exchange entries with other stores."""

from __future__ import annotations

import click

from llm_kb.capture.rendering import render_difference, render_short
from llm_kb.capture.sharing.remotes import describe_remote, hide_secrets
from llm_kb.capture.sharing.sync import Outcome, Pull, has_store, import_older
from llm_kb.capture.sharing.sync import pull as pull_store
from llm_kb.capture.sharing.sync import push as push_store
from llm_kb.capture.store import load_store
from llm_kb.commands._config import require_cwd
from llm_kb.rendering.plain_text import count, one_line, visible_line


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

    REMOTE is a name or a URL, by default origin. What either side added stays; what
    one side removed and the other left alone goes. Where both changed one entry, both
    versions are kept in it and shown.

    \b
        llm kb knowledge pull
        llm kb knowledge pull upstream
    """
    echo_pull(pull_store(require_cwd(), remote), remote)


@click.command()
@remote_argument
def push(remote: str) -> None:
    """
    Push the entries here to REMOTE

    When REMOTE has entries that are not here they are pulled first, and nothing is
    ever overwritten there.

    \b
        llm kb knowledge push
    """
    if not has_store(require_cwd()):
        raise click.ClickException("there is nothing to push: no entry was ever captured here")
    for pulled in push_store(require_cwd(), remote):
        echo_pull(pulled, remote)
    entries = count(len(load_store(require_cwd()).entries), "entry", "entries")
    click.echo(visible_line(f"Pushed {entries} to {describe_remote(require_cwd(), remote)}."))


@click.command("import")
def import_() -> None:
    """
    Add the entries that git-chronicle keeps in a place of its own

    They are read from refs/notes/chronicle and left there as they are.

    \b
        llm kb knowledge import
    """
    additions = import_older(require_cwd())
    for addition in additions:
        if addition.is_new:
            click.echo(f"Added {addition.entry.kind.name}: {render_short(addition.entry)}")
    known = sum(not addition.is_new for addition in additions)
    click.echo(f"{len(additions) - known} added, {known} already here.", err=True)


def echo_pull(pulled: Pull, remote: str) -> None:
    """Print what a pull brought, and every entry that could not simply be merged."""
    if pulled.annotations:
        commits = count(pulled.annotations, "commit")
        click.echo(f"Annotations of {commits} received.", err=True)
    if pulled.outcome in {Outcome.NOTHING_THERE, Outcome.UP_TO_DATE}:
        click.echo(visible_line(f"{hide_secrets(remote)}: {pulled.outcome.value}."), err=True)
        return
    merge = pulled.merge
    for entry in merge.received:
        click.echo(f"Received: {render_short(entry)}")
    for entry in merge.dropped:
        click.echo(f"Removed there: {render_short(entry)}")
    for ours, theirs in merge.duplicates:
        click.echo(f"Duplicate: {render_short(ours)} is {render_short(theirs)} there")
    for ours, theirs in merge.conflicts:
        click.echo(f"Conflict: {render_short(theirs)}")
        click.echo(f"  ours:   {render_difference(ours, theirs)}")
        click.echo(f"  theirs: {render_difference(theirs, ours)}")
        click.echo(f"  Both are kept; `llm kb knowledge edit {one_line(theirs.id)}` settles it.")
    for old, new in merge.renumbered:
        click.echo(f"Renumbered: {render_short(old)} is now {new.id}")
    click.echo(f"{count(len(merge.store.entries), 'entry', 'entries')}.", err=True)
