"""`llm kb show`: print the files of subjects as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._options import complete_topic_slash_pattern, kb_cfg_option
from llm_kb.commands._output import show_content
from llm_kb.config.fragments import split_knowledge
from llm_kb.config.layers import topic_key
from llm_kb.errors import KbError, NoMatchError, NoPartError, show_place
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.subjects.selection import Selection, select
from llm_kb.subjects.topics import Config, Topic


@click.command()
@click.argument(
    "names",
    metavar="TOPIC/PATTERN...",
    nargs=-1,
    required=True,
    shell_complete=complete_topic_slash_pattern,
)
@kb_cfg_option
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
    with explain_disabled(kb):
        found = [_find(kb, name) for name in names]
    for opened, selection in found:
        for data in kb.read_raw(opened, selection):
            show_content(data, nl=False)


def _find(kb: KnowledgeBase, name: str) -> tuple[OpenTopic, Selection]:
    """Return the topic and the subjects of a name. Raises KbError."""
    topic, pattern = split_knowledge(name)
    selection = kb.require(topic, pattern)
    return kb.find_topic(topic), selection


@contextmanager
def explain_disabled(kb: KnowledgeBase) -> Iterator[None]:
    """Name the setting in an error for a pattern that matches only disabled subjects."""
    try:
        yield
    except NoPartError:
        raise  # the subject was found
    except NoMatchError as error:
        setting = _find_setting(kb.config, error)
        if setting is None:
            raise
        raise KbError(
            f"no subject of topic {error.topic!r} matches {error.pattern!r}: "
            f"subjects that would match are disabled by {setting}"
        ) from error


def _find_setting(config: Config, error: NoMatchError) -> str | None:
    topic = next((topic for topic in config.topics if topic.id == error.topic), None)
    if topic is None or not topic.disabled or not _matches(topic, (), error.pattern):
        return None
    # One entry may disable all that the pattern matches, or several together.
    entries = [e for e in topic.disabled if not _matches(topic, (e,), error.pattern)]
    key = topic_key(topic.id, "disabled")
    places = [show_place(o.place) for o in config.origins.get(key, ()) if o.place is not None]
    return f"{key} ({', '.join(entries or topic.disabled)}) in {', '.join(places)}"


def _matches(topic: Topic, disabled: tuple[str, ...], pattern: str) -> bool:
    catalog = DirectoryCatalog(replace(topic, disabled=disabled))
    return bool(select(catalog, [pattern]).subjects)
