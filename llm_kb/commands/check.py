"""`llm kb check`: what is wrong with a knowledge base, and what could be better."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from llm_kb.api import KnowledgeBase
from llm_kb.commands._config import say, show
from llm_kb.commands._errors import kb_errors
from llm_kb.commands._options import kb_cfg_option
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import ConfigError
from llm_kb.host.terminal import is_terminal
from llm_kb.subjects.topics import Subject
from llm_kb.upkeep.check import Inspection, inspect_config_error, iter_subjects
from llm_kb.upkeep.rules import Finding, has_errors, render_findings, render_summary, sort_findings

MANY = 500
"""Subjects that are checked before anyone wonders what is going on."""


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output findings as JSON")
@kb_cfg_option
@kb_errors
def check(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Find what is wrong with the knowledge base, or could be better

    Every subject is read. What a text tells a model to read is followed where it
    is written as a call or option, as in learn("project", "review"), -k
    project/review or kb:project/review. Exits with 1 when there are errors;
    warnings alone exit with 0. Fit for a pre-commit hook.

    \b
        llm kb check
        llm kb check --json
    """
    findings, looked_at = _inspect(kb_cfg)
    if json_:
        click.echo(json.dumps([finding.as_dict() for finding in findings], indent=2))
    else:
        for line in render_findings(findings):
            show(line)
        say(f"llm-kb: {render_summary(findings, looked_at)}")
    if has_errors(findings):
        raise click.exceptions.Exit(1)


def _inspect(kb_cfg: tuple[str, ...]) -> tuple[list[Finding], int]:
    """Return what was found, sorted, and how many subjects were looked at."""
    cwd = find_cwd() or Path("/")
    try:
        kb = KnowledgeBase.discover(fragments=kb_cfg)
    except ConfigError as error:
        return sort_findings(inspect_config_error(error, cwd)), 0
    inspection = Inspection(kb, cwd, _show_progress if is_terminal(sys.stderr) else iter_subjects)
    return sort_findings(inspection.run()), inspection.subjects


def _show_progress(topic: str, subjects: Sequence[Subject]) -> Iterator[Subject]:
    """Draw a bar for a topic that takes long."""
    if len(subjects) < MANY:
        yield from subjects
        return
    with click.progressbar(subjects, label=f"checking {topic}", file=sys.stderr) as bar:
        yield from bar
