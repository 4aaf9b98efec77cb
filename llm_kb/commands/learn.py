"""`llm kb learn`: print what the `learn` tool would return."""

from __future__ import annotations

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._config import say_withheld
from llm_kb.commands._options import complete_slug, complete_topic, knowledge_options
from llm_kb.commands._output import show_content


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=complete_slug)
@knowledge_options
def learn(
    topic: str, patterns: tuple[str, ...], knowledge: tuple[str, ...], kb_cfg: tuple[str, ...]
) -> None:
    """
    Print what the learn tool returns for TOPIC and these PATTERNs

    Without a PATTERN it lists the subjects that can be learned. With -k, it
    answers as it would in a request with that -k.

    \b
        llm kb learn project
        llm kb learn project code-quality
        llm kb learn project 'maintainers/*' README
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    say_withheld(kb.config)
    text = kb.learn(topic, list(patterns) or None)
    show_content(text, nl=not text.endswith("\n"))
