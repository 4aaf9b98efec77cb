"""`llm kb learned`: choose what of a topic is pre-loaded."""

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
def learned(topic: str, patterns: tuple[str, ...], remove: bool) -> None:
    """
    Pre-load the subjects of TOPIC that match PATTERN

    They are then part of every section, and no longer in the menu. --remove takes a
    PATTERN back as it was written.

    \b
        llm kb learned project code-quality 'maintainers/*'
        llm kb learned project code-quality --remove
    """
    edit_patterns(topic, "learned", patterns, remove=remove)
