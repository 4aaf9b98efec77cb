"""`llm kb check`: report problems and possible improvements of a knowledge base."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill

import click

from llm_kb.config.workspace import find_cwd
from llm_kb.errors import ConfigError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.plain_text import count, count_columns, cut_columns, name_place
from llm_kb.terminal.options import kb_cfg_option
from llm_kb.terminal.output import show, show_json
from llm_kb.terminal.screen import draw_progress, is_terminal, style
from llm_kb.upkeep.check import CONFIGURATION, LEVELS, Finding, count_pages, find_problems

MOST_SHOWN = 8
"""The most findings of one rule that a report lists."""

_COLORS = dict(zip(LEVELS, ("red", "yellow", "cyan"), strict=True))


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output findings as JSON")
@kb_cfg_option
def check(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Find what is wrong with the knowledge base, or could be better

    Reads what searches read. What names a subject is followed when they are
    written as a call: learn("project", "review"). Exits with 1 if there are errors
    in this project, and with 0 otherwise, so it can be a pre-commit hook.

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
        found = [Finding(CONFIGURATION, file, problem) for problem in error.problems]
    else:
        found, left_out = find_problems(kb, draw_progress("Checking")), kb.config.check_ignore
        subjects = count_pages(kb)
    findings = [finding for finding in found if finding.rule.id not in left_out]
    if json_:
        show_json([_describe(finding) for finding in findings])
    else:
        width = get_terminal_size().columns if is_terminal(sys.stdout) else None
        for line in _render(findings, width):
            show(line)
        ignored = [finding.rule.id for finding in found if finding.rule.id in left_out]
        show(_summarize(findings, subjects, ignored))
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


def _render(findings: Sequence[Finding], width: int | None) -> Iterator[str]:
    """Yield the lines of a report on sorted findings, with one explanation for each rule.

    A terminal has a `width`: it is shown the lines of the files that findings are about, cut,
    and a line is free after each rule.
    """
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        of_rule = list(group)
        for finding in of_rule[:MOST_SHOWN]:
            yield _render_finding(finding, width)
            if width and finding.found:
                yield from _render_source(finding, width)
        if len(of_rule) > MOST_SHOWN:
            yield f"  and {len(of_rule) - MOST_SHOWN:,} more; --json lists all of them"
        yield style(_wrap(rule.advice, "  ", width), dim=True)
        if width:
            yield ""


def _render_finding(finding: Finding, width: int | None) -> str:
    rule = finding.rule
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    start = f"{place}: {rule.level}: "
    text = _wrap(f"{finding.what} [{rule.id}]", start, width).removeprefix(start)
    level = style(rule.level, fg=_COLORS[rule.level], bold=True)
    return f"{style(place, bold=True)}: {level}: {text}"


def _wrap(text: str, start: str, width: int | None) -> str:
    """Return a text after what it starts with, on lines of a width; no name is broken."""
    if not width:
        return f"{start}{text}"
    return fill(
        text,
        width,
        initial_indent=start,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _render_source(finding: Finding, width: int) -> Iterator[str]:
    """Yield the line of a finding, cut around its reason, and the marks below that."""
    number = f"{finding.line} | "
    room = max(1, width - len(number) - 2)  # each side has room for what says that it was cut
    found = cut_columns(finding.found, room)
    room += 2 - count_columns(found)
    rest = room - count_columns(finding.after)
    before = cut_columns(finding.before[::-1], max(room // 2, rest))[::-1]
    after = cut_columns(finding.after, room - count_columns(before))
    yield f"{style(number, fg='blue')}{before}{found}{after}"
    mark = style("^" * count_columns(found), fg=_COLORS[finding.rule.level], bold=True)
    bar = style(f"{'| ':>{len(number)}}", fg="blue")
    yield f"{bar}{' ' * count_columns(before)}{mark}"


def _summarize(findings: Sequence[Finding], subjects: int, ignored: Sequence[str]) -> str:
    """Return one line with the numbers of findings and of subjects that were read."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level) for level in LEVELS if level in levels]
    summary = f"{', '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"
    if not ignored:
        return summary
    names = ", ".join(sorted(set(ignored)))
    return f"{summary}; {len(ignored):,} ignored by kb.check.ignore ({names})"
