"""`llm kb knowledge pull`, `push` and `export`: share entries with others."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.capture.rendering import has_block, place_block, render_block
from llm_kb.capture.store import load_store, require_repository
from llm_kb.capture.sync import pull as pull_store
from llm_kb.capture.sync import push as push_store
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show, show_content
from llm_kb.commands.knowledge._shared import narrow, scope_option
from llm_kb.files.atomic import WriteError, replace_file
from llm_kb.files.containment import read_regular, resolve_links
from llm_kb.rendering.plain_text import count, visible_text


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
    for line in pull_store(require_cwd(), remote):
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
    for line in push_store(require_cwd(), remote):
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
    store = narrow(load_store(here), scope)
    block = render_block(store)
    if file is None and check:
        raise click.UsageError("--check needs --to FILE")
    if file is None:
        if store.entries:
            show_content(block, nl=False)
        else:
            say("Nothing to export.")
        return
    path = here / file
    _require_inside(path, require_repository(here).root)
    before = _read(path)
    if not store.entries and not has_block(before):
        say("Nothing to export.")
        return
    after = place_block(before, block, file)
    number = count(len(store.entries), "entry", "entries")
    if before == after:
        say(f"{file}: up to date, {number}.")
    elif check:
        raise click.ClickException(
            f"{file!r} is not up to date with {number}; run `llm kb knowledge export --to {file}`"
        )
    else:
        replace_file(path, after.encode())
        say(f"{file}: written, {number}.")


def _require_inside(path: Path, root: Path) -> None:
    """Raise WriteError for a file outside the repository or in a directory that does not exist."""
    real = resolve_links(path)
    if not real.is_relative_to(resolve_links(root)):
        raise WriteError(path, f"it leads to {str(real)!r}, outside the repository")
    if not real.parent.is_dir():
        raise WriteError(path, f"there is no directory {str(real.parent)!r}")


def _read(path: Path) -> str | None:
    """Return the text of a file; None if it does not exist."""
    if not os.path.lexists(path):
        return None
    try:
        return read_regular(path, follow_link=True).decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{str(path)!r} is not UTF-8 text") from error
