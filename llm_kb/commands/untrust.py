"""`llm kb untrust`: take trust back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.commands._config import say, user_dir
from llm_kb.commands._errors import kb_errors
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
            raise click.ClickException("there is no workspace here; name the FILE to untrust")
        file = workspace.path
    file = Path(os.path.normpath((find_cwd() or Path("/")) / file))
    was_trusted = withdraw_trust(file, user_dir())
    say(f"{file} is no longer trusted" if was_trusted else f"{file} was not trusted")
