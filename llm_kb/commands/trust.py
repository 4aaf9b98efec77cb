"""`llm kb trust`: let a workspace have what it asks for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from llm_kb.commands._config import current_layers, require_cwd, say, user_dir
from llm_kb.commands._confirm import confirm
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._trust import say_corrupt
from llm_kb.config_files import Layers
from llm_kb.errors import show_place
from llm_kb.trust import is_trusted, read_trust, trust_path
from llm_kb.trust import trust as record_trust
from llm_kb.trust_report import render_request


@click.command()
@click.option("yes", "-y", "--yes", is_flag=True, help="Trust without asking")
@click.option("list_", "--list", is_flag=True, help="List the trusted files instead")
@click.option("json_", "--json", is_flag=True, help="With --list: output as JSON")
@kb_errors
def trust(yes: bool, list_: bool, json_: bool) -> None:
    """
    Trust what this workspace's configuration asks for

    Needed for 'auto = true', and for pre-loading subjects of your own topics: a
    repository you cloned cannot decide that. Trust ends when the configuration
    changes.

    \b
        llm kb trust
        llm kb trust --list
    """
    if json_ and not list_:
        raise click.UsageError("--json goes with --list")
    if list_:
        _list(json_)
        return
    layers = current_layers()
    if layers.file is None:
        require_cwd()
        raise click.ClickException("there is no workspace here; see 'llm kb init'")
    if not layers.withheld:
        say(f"nothing in {show_place(layers.file.path)} needs trust")
    elif is_trusted(layers.file.path, layers.digest, user_dir()):
        say(f"{show_place(layers.file.path)} is trusted already")
    else:
        _ask_and_record(layers, layers.file.path, yes=yes)


def _ask_and_record(layers: Layers, file: Path, *, yes: bool) -> None:
    say(render_request(str(file), layers.workspace, layers.below, layers.withheld))
    say("")
    confirm("Trust it?", yes=yes)
    before = record_trust(file, layers.digest, user_dir())
    if before.is_corrupt:
        record = show_place(trust_path(user_dir()))
        say(f"{record} made no sense and was replaced; what it held is forgotten")
    say(f"trusted {show_place(file)}")


def _list(json_: bool) -> None:
    records = read_trust(user_dir())
    say_corrupt(records)
    files = sorted(records.digests)
    if json_:
        click.echo(json.dumps(files, indent=2))
        return
    for file in files:
        click.echo(os.fsencode(file))  # as bytes: a name need not be text
