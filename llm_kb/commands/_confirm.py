"""Ask before something is done, where there is someone to ask."""

from __future__ import annotations

import sys

import click

from llm_kb.plain_text import visible_line
from llm_kb.terminal import is_terminal


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal and abort on no; without a terminal require `-y`."""
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise click.ClickException(
            f"{visible_line(question)} There is no terminal to ask on: use -y to say yes"
        )
    click.confirm(visible_line(question), abort=True, err=True)
