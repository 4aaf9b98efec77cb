"""`llm kb untrust`: take trust back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.commands._config import require_cwd, say, user_dir
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._trust import say_corrupt
from llm_kb.errors import show_place
from llm_kb.trust import read_trust
from llm_kb.trust import untrust as withdraw_trust
from llm_kb.workspace import find_cwd, find_workspace


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@kb_errors
def untrust(file: Path | None) -> None:
    """
    Withdraw the trust in this workspace's configuration, or in FILE

    FILE need not exist any more; 'llm kb trust --list' names what is trusted.

    \b
        llm kb untrust
        llm kb untrust ~/old-project/llm-kb.toml
    """
    if file is None:
        workspace = find_workspace(find_cwd(), os.environ, user_dir=user_dir())
        if workspace is None:
            require_cwd()
            raise click.ClickException("there is no workspace here; name the FILE to untrust")
        file = workspace.path
    say_corrupt(read_trust(user_dir()))
    spellings = _spell((find_cwd() or Path("/")) / file)
    withdrawn = [path for path in spellings if withdraw_trust(path, user_dir())]
    for path in withdrawn:
        say(f"{show_place(path)} is no longer trusted")
    if not withdrawn:
        say(f"{show_place(spellings[0])} was not trusted")


def _spell(file: Path) -> list[Path]:
    """Return the paths under which a file may be recorded: its own, and with links resolved."""
    # The link itself may be what is trusted, reached through a directory that is a link.
    beside = Path(os.path.realpath(file.parent)) / file.name
    paths = (Path(os.path.normpath(file)), beside, Path(os.path.realpath(file)))
    return list(dict.fromkeys(paths))
