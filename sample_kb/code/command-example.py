"""A command to imitate: parse, call one function, echo."""

from __future__ import annotations

import json
from pathlib import Path

import click
import llm

from llm_kb.commands._errors import kb_errors
from llm_kb.config.load import load_config


@click.command()
@click.option("as_json", "--json", is_flag=True, help="Output as JSON")
@kb_errors
def roots(*, as_json: bool) -> None:
    r"""Show the directory of every topic

    Example usage:

    \b
        llm kb roots
        llm kb roots --json
    """
    config = load_config(Path.cwd(), user_dir=llm.user_dir(), environ={})
    found = {topic.id: str(topic.root) for topic in config.topics}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for topic_id, root in found.items():
        click.echo(f"{topic_id}: {root}")
