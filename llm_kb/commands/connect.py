"""`llm kb connect`: give a client the MCP server, and coding agents the rule and the skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from llm_kb.commands.mcp import mcp
from llm_kb.config.layers import LayerSource, by_topic
from llm_kb.config.load import read_layer
from llm_kb.files.repository import find_repository
from llm_kb.host.coding_agents import name_command
from llm_kb.host.mcp.clients import ASKS, CLIENTS, plan_entry
from llm_kb.host.mcp.tools import describe_cost
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import load_here
from llm_kb.terminal.configured import require_cwd, workspace_file
from llm_kb.terminal.output import ask, say, show_content
from llm_kb.upkeep.agent_files import Change, plan_removal, plan_rule


@click.command()
@click.argument("client", type=click.Choice([*CLIENTS, "agents"]))
@click.argument("options", nargs=-1, metavar="[-- OPTIONS OF MCP]")
@click.option("--mcp", "only", flag_value="mcp", help="Only the server, for its tools")
@click.option("--rule", "only", flag_value="rule", help="Only the rule and the skill")
@click.option("--undo", "does", flag_value="undo", help="Take out what was written")
@click.option("--check", "does", flag_value="check", help="Write nothing; fail if it is not there")
@click.option("yes", "-y", "--yes", is_flag=True, help="Change files without asking")
def connect(client: str, options: Sequence[str], only: str, does: str, yes: bool) -> None:
    """
    Connect a client or coding agent to the knowledge base

    Adds the MCP server to the client's configuration. For agents with a shell, writes a rule of
    two lines into the file of rules that the client reads, and a skill made from the topics. Each
    is shown and asked about first, and other text in the files stays. `agents` gives the rule and
    the skill to any agent. Run it again when topics have changed.

    \b
        llm kb connect claude
        llm kb connect codex --mcp -- --with references
        llm kb connect agents --check
    """
    cwd, is_undone = require_cwd(), does == "undo"
    file, repository = workspace_file(), find_repository(cwd)
    root = file.path.parent if file else repository.root if repository else cwd
    plans: list[tuple[list[Change], str]] = []
    if only != "rule" and client in CLIENTS:
        words, cost = ((), "") if is_undone else _read_options(options)
        entry = plan_entry(client, root, words, undo=is_undone)
        plans.append(([entry], "" if is_undone else f"{cost}\n{ASKS.get(client, '')}".strip()))
    if only != "mcp":
        planned = plan_removal(root) if is_undone else _plan_rule(client, root, file)
        plans.append(([*planned], ""))
    needed = [([e for e in changes if e.before != e.after], note) for changes, note in plans]
    names = [change.path for changes, _ in needed for change in changes]
    if not names:
        say("Nothing to take out." if is_undone else "Everything is up to date.")
    elif does == "check":
        raise click.ClickException(f"not up to date: {', '.join(names)}\nllm kb connect {client}")
    for changes, note in needed:
        _carry_out(changes, root, note, yes=yes)


def _read_options(options: Sequence[str]) -> tuple[list[str], str]:
    """Return options of `llm kb mcp` as an entry has them, and what a session then costs.

    Raises UsageError and KbError.
    """
    # With the host's setting: a command keeps the first help option that it makes.
    given = mcp.make_context("mcp", [*options], help_option_names=["-h", "--help"]).params
    directory, asked = given["directory"], {"tools": given["added"], "fragments": given["kb_cfg"]}
    kb = KnowledgeBase.discover(directory, knowledge=given["knowledge"], **asked)
    words = ["--directory", str(directory.absolute())] if directory else []
    return [*options, *words], describe_cost(kb)


def _plan_rule(client: str, root: Path, file: LayerSource | None) -> Iterator[Change]:
    """Yield the changes for the topics that a workspace has itself, not for the user's."""
    own = by_topic(read_layer(file)) if file else {}
    topics = [topic for topic in load_here().topics if topic.id in own and topic.enable]
    if not topics:
        raise click.ClickException(
            "no topics are configured here, so there is no rule\nllm kb init"
        )
    return plan_rule(client, root, topics, name_command())


def _carry_out(changes: Sequence[Change], root: Path, note: str, *, yes: bool) -> None:
    """Show changes that belong together, the same ones once, and make them after a yes."""
    shown: dict[str, list[str]] = {}
    for change in changes:
        shown.setdefault(change.render(), []).append(change.path)
    for text, paths in shown.items():
        say(f"{' and '.join(paths)}:")
        show_content(text)
    names = ", ".join(change.path for change in changes)
    if changes and note:
        say(note)
    if changes and ask(f"Change {names}?", yes=yes):
        for change in changes:
            change.apply(root)
        say(f"Changed {names}")
