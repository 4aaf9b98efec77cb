"""`llm kb mcp`: serve the knowledge base to MCP clients, or add it to their configuration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from llm_kb.config.workspace import find_workspace, owner_of
from llm_kb.errors import KbError, show_place
from llm_kb.files.repository import find_repository
from llm_kb.host.mcp.server import run
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.terminal import configured, options, output
from llm_kb.terminal.screen import is_terminal

_CLIENTS = ("claude", "codex", "cursor", "gemini", "opencode", "qwen", "vscode")

SLOW = (
    "llm-kb is not on your PATH, so the entry starts llm with all its plugins, which takes seconds;"
    " https://github.com/llm-kb/llm-kb/blob/main/docs/clients.md says how to put it there"
)


@click.command()
@click.option(
    "-d",
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve the knowledge base in effect here, not in the current directory",
)
@options.knowledge_options
@click.option(
    "--install", type=click.Choice(_CLIENTS), help="Write the configuration of this client instead"
)
@click.option("yes", "-y", "--yes", is_flag=True, help="Write a configuration without asking")
def mcp(
    directory: Path | None,
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
    install: str | None,
    yes: bool,
) -> None:
    """
    Serve the knowledge base to MCP clients

    A client starts this command and speaks to it over standard input and output. The
    server's instructions are the menu and the subjects pre-loaded by -k, or their names if
    they do not fit. --install writes the configuration of a client for this project (for Codex: for
    all projects), and keeps its other settings.

    \b
        llm kb mcp --install claude
        llm kb mcp --directory ~/project -k 'project/maintainers/*'
    """
    discover = partial(KnowledgeBase.discover, directory, fragments=kb_cfg, knowledge=knowledge)
    if install is not None:
        try:
            discover()  # an error rather than a server that has nothing
        except KbError as error:
            if knowledge or kb_cfg:
                raise
            output.say(f"llm-kb: {error}. The entry works once that is fixed")
        options = ["--directory", str(directory.absolute())] if directory else []
        for name, values in (("-k", knowledge), ("--kb-cfg", kb_cfg)):
            options += [word for value in values for word in (name, value)]
        _change_client(install, options, yes=yes)
        return
    if is_terminal(sys.stdin):
        output.say("llm-kb: waiting for an MCP client on standard input; Ctrl-C ends")
    run(discover)


def _change_client(client: str, options: Sequence[str], *, yes: bool) -> None:
    """Add the server to a client, and say what changes."""
    from llm_kb.host.mcp import clients  # noqa: PLC0415 - a client's start does not need it

    cwd = configured.require_cwd()
    workspace = find_workspace(cwd, {}, user_dir=find_user_dir())
    repository = find_repository(cwd)
    root = repository.root if repository else cwd
    project = owner_of(workspace) if workspace else root
    file, command = clients.find_file(client, project), clients.find_command(client, options)
    entry, data = clients.add_server(client, file, command)
    place = show_place(file)
    if data is None:
        output.say(f"{place} already has this server")
        return
    output.show_content(entry)
    output.confirm(f"Write this into {place}?", yes=yes)
    clients.write_file(client, project, data)
    output.say(f"Wrote {place}; restart {client}, or let it reload its servers")
    if client == "claude":
        output.say("Claude Code asks you to approve the server when you start it in this project")
    if command[0] == "llm":
        output.say(SLOW)
