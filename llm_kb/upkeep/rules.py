"""The rules of `llm kb check`, their findings, and the report for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum, unique
from itertools import groupby
from typing import NamedTuple, TypeAlias

from llm_kb.rendering.plain_text import count

Style: TypeAlias = Callable[..., str]
"""Returns a text with `fg`, `bold` or `dim`."""


class Level(Enum):
    """The level of a rule: what does not work, what could be better, and what is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@unique
class Rule(Enum):
    """Every rule, in the order of a report."""

    CONFIGURATION = (
        Level.ERROR,
        "Without a configuration that can be used, models find nothing to learn.",
        "Correct the key that is named, or write a first configuration with `llm kb init`.",
    )
    NO_DIRECTORY = (
        Level.ERROR,
        "The topic has no subjects, so no model ever sees it.",
        "Create the directory, correct `subjects`, or remove the topic.",
    )
    UNMATCHED = (
        Level.ERROR,
        "The configuration promises something that does not happen.",
        "Correct the pattern after `llm kb list TOPIC --all`, or remove it.",
    )
    SKIPPED = (
        Level.ERROR,
        "It is in the topic's directory, but it cannot become a subject.",
        "Rename it, make it readable, or add it to the topic's `ignore`.",
    )
    DAMAGED_STORE = (
        Level.ERROR,
        "Models see none of the entries captured in this repository, and none can be added.",
        "Look at the note with the first command, and point its ref at a version that can be read.",
    )
    INVISIBLE = (
        Level.ERROR,
        "Models read these characters and reviewers do not see them: they can hide instructions.",
        "Remove them, and find out where they came from.",
    )
    DANGLING = (
        Level.ERROR,
        "A model that follows it gets an error instead of knowledge.",
        "Correct the topic or the slug, or write the subject.",
    )
    EMPTY_TOPIC = (
        Level.WARNING,
        "A topic without listed subjects is not in the menu.",
        "Write a subject with `llm kb new`, or remove the topic.",
    )
    NESTED = (
        Level.WARNING,
        "Its subjects are listed, searched and counted twice.",
        "Remove one of the topics, or add the inner directory to the outer topic's `ignore`.",
    )
    NO_INTRODUCTION = (
        Level.WARNING,
        "The introduction in the menu is all a model has to decide whether to look.",
        'Describe in one sentence what the topic contains: `introduction = "…"`.',
    )
    OVER_BUDGET = (
        Level.WARNING,
        "A model has to ask for what was cut from the menu.",
        "Raise `menu_budget`, shorten introductions, or disable topics.",
    )
    SKILL = (
        Level.NOTE,
        "Models choose a skill by its description; clients that follow the specification of "
        "Agent Skills leave out one that breaks its rules.",
        "Correct the SKILL.md or its front matter (https://agentskills.io/specification).",
    )
    OVERSIZE = (
        Level.NOTE,
        "A model loads such a subject by its parts, and here it can only name lines.",
        "Give it headings, split it, or raise `max_result_chars`.",
    )
    NOT_SEARCHED = (
        Level.NOTE,
        "It is not indexed, so searches never return it.",
        "Split it into several subjects or topics, or add it to the topic's `ignore`.",
    )
    DEAD_LINK = (
        Level.NOTE,
        "A model that follows the link finds nothing.",
        "Correct the link, or write the page.",
    )
    UNCHECKED = (
        Level.NOTE,
        "What was not looked up may be dangling, too.",
        "Correct the references that are reported, and run `llm kb check` again.",
    )
    DUPLICATE = (
        Level.NOTE,
        "Searches return one of them where another passage could have helped.",
        "Keep one, or add the others to the topic's `ignore`.",
    )

    def __init__(self, level: Level, why: str, fix: str) -> None:
        self.level = level
        self.why = why
        self.fix = fix

    @property
    def id(self) -> str:
        """The rule's name in reports, in JSON and in `[kb.check] ignore`."""
        return self.name.lower().replace("_", "-")


MOST_SHOWN = 8
"""The most findings of one rule that a report lists."""

RULE_IDS = tuple(rule.id for rule in Rule)

_ORDER = {rule: number for number, rule in enumerate(Rule)}


class Finding(NamedTuple):
    """A finding in a file; `line` counts from one, and None is the whole file."""

    rule: Rule
    file: str
    what: str
    line: int | None = None
    source: str = ""
    """The text of that line, if it shows the reason."""
    start: int = 0
    """The place of the reason in that text, and its length."""
    length: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        return {
            "level": self.rule.level.value,
            "rule": self.rule.id,
            "file": self.file,
            "line": self.line,
            "what": self.what,
            "why": self.rule.why,
            "fix": self.rule.fix,
        }


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by rule, errors first, then by file and line."""
    return sorted(set(findings), key=lambda f: (_ORDER[f.rule], f.file, f.line or 0, f.what))


def has_errors(findings: Iterable[Finding]) -> bool:
    """Tell whether a finding is an error."""
    return any(finding.rule.level is Level.ERROR for finding in findings)


def render_findings(
    findings: Iterable[Finding], style: Style | None = None, width: int = 80
) -> Iterator[str]:
    """Yield the lines of a report on sorted findings, with one explanation for each rule.

    With a `style`, as on a terminal, it shows the lines of the files that findings are about.
    """
    paint = style or _paint_nothing
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        of_rule = list(group)
        level = rule.level.value
        for finding in of_rule[:MOST_SHOWN]:
            line = f":{finding.line}" if finding.line else ""
            colored = paint(level, fg=_COLORS[rule.level], bold=True)
            place = paint(f"{finding.file}{line}", bold=True)
            yield f"{place}: {colored}: {finding.what} [{rule.id}]"
            if style and finding.source:
                yield from _show_source(finding, style, width)
        if len(of_rule) > MOST_SHOWN:
            yield f"  and {len(of_rule) - MOST_SHOWN:,} more; --json lists all of them"
        yield paint(f"  why: {rule.why}", dim=True)
        yield paint(f"  fix: {rule.fix}", dim=True)


def _paint_nothing(text: str, **_: object) -> str:
    return text


_COLORS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}


def _show_source(finding: Finding, style: Style, width: int) -> Iterator[str]:
    """Yield the line of a finding with a mark below its place, cut to a width."""
    number = str(finding.line)
    bar = style(f"{'':{len(number)}} |", fg="blue")
    room = max(width - len(number) - 4, 20)
    skipped = max(finding.start + min(finding.length, room // 2) - room, 0)
    shown = finding.source[skipped : skipped + room]
    marks = "^" * max(min(finding.length, room - finding.start + skipped), 1)
    yield f"{style(f'{number} |', fg='blue')} {shown}"
    mark = style(marks, fg=_COLORS[finding.rule.level], bold=True)
    yield f"{bar} {'':{finding.start - skipped}}{mark}"


def render_summary(
    findings: Iterable[Finding], subjects: int, ignored: Collection[Finding] = ()
) -> str:
    """Return one line with the numbers of findings and of subjects that were read."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level.value) for level in Level if level in levels]
    summary = f"{', '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"
    if not ignored:
        return summary
    names = ", ".join(sorted({finding.rule.id for finding in ignored}))
    return f"{summary}; {len(ignored):,} ignored by kb.check.ignore ({names})"
