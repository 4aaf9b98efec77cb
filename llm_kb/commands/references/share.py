"""`llm kb references export` and `import`: a topic as one file, for others."""

from __future__ import annotations

from pathlib import Path

import click

from llm_kb.commands._errors import kb_errors
from llm_kb.commands._output import say
from llm_kb.commands.references._shared import complete_reference, current_library, show_progress
from llm_kb.commands.references.fetch import json_option, tell_created
from llm_kb.references.ask import find_id
from llm_kb.references.fetch.share import export_topic, import_topic
from llm_kb.rendering.plain_text import count


@click.command()
@click.argument("topic", shell_complete=complete_reference)
@click.argument("file", type=click.Path(path_type=Path))
@kb_errors
def export(topic: str, file: Path) -> None:
    """
    Write a topic into a new .tar.gz, with the record of its files

    \b
        llm kb references export topic-dioxus-ui dioxus.tar.gz
    """
    library = current_library()
    topic = find_id(library, topic)
    say(f"Wrote {topic} to {file}: {count(export_topic(library, topic, file), 'file')}")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@kb_errors
def import_(file: Path, json_: bool) -> None:
    """
    Make the topic that another has exported, verified by its hashes

    Nothing is fetched; a refresh asks the sources that the topic names.

    \b
        llm kb references import dioxus.tar.gz
    """
    with show_progress() as progress:
        created = import_topic(current_library(), file, progress)
    tell_created(created, json_=json_)
