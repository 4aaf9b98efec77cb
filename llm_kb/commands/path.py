"""`llm kb path`: where the configuration is."""

from __future__ import annotations

import os

import click

from llm_kb.commands._config import user_dir
from llm_kb.commands._errors import kb_errors
from llm_kb.workspace import find_cwd, find_workspace, user_config_path


@click.command()
@click.option("--user", is_flag=True, help="The user's file, whether it exists or not")
@kb_errors
def path(user: bool) -> None:
    """
    Print the path of the configuration file in effect

    This is the workspace's file, which the other commands edit. Without a workspace
    it is the user's file.

    \b
        llm kb path
        $EDITOR "$(llm kb path)"
    """
    file = None if user else find_workspace(find_cwd(), os.environ, user_dir=user_dir())
    # As bytes: a name need not be text.
    click.echo(os.fsencode(file.path if file else user_config_path(user_dir())))
