"""`llm kb mcp`: serve the knowledge base to MCP clients."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._options import knowledge_options
from llm_kb.host.terminal import is_terminal


@click.command()
@click.option(
    "-d",
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve the knowledge base in effect here, not in the current directory",
)
@knowledge_options
@kb_errors
def mcp(directory: Path | None, knowledge: tuple[str, ...], kb_cfg: tuple[str, ...]) -> None:
    """
    Serve learn and search to MCP clients over standard input and output

    Needs an extra: llm install 'llm-kb[mcp]'. A client starts this command; its
    section, with what -k pre-loads, becomes the server's instructions. In a git
    repository, emit_knowledge and annotate are served as well.

    \b
        llm kb mcp
        llm kb mcp --directory ~/project -k 'project/maintainers/*'
    """
    server = _import_server()
    open_kb = partial(KnowledgeBase.discover, directory, fragments=kb_cfg, knowledge=knowledge)
    if sys.stdin is None or sys.stdout is None:
        raise click.ClickException("a client speaks over standard input and output; one is closed")
    if is_terminal(sys.stdin):
        click.echo("llm-kb: waiting for an MCP client on standard input; Ctrl-C ends", err=True)
    server.run(open_kb)


def _import_server() -> ModuleType:
    """Import the server. Raises ClickException when the extra is missing."""
    try:
        from llm_kb.host import mcp_server  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        raise click.ClickException(
            "the MCP server needs an extra that is not installed; run: llm install 'llm-kb[mcp]'"
        ) from error
    return mcp_server
