"""`llm kb config` and `path`: the effective configuration, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import click

from llm_kb.commands._config import current_config
from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_content, show_json
from llm_kb.config.layers import TABLES, TOPIC, iter_values, topic_key
from llm_kb.config.trust import render_value
from llm_kb.config.workspace import find_cwd, find_workspace, user_config_path
from llm_kb.errors import show_place
from llm_kb.subjects.topics import Config, Layer, Origin
from llm_kb.user_dir import find_user_dir


@click.command()
@kb_cfg_option
@click.option("json_", "--json", is_flag=True, help="Output as a JSON array, defaults included")
def config(kb_cfg: tuple[str, ...], json_: bool) -> None:
    """
    Show each effective value and the layer it came from

    Layers, lowest first: default, user, workspace, config fragment (--kb-cfg),
    command line. Settings that wait for 'llm kb trust' are named on standard error.

    \b
        llm kb config
        llm kb config --json
        llm kb config --kb-cfg 'kb.topic.project.learned+="maintainers/*"'
    """
    effective = current_config(kb_cfg)
    if json_:
        show_json([_describe(effective, *each) for each in _list_values(effective)])
    else:
        show("\n".join(_render(effective)))
    for key in effective.withheld:
        say(f"llm-kb: {key} in {show_place(effective.workspace_file)} waits for 'llm kb trust'")


def _list_values(config: Config) -> Iterator[tuple[str, str, object]]:
    """Yield the table, name and value of every setting, defaults included."""
    for table, name, value in iter_values(config):
        yield table, name, _plain(value)
    for topic in (*config.topics, *config.adjustments):
        for name in TABLES[TOPIC]:
            if topic in config.topics or topic_key(topic.id, name) in config.origins:
                value = getattr(topic, "root" if name == "subjects" else name)
                yield f"{TOPIC}.{topic.id}", name, _plain(value)


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _describe(config: Config, table: str, name: str, value: object) -> dict[str, object]:
    origins = config.origins.get(f"{table}.{name}", (Origin(layer=Layer.DEFAULT),))
    return {
        "key": f"{table}.{name}",
        "value": value,
        "layer": origins[-1].layer.value,
        "place": origins[-1].place,
        "origins": [{"layer": origin.layer.value, "place": origin.place} for origin in origins],
    }


def _render(config: Config) -> Iterator[str]:
    """Yield the values as TOML with their layers, then the file of each layer.

    Defaults are shown for `[kb]` alone.
    """
    for table, group in groupby(_list_values(config), key=itemgetter(0)):
        lines = [_render_value(config, table, name, value) for _, name, value in group]
        if shown := [line for line in lines if line]:
            yield from (f"[{_quote_id(table)}]", *shown, "")
    origins = dict.fromkeys(chain.from_iterable(config.origins.values()))
    for origin in origins:
        if origin.place is not None:
            yield f"# {origin.layer.value}: {show_place(origin.place)}"


def _render_value(config: Config, table: str, name: str, value: object) -> str:
    """Return the line of a value; empty for a default that is not shown."""
    origins = config.origins.get(f"{table}.{name}", (Origin(layer=Layer.DEFAULT),))
    if value is None or (table != "kb" and origins[-1].layer is Layer.DEFAULT):
        return ""
    setting = origins if isinstance(value, list) else origins[-1:]
    layers = dict.fromkeys(origin.layer.value for origin in setting)
    return f"{f'{name} = {render_value(value)}':<40}  # {', '.join(layers)}"


def _quote_id(table: str) -> str:
    start, topic, id_ = table.partition(f"{TOPIC}.")
    return f'{start}{topic}"{id_}"' if "." in id_ else table


@click.command()
@click.option("--user", is_flag=True, help="The user's file, whether it exists or not")
def path(user: bool) -> None:
    """
    Print the path of the configuration file in effect

    This is the workspace's file, which the other commands edit. Without a workspace
    it is the user's file.

    \b
        llm kb path
        $EDITOR "$(llm kb path)"
    """
    file = None if user else find_workspace(find_cwd(), os.environ, user_dir=find_user_dir())
    # As bytes: a name need not be text.
    show_content(os.fsencode(file.path if file else user_config_path(find_user_dir())))
