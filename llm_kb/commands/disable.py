"""`llm kb disable`: exclude subjects of a topic."""

from __future__ import annotations

import click

from llm_kb.commands._completion import complete_slug, complete_topic
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._patterns import edit_patterns


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", shell_complete=complete_slug
)
@click.option("--remove", is_flag=True, help="Take the patterns out instead")
@kb_errors
def disable(topic: str, patterns: tuple[str, ...], remove: bool) -> None:
    """
    Exclude the subjects of TOPIC that match PATTERN

    A disabled subject is never listed, loaded, suggested or found. --remove takes a
    PATTERN back as it was written.

    \b
        llm kb disable project drafts 'old/**'
        llm kb disable project drafts --remove
    """
    edit_patterns(topic, "disabled", patterns, remove=remove)
