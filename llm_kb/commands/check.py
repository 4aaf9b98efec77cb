"""`llm kb check`: report problems and possible improvements of a knowledge base."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from llm_kb.commands._options import kb_cfg_option
from llm_kb.commands._output import say, show, show_json
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import ConfigError
from llm_kb.host.terminal import draw_progress, is_terminal, style
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.subject_list import name_place
from llm_kb.rendering.plain_text import count
from llm_kb.upkeep.check import LEVELS, Finding, Inspection, Rule

MOST_SHOWN = 8
"""The most findings of one rule that a report lists."""

_COLORS = dict(zip(LEVELS, ("red", "yellow", "cyan"), strict=True))


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output findings as JSON")
@kb_cfg_option
def check(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Find what is wrong with the knowledge base, or could be better

    Reads what searches read. References to subjects are followed when they are
    written as a call: learn("project", "review"). Exits with 1 if there are errors,
    and with 0 otherwise, so it can be a pre-commit hook.

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
        file = name_place(error.where, cwd)
        found = [Finding(Rule.CONFIGURATION, file, problem) for problem in error.problems]
    else:
        inspection = Inspection(kb, cwd, draw_progress("Checking"))
        found, subjects = inspection.run(), inspection.subjects
        left_out = kb.config.check_ignore
        for rule, limit in inspection.limits:
            if rule.id not in left_out:
                say(f"llm-kb: {limit}")
    findings = [finding for finding in found if finding.rule.id not in left_out]
    if json_:
        show_json([_describe(finding) for finding in findings])
    else:
        for line in _render(findings, with_lines=is_terminal(sys.stdout)):
            show(line)
        ignored = [finding.rule.id for finding in found if finding.rule.id in left_out]
        say(f"llm-kb: {_summarize(findings, subjects, ignored)}")
    if any(finding.rule.level == "error" for finding in findings):
        raise click.exceptions.Exit(1)


def _describe(finding: Finding) -> dict[str, object]:
    """Return the record that `--json` prints."""
    return {
        "level": finding.rule.level,
        "rule": finding.rule.id,
        "file": finding.file,
        "line": finding.line,
        "what": finding.what,
        "advice": finding.rule.advice,
    }


def _render(findings: Sequence[Finding], *, with_lines: bool) -> Iterator[str]:
    """Yield the lines of a report on sorted findings, with one explanation for each rule.

    `with_lines` shows the lines of the files that findings are about, and leaves a line free
    after each rule.
    """
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        of_rule = list(group)
        level = style(rule.level, fg=_COLORS[rule.level], bold=True)
        for finding in of_rule[:MOST_SHOWN]:
            line = f":{finding.line}" if finding.line else ""
            place = style(f"{finding.file}{line}", bold=True)
            yield f"{place}: {level}: {finding.what} [{rule.id}]"
            if with_lines and finding.found:
                number = style(f"{finding.line} |", fg="blue")
                yield f"{number} {finding.before}{finding.found}{finding.after}"
                bar = style(f"{'':{len(str(finding.line))}} |", fg="blue")
                mark = style("^" * len(finding.found), fg=_COLORS[rule.level], bold=True)
                yield f"{bar} {' ' * len(finding.before)}{mark}"
        if len(of_rule) > MOST_SHOWN:
            yield f"  and {len(of_rule) - MOST_SHOWN:,} more; --json lists all of them"
        yield style(f"  {rule.advice}", dim=True)
        if with_lines:
            yield ""


def _summarize(findings: Sequence[Finding], subjects: int, ignored: Sequence[str]) -> str:
    """Return one line with the numbers of findings and of subjects that were read."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level) for level in LEVELS if level in levels]
    summary = f"{', '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"
    if not ignored:
        return summary
    names = ", ".join(sorted(set(ignored)))
    return f"{summary}; {len(ignored):,} ignored by kb.check.ignore ({names})"
