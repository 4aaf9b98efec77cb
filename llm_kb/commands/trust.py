"""`llm kb trust` and `untrust`: decide whether a workspace's settings take full effect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from llm_kb.commands._config import current_layers, require_cwd
from llm_kb.commands._output import confirm, say, show_content, show_json
from llm_kb.config.load import Layers
from llm_kb.config.report import render_request
from llm_kb.config.trust import is_trusted, read_trust, trust_path
from llm_kb.config.trust import trust as record_trust
from llm_kb.config.trust import untrust as withdraw_trust
from llm_kb.config.workspace import find_cwd, find_workspace
from llm_kb.errors import show_place
from llm_kb.user_dir import find_user_dir


@click.command()
@click.option("yes", "-y", "--yes", is_flag=True, help="Trust without asking")
@click.option("list_", "--list", is_flag=True, help="List the trusted files instead")
@click.option("json_", "--json", is_flag=True, help="With --list: output as JSON")
def trust(yes: bool, list_: bool, json_: bool) -> None:
    """
    Trust the settings that this workspace requests

    Needed for 'auto = true', for showing your own topics and references, and for
    a checkout that belongs to another user: a repository you cloned cannot decide
    that. Trust ends when the configuration changes.

    \b
        llm kb trust
        llm kb trust --list
    """
    if json_ and not list_:
        raise click.UsageError("--json goes with --list")
    if list_:
        _list(json_)
        return
    layers = current_layers(any_owner=True)
    if layers.file is None:
        require_cwd()
        raise click.ClickException("there is no workspace here; see 'llm kb init'")
    if not layers.withheld and not layers.foreign:
        say(f"Nothing in {show_place(layers.file.path)} needs trust")
    elif is_trusted(layers.file.path, layers.digest, find_user_dir()):
        say(f"{show_place(layers.file.path)} is trusted already")
    else:
        _ask_and_record(layers, layers.file.path, yes=yes)


def _ask_and_record(layers: Layers, file: Path, *, yes: bool) -> None:
    parts = (layers.workspace, layers.below, layers.withheld, layers.foreign)
    say(f"{render_request(str(file), *parts).rstrip()}\n")
    confirm("Trust it?", yes=yes)
    before = record_trust(file, layers.digest, find_user_dir())
    if before is None:
        record = show_place(trust_path(find_user_dir()))
        say(f"{record} was not valid and was replaced; earlier trust is forgotten")
    say(f"Trusted {show_place(file)}")


def _list(json_: bool) -> None:
    trusted = read_trust(find_user_dir())
    say_corrupt(trusted)
    files = sorted(trusted or ())
    if json_:
        show_json(files)
        return
    if not files:
        say("No configuration is trusted")
    for file in files:
        show_content(os.fsencode(file))  # as bytes: a name need not be text


def say_corrupt(trusted: Mapping[str, str] | None) -> None:
    """Print a warning if the record of trust is invalid, in which case nothing is trusted."""
    if trusted is None:
        say(
            f"llm-kb: {show_place(trust_path(find_user_dir()))} is not valid, so nothing is"
            " trusted; 'llm kb trust' replaces it"
        )


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
def untrust(file: Path | None) -> None:
    """
    Withdraw the trust in this workspace, or in FILE

    FILE need not exist any more; 'llm kb trust --list' names the trusted files.

    \b
        llm kb untrust
        llm kb untrust ~/old-project/llm-kb.toml
    """
    if file is None:
        workspace = find_workspace(find_cwd(), os.environ, user_dir=find_user_dir())
        if workspace is None:
            require_cwd()
            raise click.ClickException("there is no workspace here; name the FILE to untrust")
        file = workspace.path
    say_corrupt(read_trust(find_user_dir()))
    spellings = _spell((find_cwd() or Path("/")) / file)
    withdrawn = [path for path in spellings if withdraw_trust(path, find_user_dir())]
    for path in withdrawn:
        say(f"{show_place(path)} is no longer trusted")
    if not withdrawn:
        say(f"{show_place(spellings[0])} was not trusted")


def _spell(file: Path) -> list[Path]:
    """Return the paths that may be recorded for a file: its own, and with links resolved."""
    # The trusted file may be a link itself, reached through a directory that is a link.
    beside = Path(os.path.realpath(file.parent)) / file.name
    paths = (Path(os.path.normpath(file)), beside, Path(os.path.realpath(file)))
    return list(dict.fromkeys(paths))
