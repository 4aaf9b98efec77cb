"""The user's editor."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

from llm_kb.errors import show_place
from llm_kb.terminal.screen import has_terminal


def open_editor(path: Path) -> None:
    """Open a file in $VISUAL, $EDITOR or the system's editor, and wait for it."""
    given = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    editor = next(filter(None, given), "")
    if not editor and not has_terminal():
        raise click.ClickException(
            f"there is no terminal to edit on; the file is {show_place(path)}"
        )
    # As git does it: what the person wrote goes through a shell, the name of the file does not.
    command = ["sh", "-c", f'{editor or "vi"} "$@"', "editor", str(path)]
    if status := subprocess.run(command, check=False).returncode:  # noqa: S603
        named = f"the editor of $VISUAL or $EDITOR, {editor or 'vi'!r},"
        raise click.ClickException(f"{named} failed with status {status}")
