"""`llm kb agents`: tell the coding agents of a project about its knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from llm_kb.config.layers import by_topic
from llm_kb.config.load import read_layer
from llm_kb.config.workspace import owner_of
from llm_kb.host.coding_agents import name_command
from llm_kb.knowledge_base.kinds import load_here
from llm_kb.subjects.topics import TopicConfig
from llm_kb.terminal import configured, output
from llm_kb.upkeep.agent_files import Change, plan_removal, plan_writing


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not up to date")
@click.option("--remove", is_flag=True, help="Take out what was written")
@click.option("yes", "-y", "--yes", is_flag=True, help="Change files without asking")
def agents(check: bool, remove: bool, yes: bool) -> None:
    """
    Tell coding agents about the knowledge base

    Writes a block of two lines into AGENTS.md, or into CLAUDE.md if only that is there: the
    rule to search before work. And a skill, project-knowledge, whose description is made from
    the topics, into .agents/skills and .claude/skills. Everything is shown first; text outside
    the block stays. Run it again when topics have changed.

    \b
        llm kb agents
        llm kb agents --check
        llm kb agents --remove
    """
    if check and remove:
        raise click.UsageError("--check and --remove exclude each other")
    root, topics = _find_topics()
    planned = plan_removal(root) if remove else plan_writing(root, topics, name_command())
    changes = [change for change in planned if change.is_needed]
    if not changes:
        output.say("Nothing to remove." if remove else "Everything is up to date.")
        return
    names = ", ".join(change.path for change in changes)
    if check:
        raise click.ClickException(f"not up to date: {names}; run `llm kb agents`")
    _show(changes)
    output.confirm(f"Take this out of {names}?" if remove else f"Write {names}?", yes=yes)
    for change in changes:
        change.apply(root)
    output.say(f"{'Changed' if remove else 'Wrote'} {names}")


def _find_topics() -> tuple[Path, Sequence[TopicConfig]]:
    """Return the workspace and the topics that its own configuration has, not the user's.

    Raises KbError, and ClickException without a workspace or topics.
    """
    file = configured.nearest_file(user=False)
    own = by_topic(read_layer(file))
    topics = [t for t in load_here().topics if t.id in own and t.enable]
    if not topics:
        raise click.ClickException("no topics are configured here; `llm kb add` makes one")
    return owner_of(file.path), topics


def _show(changes: Sequence[Change]) -> None:
    """Print each text that is written, with its files, and what it replaces."""
    for change in changes:
        if change.replaced:
            output.say(f"{change.path} has other lines between the marks; they are replaced:")
            output.show_content(change.replaced)
    for text in dict.fromkeys(change.written for change in changes if change.written):
        paths = [change.path for change in changes if change.written == text]
        output.say(f"{' and '.join(paths)}:")
        output.show_content(text)
