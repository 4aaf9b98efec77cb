"""`llm kb mcp`: serve the knowledge base to MCP clients, or add it to their configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from llm_kb.capture.notes import find_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._options import knowledge_options
from llm_kb.commands._output import confirm, say, show_content
from llm_kb.config.workspace import find_workspace
from llm_kb.errors import show_place
from llm_kb.files.atomic import replace_file
from llm_kb.host.terminal import is_terminal
from llm_kb.mcp.server import Served, Server
from llm_kb.mcp.stdio import run
from llm_kb.user_dir import find_user_dir

TOKEN = "LLM_KB_MCP_TOKEN"  # noqa: S105 - the name of a variable
_CLIENTS = ("claude", "codex", "cursor", "gemini", "opencode", "qwen", "vscode")


@click.command()
@click.option(
    "-d",
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve the knowledge base in effect here, not in the current directory",
)
@knowledge_options
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP, to several clients")
@click.option("--write", is_flag=True, help="With --http: also serve the tools that write")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help=f"With --http: the token clients need, in place of ${TOKEN}",
)
@click.option(
    "hosts",
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="With --http: another name by which clients reach this server",
)
@click.option(
    "--install", type=click.Choice(_CLIENTS), help="Write the configuration of this client instead"
)
@click.option("--uninstall", type=click.Choice(_CLIENTS), help="Take it out again")
@click.option("yes", "-y", "--yes", is_flag=True, help="Write a configuration without asking")
def mcp(
    directory: Path | None,
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
    http: str | None,
    write: bool,
    token_file: Path | None,
    hosts: tuple[str, ...],
    install: str | None,
    uninstall: str | None,
    yes: bool,
) -> None:
    """
    Serve the knowledge base to MCP clients

    A client starts this command and speaks to it over standard input and output. The
    server's instructions are the menu and the subjects pre-loaded by -k, as far as they
    fit. --install writes the configuration of a client for this project (for Codex: for
    all projects), and keeps its other settings.

    With --http one process serves several clients, read-only unless --write is
    given. Clients on other machines, and all clients with --write, need a token; the server
    makes one if you give none.

    \b
        llm kb mcp
        llm kb mcp --directory ~/project -k 'project/maintainers/*'
        llm kb mcp --install claude
        llm kb mcp --http 127.0.0.1:8765
    """
    if http is None and (write or token_file or hosts):
        raise click.UsageError("--write, --token-file and --allow-host go with --http")
    if http is not None and (install or uninstall):
        raise click.UsageError("--install is for clients that start the server; see --http")
    if install is not None:
        _change_client(install, _list_options(directory, knowledge, kb_cfg), yes=yes)
        return
    if uninstall is not None:
        _change_client(uninstall, None, yes=yes)
        return
    served = Served(
        directory=str(directory) if directory else None,
        fragments=kb_cfg,
        knowledge=knowledge,
        can_write=write or http is None,
    )
    if http is None:
        _serve_stdio(served)
    else:
        _serve_http(served, http, _read_token(token_file), hosts)


def _serve_stdio(served: Served) -> None:
    if sys.stdin is None or sys.stdout is None:
        raise click.ClickException("a client speaks over standard input and output; one is closed")
    if is_terminal(sys.stdin):
        click.echo("llm-kb: waiting for an MCP client on standard input; Ctrl-C ends", err=True)
    run(Server(served))


def _serve_http(served: Served, address: str, given: str | None, hosts: Sequence[str]) -> None:
    # Imported here: a client that starts this command does not wait for it.
    from llm_kb.mcp import http  # noqa: PLC0415

    place = http.parse_address(address)
    token = http.find_token(given, is_required=served.can_write or not place.is_loopback)
    guard = http.Guard(address=place, token=token, names=[name.lower() for name in hosts])
    served.open()  # a configuration that cannot be read is an error at once
    if token is not None and given is None:
        say(f"llm-kb: clients need the header 'Authorization: Bearer {token}'")
    http.serve(served, guard, lambda url: say(f"llm-kb: serving {url}; Ctrl-C ends"))


def _read_token(path: Path | None) -> str | None:
    """Return the token from the file or the environment; None if there is none."""
    if path is None:
        return os.environ.get(TOKEN) or None
    with click.open_file(str(path), "rb") as file:
        return bytes(file.read(1_000)).decode("utf-8", "replace").strip()


def _list_options(
    directory: Path | None, knowledge: Sequence[str], kb_cfg: Sequence[str]
) -> list[str]:
    """Return the options with which a client must start the server."""
    options = ["--directory", str(directory.absolute())] if directory else []
    for name, values in (("-k", knowledge), ("--kb-cfg", kb_cfg)):
        options += [word for value in values for word in (name, value)]
    return options


def _change_client(client: str, options: Sequence[str] | None, *, yes: bool) -> None:
    """Add the server to a client, or without options take it out, and say what changes."""
    from llm_kb.mcp.clients import plan_change  # noqa: PLC0415 - as above

    is_added = options is not None
    planned = plan_change(client, _find_project(), options)
    place = show_place(planned.path)
    if not planned.is_needed:
        say(f"{place} {'already has' if is_added else 'does not have'} this server")
        return
    show_content(planned.entry)
    change = "Replace the entry in" if planned.replaces else "Write this into"
    confirm(f"{change if is_added else 'Take this out of'} {place}?", yes=yes)
    replace_file(planned.path, planned.data)
    say(f"Wrote {place}; restart {client}, or let it reload its servers")
    for note in planned.notes:
        say(note)


def _find_project() -> Path:
    """Return the directory of the project: the workspace's, else the repository's, else this."""
    cwd = require_cwd()
    workspace = find_workspace(cwd, {}, user_dir=find_user_dir())
    if workspace is not None:
        return workspace.root
    repository = find_repository(cwd, bare=False)
    return repository.root if repository else cwd
