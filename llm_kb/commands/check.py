"""`llm kb check`: report problems and possible improvements of a knowledge base."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import ConfigError
from llm_kb.host.terminal import draw_progress, is_terminal, style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.upkeep.check import (
    Inspection,
    has_errors,
    inspect_config_error,
    render_findings,
    render_summary,
    sort_findings,
)


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output findings as JSON")
@kb_cfg_option
def check(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Find what is wrong with the knowledge base, or could be better

    Reads what searches read. References to subjects are followed when they are
    written as a call: learn("project", "review"). Exits with 1 if there are errors,
    and with 0 otherwise, so it can be a pre-commit hook. docs/check.md explains each
    rule.

    \b
        llm kb check
        llm kb check --json
    """
    cwd = find_cwd() or Path("/")
    subjects = 0
    left_out: Sequence[str] = ()
    try:
        kb = KnowledgeBase.discover(fragments=kb_cfg)
    except ConfigError as error:
        found = sort_findings(inspect_config_error(error, cwd))
    else:
        inspection = Inspection(kb, cwd, draw_progress("Checking"))
        found = sort_findings(inspection.run())
        subjects = inspection.subjects
        left_out = kb.config.check_ignore
    findings = [finding for finding in found if finding.rule.id not in left_out]
    ignored = [finding for finding in found if finding.rule.id in left_out]
    if json_:
        show_json([finding.as_dict() for finding in findings])
    else:
        paint = style if is_terminal(sys.stdout) else None
        for line in render_findings(findings, paint, get_terminal_size().columns):
            show(line)
        say(f"llm-kb: {render_summary(findings, subjects, ignored)}")
    if has_errors(findings):
        raise click.exceptions.Exit(1)
