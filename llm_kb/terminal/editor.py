"""The user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import click

from llm_kb.errors import show_place
from llm_kb.terminal.screen import has_terminal


def open_editor(path: Path) -> None:
    """Open a file in $VISUAL, $EDITOR or the system's editor, and wait for it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor and not has_terminal():
        raise click.ClickException(
            f"there is no terminal to edit on; the file is {show_place(path)}"
        )
    # Not `click.edit`: some versions pass the name through a shell.
    try:
        subprocess.run([*shlex.split(editor or "vi"), str(path)], check=True)  # noqa: S603
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        named = f"the editor of $VISUAL or $EDITOR, {editor or 'vi'!r},"
        raise click.ClickException(f"{named} failed: {error}") from error
