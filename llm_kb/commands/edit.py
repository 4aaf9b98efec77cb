"""`llm kb edit`: open a subject in an editor."""

from __future__ import annotations

import click

from llm_kb.commands._completion import complete_topic_slash_slug
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._subjects import find_file, find_topic, open_editor, split_name


@click.command()
@click.argument("name", metavar="TOPIC/SLUG", shell_complete=complete_topic_slash_slug)
@kb_errors
def edit(name: str) -> None:
    """
    Open a subject in $VISUAL or $EDITOR

    SLUG is exact, with or without its extension and dots, so that a hidden
    subject can be edited as well.

    \b
        llm kb edit project/code-quality
        llm kb edit project/internal-notes
    """
    topic_id, slug = split_name(name)
    open_editor(find_file(find_topic(topic_id), slug))
