"""`llm kb init`: write a first configuration."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_kb.commands._config import require_cwd, user_dir
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._output import say
from llm_kb.config.workspace import VARIABLE, WORKSPACE_FILES, user_config_path
from llm_kb.errors import show_place
from llm_kb.files.atomic import create_file
from llm_kb.upkeep.proposals import find_passed_over, propose_topics, render_user, render_workspace


@click.command()
@click.option("--user", is_flag=True, help="Write your own kb.toml, for every directory")
@kb_errors
def init(user: bool) -> None:
    """
    Write a commented llm-kb.toml in this directory

    Proposes a topic for what is there: kb, docs, docs/adr, .claude/skills,
    .agents/skills, AGENTS.md, CONTRIBUTING.md. Never overwrites a file.

    \b
        llm kb init
        llm kb init --user
    """
    if user:
        _create(user_config_path(user_dir()), render_user())
        return
    root = require_cwd()
    for name in WORKSPACE_FILES:
        _refuse_existing(root / name)
    proposals = propose_topics(root)
    _create(root / "llm-kb.toml", render_workspace(proposals))
    for proposal in proposals:
        say(f"  {proposal.id}: {proposal.subjects}")
    for place, reason in find_passed_over(root):
        say(f"passed over {show_place(place)}, which {reason}")
    if not proposals:
        say("nothing here is a topic yet; try: llm kb add project kb/project")
    if VARIABLE in os.environ:
        say(f"{VARIABLE} is set, so this file is not the one that counts; see 'llm kb path'")


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise click.ClickException(f"{show_place(path)} exists already and is left as it is")


def _create(path: Path, text: str) -> None:
    try:
        create_file(path, text.encode())
    except FileExistsError:
        _refuse_existing(path)
    say(f"wrote {show_place(path)}")
