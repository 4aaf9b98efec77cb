"""`llm kb mcp`: serve the knowledge base to MCP clients, or add it to their configuration."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from llm_kb import addons, hookspecs
from llm_kb.host.mcp.server import run
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.terminal import options, output
from llm_kb.terminal.screen import is_terminal


def _read_added(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[str]:
    """Return the tools of the add-ons that are named."""
    known: dict[str, list[str]] = {}
    for add_on, each in addons.gather(hookspecs.tools) if value else ():
        known.setdefault(add_on, []).append(each.name)
    names = value.split(",") if value else []
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known)}")
    return [tool for name in names for tool in known[name]]


@click.command()
@click.option(
    "-d",
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve the knowledge base in effect here, not in the current directory",
)
@options.knowledge_options
@click.option(
    "added",
    "--with",
    metavar="NAMES",
    callback=_read_added,
    help="Also serve the tools of these add-ons, such as references",
)
def mcp(
    directory: Path | None,
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
    added: list[str],
) -> None:
    """
    Serve the knowledge base to MCP clients

    A client starts this command and speaks to it over standard input and output. The
    server's instructions are the menu and the subjects pre-loaded by -k, or their names if
    they do not fit. Its tools are learn, and search_knowledge where there is much to learn.
    `llm kb connect` writes this command into the configuration of a client.

    \b
        llm kb mcp --directory ~/project -k 'project/maintainers/*'
    """
    given = {"fragments": kb_cfg, "knowledge": knowledge, "tools": added}
    discover = partial(KnowledgeBase.discover, directory, **given)
    if is_terminal(sys.stdin):
        output.say("llm-kb: waiting for an MCP client on standard input; Ctrl-C ends")
    run(discover)
