"""A command to imitate: parse, call one function, print."""

from __future__ import annotations

import click

from llm_kb.knowledge_base.kinds import load_here
from llm_kb.terminal.output import show, show_json


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
def roots(json_: bool) -> None:
    """
    Show the directory of every topic

    \b
        llm kb roots
        llm kb roots --json
    """
    found = {topic.id: str(topic.root) for topic in load_here().topics}
    if json_:
        show_json(found)
    else:
        show("\n".join(f"{id_}: {root}" for id_, root in found.items()))
