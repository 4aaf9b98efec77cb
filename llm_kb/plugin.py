"""Hook implementations, nothing else. Imported at every start of `llm`."""

from __future__ import annotations

import click
from llm import hookimpl

from llm_kb.entry import LazyGroup


@hookimpl
def register_commands(cli: click.Group) -> None:
    """Add the `kb` group."""
    cli.add_command(
        LazyGroup("kb", help="See, check and tune the knowledge that models can learn")
    )
