"""`llm kb init`: write a first configuration."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from llm_kb.api import find_user_dir
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import say, show
from llm_kb.config.workspace import VARIABLE, WORKSPACE_FILES, find_workspace, user_config_path
from llm_kb.errors import show_place
from llm_kb.files.atomic import create_file
from llm_kb.host.terminal import is_terminal
from llm_kb.rendering.plain_text import count, shorten, visible_line
from llm_kb.upkeep.first_config import render_user, render_workspace
from llm_kb.upkeep.proposal import FIRST_TOPIC, Proposal
from llm_kb.upkeep.proposals import find_passed_over, propose_topics

_WIDTH = 60
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@click.command()
@click.option("--user", is_flag=True, help="Write your own kb.toml, for every directory")
@click.option("all_", "--all", is_flag=True, help="Take every topic that was found, without asking")
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it")
def init(user: bool, all_: bool, dry_run: bool) -> None:
    """
    Write a first llm-kb.toml in this directory

    Finds what is there: directories of kb, README, CONTRIBUTING, AGENTS.md and
    CLAUDE.md, documentation, wikis and notes, manual pages, architecture decisions,
    skills, rules and commands for coding agents, documentation of packages. On a
    terminal you choose which of them become topics; where there is nothing, one is
    made in kb/project. Never overwrites a file.

    \b
        llm kb init
        llm kb init --all --dry-run
        llm kb init --user
    """
    if user:
        _write(user_config_path(find_user_dir()), render_user(), dry_run=dry_run)
        return
    root = require_cwd()
    for name in () if dry_run else WORKSPACE_FILES:
        _refuse_existing(root / name)
    above = find_workspace(root, {}, user_dir=find_user_dir())
    found = propose_topics(root)
    labels = [_describe(proposal) for proposal in found]
    taken = found if all_ else [proposal for proposal in found if proposal.is_likely]
    if found and not (all_ or dry_run) and is_terminal(sys.stdin):
        taken = _choose(found, labels, taken)
    written = taken if found else [FIRST_TOPIC]
    _write(root / "llm-kb.toml", render_workspace(written), dry_run=dry_run)
    for proposal, label in zip(found, labels, strict=True):
        _report(proposal, label, taken=proposal in taken)
    for place, reason in find_passed_over(root):
        say(f"Passed over {show_place(place)}, which {reason}")
    _say_next(found, taken)
    if not (found or dry_run):
        (root / FIRST_TOPIC.subjects).mkdir(parents=True, exist_ok=True)
    if above is not None and not root.samefile(above.root):
        say(f"In this directory {show_place(above.path)} is no longer used")
    if VARIABLE in os.environ:
        say(f"{VARIABLE} is set, so this file is not used; see 'llm kb path'")


def _report(proposal: Proposal, label: str, *, taken: bool) -> None:
    if not taken:
        say(f"Left out {label}")
        return
    say(f"  {label}")
    for skipped in proposal.left_out:
        say(f"  Ignored {proposal.subjects}/{skipped.path}: {skipped.reason}")


def _say_next(found: Sequence[Proposal], taken: Sequence[Proposal]) -> None:
    if taken:
        say('Next: llm kb check; then: llm -T learn "What is this project about?"')
    elif found:
        say("No topics yet; add one: llm kb add project kb/project")
    else:
        say(f"Found nothing to read; {FIRST_TOPIC.subjects} is the topic for what you write")
        say(f'Next: llm kb new {FIRST_TOPIC.id}/overview; then: llm -T learn "your question"')


def _describe(proposal: Proposal) -> str:
    totals = proposal.totals
    size = f"{count(totals.subjects, 'subject')}, ~{totals.tokens:,} tokens"
    return f"{proposal.id}: {shorten(visible_line(proposal.place), _WIDTH)} ({size})"


def _choose(
    found: Sequence[Proposal], labels: Sequence[str], default: Sequence[Proposal]
) -> list[Proposal]:
    """Ask which of the proposals to write."""
    say("Found:")
    for number, label in enumerate(labels, start=1):
        say(f"  {number}. {label}")
    chosen: list[Proposal] = click.prompt(
        "Write which of them? (numbers such as 1,3-4, 'all' or 'none')",
        default=_name_numbers(found, default),
        value_proc=partial(_parse_choice, found, default),
        err=True,
    )
    return chosen


def _name_numbers(found: Sequence[Proposal], default: Sequence[Proposal]) -> str:
    if len(default) == len(found):
        return "all"
    numbers = [str(number) for number, p in enumerate(found, start=1) if p in default]
    return ",".join(numbers) or "none"


def _parse_choice(
    found: Sequence[Proposal], default: Sequence[Proposal], typed: str
) -> list[Proposal]:
    typed = typed.strip().lower()
    words = {"all": found, "none": (), "y": default, "yes": default, "n": (), "no": ()}
    if typed in words:
        return list(words[typed])
    numbers: set[int] = set()
    for part in typed.replace(",", " ").split():
        match = _RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= len(found):
            raise click.BadParameter(f"{part!r} is not between 1 and {len(found)}")
        numbers.update(range(first, last + 1))
    return [proposal for number, proposal in enumerate(found, start=1) if number in numbers]


def _write(path: Path, text: str, *, dry_run: bool) -> None:
    if dry_run:
        show(text, nl=False)
        return
    try:
        create_file(path, text.encode())
    except FileExistsError:
        _refuse_existing(path)
    say(f"Wrote {show_place(path)}")


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise click.ClickException(
            f"{show_place(path)} exists already and is left as it is; `llm kb add` adds topics"
        )
