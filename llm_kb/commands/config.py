"""`llm kb config` and `path`: the effective configuration, and its file."""

from __future__ import annotations

import os

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._options import knowledge_options
from llm_kb.commands._output import say, show_content, show_json
from llm_kb.config.report import add_knowledge, list_values, render_values
from llm_kb.config.workspace import find_cwd, find_workspace, user_config_path
from llm_kb.errors import show_place
from llm_kb.user_dir import find_user_dir


@click.command()
@knowledge_options
@click.option("json_", "--json", is_flag=True, help="Output as a JSON array, defaults included")
def config(knowledge: tuple[str, ...], kb_cfg: tuple[str, ...], json_: bool) -> None:
    """
    Show each effective value and the layer it came from

    Layers, lowest first: default, user, workspace, config fragment (--kb-cfg),
    command line. Settings that wait for 'llm kb trust' are named on standard error.

    \b
        llm kb config
        llm kb config --json
        llm kb config --kb-cfg 'kb.topic.project.learned+="maintainers/*"'
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    effective = add_knowledge(kb.config, kb.knowledge)
    values = list_values(effective)
    if json_:
        show_json([value.as_dict() for value in values])
    else:
        click.echo(render_values(values, effective.workspace))
    for key in effective.withheld:
        say(f"llm-kb: {key} in {show_place(effective.workspace_file)} waits for 'llm kb trust'")


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
