"""`llm kb config`, `path`, `trust`, `untrust`: the effective configuration, and its trust."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from llm_kb.commands._config import require_cwd, workspace_file
from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import confirm, say, show, show_content, show_json
from llm_kb.config.layers import TOPIC, list_defaults
from llm_kb.config.load import read_layers, user_source
from llm_kb.config.settings import Layer, Origin, Setting
from llm_kb.config.trust import is_trusted, render_request, render_value, set_trust
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import show_place
from llm_kb.knowledge_base.user_dir import find_user_dir, load_here


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
    effective = load_here(kb_cfg)
    defaults = (Origin(layer=Layer.DEFAULT),)
    settings = {key: Setting(value=v, origins=defaults) for key, v in list_defaults().items()}
    settings |= effective.settings
    if json_:
        show_json([_describe(key, setting) for key, setting in settings.items()])
    else:
        show("\n".join(_render(settings)))
    for key in effective.withheld:
        say(f"llm-kb: {key} in {show_place(effective.workspace_file)} waits for 'llm kb trust'")


def _describe(key: str, setting: Setting) -> dict[str, object]:
    origins = [{"layer": each.layer.value, "place": each.place} for each in setting.origins]
    return {"key": key, "value": setting.value, **origins[-1], "origins": origins}


def _render(settings: Mapping[str, Setting]) -> Iterator[str]:
    """Yield the settings as TOML with their layers, then the file of each layer.

    Defaults are shown for `[kb]` alone.
    """
    tables: dict[str, list[str]] = {}
    origins: dict[Origin, None] = {}
    for key, setting in settings.items():
        table, _, name = key.rpartition(".")
        if table == "kb" or setting.origins[-1].layer is not Layer.DEFAULT:
            setters = setting.origins if isinstance(setting.value, tuple) else setting.origins[-1:]
            layers = dict.fromkeys(origin.layer.value for origin in setters)
            line = f"{f'{name} = {render_value(setting.value)}':<40}  # {', '.join(layers)}"
            tables.setdefault(table, []).append(line)
            origins |= dict.fromkeys(setting.origins)
    for table, lines in tables.items():
        start, topic, id_ = table.partition(f"{TOPIC}.")
        header = f'{start}{topic}"{id_}"' if "." in id_ else table
        yield from (f"[{header}]", *lines, "")
    for origin in origins:
        if origin.place is not None:
            yield f"# {origin.layer.value}: {show_place(origin.place)}"


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
    file = (None if user else workspace_file()) or user_source(find_user_dir())
    show_content(os.fsencode(file.path))  # as bytes: a name need not be text


@click.command()
@click.option("yes", "-y", "--yes", is_flag=True, help="Trust without asking")
def trust(yes: bool) -> None:
    """
    Trust the settings that this workspace requests

    Needed for 'auto = true', for tools that a workspace offers ('offer = true'), for showing
    your own topics and references, and for a checkout that belongs to another user: a
    repository you cloned cannot decide that. Trust ends when the configuration changes. It
    is recorded in kb-trust.json in the user directory of llm.

    \b
        llm kb trust
    """
    file, user_dir = _require_workspace(), find_user_dir()
    layers = read_layers(find_cwd(), user_dir=user_dir, environ=os.environ, any_owner=True)
    if not layers.withheld and not layers.foreign:
        say(f"Nothing in {show_place(file)} needs trust")
    elif is_trusted(file, layers.digest, user_dir):
        say(f"{show_place(file)} is trusted already")
    else:
        say(f"{render_request(layers)}\n")
        confirm("Trust it?", yes=yes)
        set_trust(file, layers.digest, user_dir)
        say(f"Trusted {show_place(file)}")


@click.command()
def untrust() -> None:
    """
    Withdraw the trust in this workspace

    \b
        llm kb untrust
    """
    file = _require_workspace()
    was_trusted = set_trust(file, None, find_user_dir())
    say(f"{show_place(file)} {'is no longer' if was_trusted else 'was not'} trusted")


def _require_workspace() -> Path:
    file = workspace_file()
    if file is None:
        require_cwd()
        raise click.ClickException("there is no workspace here; see 'llm kb init'")
    return file.path
