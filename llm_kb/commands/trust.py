"""`llm kb trust` and `untrust`: decide whether a workspace's settings take full effect."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import confirm, say
from llm_kb.config.load import read_layers
from llm_kb.config.trust import is_trusted, render_request, set_trust
from llm_kb.config.workspace import find_cwd, find_workspace
from llm_kb.errors import show_place
from llm_kb.user_dir import find_user_dir


@click.command()
@click.option("yes", "-y", "--yes", is_flag=True, help="Trust without asking")
def trust(yes: bool) -> None:
    """
    Trust the settings that this workspace requests

    Needed for 'auto = true', for showing your own topics and references, and for
    a checkout that belongs to another user: a repository you cloned cannot decide
    that. Trust ends when the configuration changes. It is recorded in kb-trust.json in the
    user directory of llm.

    \b
        llm kb trust
    """
    file, user_dir = _require_workspace(), find_user_dir()
    layers = read_layers(find_cwd(), user_dir=user_dir, environ=os.environ, any_owner=True)
    if not layers.withheld and not layers.foreign:
        say(f"Nothing in {show_place(file)} needs trust")
    elif is_trusted(file, layers.digest, user_dir):
        say(f"{show_place(file)} is trusted already")
    else:
        request = render_request(file, layers.workspace, layers.withheld, layers.foreign)
        say(f"{request}\n")
        confirm("Trust it?", yes=yes)
        set_trust(file, layers.digest, user_dir)
        say(f"Trusted {show_place(file)}")


@click.command()
def untrust() -> None:
    """
    Withdraw the trust in this workspace

    \b
        llm kb untrust
    """
    file = _require_workspace()
    was_trusted = set_trust(file, None, find_user_dir())
    say(f"{show_place(file)} {'is no longer' if was_trusted else 'was not'} trusted")


def _require_workspace() -> Path:
    file = find_workspace(find_cwd(), os.environ, user_dir=find_user_dir())
    if file is None:
        require_cwd()
        raise click.ClickException("there is no workspace here; see 'llm kb init'")
    return file
