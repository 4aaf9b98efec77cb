"""`llm kb learn` and `show`: print subjects as a model gets them, and as they are."""

from __future__ import annotations

import shlex

import click

from llm_kb.commands import _options
from llm_kb.commands._config import say_withheld
from llm_kb.commands._output import show_content
from llm_kb.errors import KbError, NoPartError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.subjects.selection import Selection


@click.command()
@click.argument("topic", shell_complete=_options.complete_topic)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=_options.complete_slug)
@_options.knowledge_options
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


@click.command()
@click.argument(
    "names",
    metavar="TOPIC/PATTERN...",
    nargs=-1,
    required=True,
    shell_complete=_options.complete_topic_slash_slug,
)
@_options.kb_cfg_option
def show(names: tuple[str, ...], kb_cfg: tuple[str, ...]) -> None:
    """
    Print subjects as they are on disk, one after the other

    Use `llm kb learn` to print them as a model gets them.

    \b
        llm kb show project/code-quality
        llm kb show 'project/code-quality#naming'
        llm kb show 'project/maintainers/*' | wc
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    # Find all before printing any: partial output is easily mistaken for all of it.
    for opened, selection in [_find(kb, name) for name in names]:
        for data in kb.read_raw(opened, selection):
            show_content(data, nl=False)


def _find(kb: KnowledgeBase, name: str) -> tuple[OpenTopic, Selection]:
    """Return the topic and the subjects of a name. Raises KbError."""
    topic, pattern = split_knowledge(name)
    try:
        selection = kb.require(topic, pattern)
    except NoPartError as error:  # `show` prints the whole subject for the pattern that lists them
        command = shlex.join(["llm", "kb", "learn", error.topic, error.outline])
        raise KbError(f"{error.problem}; `{command}` lists them") from error
    return kb.find_topic(topic), selection
