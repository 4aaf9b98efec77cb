"""`llm kb remove`: take a topic out of the configuration."""

from __future__ import annotations

import click

from llm_kb.commands._completion import complete_topic
from llm_kb.commands._editing import edit_file, file_of_topic
from llm_kb.commands._output import confirm, say
from llm_kb.config.changes import drop_topic
from llm_kb.errors import show_place


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.option("yes", "-y", "--yes", is_flag=True, help="Remove without asking")
def remove(topic: str, yes: bool) -> None:
    """
    Take TOPIC out of the configuration; its files stay

    \b
        llm kb remove project
        llm kb remove project -y
    """
    file = file_of_topic(topic)
    confirm(f"Remove topic {topic} from {show_place(file.path)}?", yes=yes)
    edit_file(file, lambda document: drop_topic(document, topic))
    say(f"Removed topic {topic} from {show_place(file.path)}; its files are where they were")
