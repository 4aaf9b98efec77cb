"""`llm kb show`: the files behind subjects, byte for byte."""

from __future__ import annotations

import click

from llm_kb.api import KnowledgeBase
from llm_kb.assignments import split_knowledge
from llm_kb.commands._completion import complete_topic_slash_pattern
from llm_kb.commands._disabled import explain_disabled
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._options import kb_cfg_option
from llm_kb.errors import NoMatchError
from llm_kb.selection import find_near, select
from llm_kb.topics import Catalog, Subject


@click.command()
@click.argument(
    "names",
    metavar="TOPIC/PATTERN...",
    nargs=-1,
    required=True,
    shell_complete=complete_topic_slash_pattern,
)
@kb_cfg_option
@kb_errors
def show(names: tuple[str, ...], kb_cfg: tuple[str, ...]) -> None:
    """
    Print the raw files of subjects, one after the other

    `llm kb learn` prints what a model gets of them instead.

    \b
        llm kb show project/code-quality
        llm kb show 'project/maintainers/*' | wc
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    # All are found before one is printed: half an output is easily taken for the whole.
    with explain_disabled(kb):
        found = [pair for name in names for pair in _find(kb, name)]
    for catalog, subject in found:
        click.echo(catalog.read(subject).data, nl=False)


def _find(kb: KnowledgeBase, name: str) -> list[tuple[Catalog, Subject]]:
    """Return the subjects that a name stands for, each with its catalog. Raises KbError."""
    topic, pattern = split_knowledge(name)
    catalog = kb.find_topic(topic).catalog
    selection = select(catalog, [pattern])
    if selection.missing:
        raise NoMatchError(topic, pattern, find_near(pattern, catalog))
    return [(catalog, subject) for subject in selection.subjects]
