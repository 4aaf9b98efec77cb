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


_ERROR, _WARNING, _NOTE = Level


@unique
class Rule(Enum):
    """Every rule, in the order of a report, with what it costs and what to do."""

    CONFIGURATION = _ERROR, "Models find nothing to learn until this is corrected."
    UNMATCHED = _ERROR, "It has no effect: correct it after `llm kb list TOPIC --all`."
    SKIPPED = _ERROR, "No model can read it: rename it, repair it, or add it to `ignore`."
    INVISIBLE = _ERROR, "Models read what reviewers do not see: remove it, and ask who wrote it."
    DANGLING = _ERROR, "A model that follows it gets an error: correct it, or write the subject."
    EMPTY_TOPIC = _WARNING, "It is not in the menu: write a subject, or remove the topic."
    NESTED = _WARNING, "They are found twice: remove a topic, or add the directory to `ignore`."
    NO_INTRODUCTION = _WARNING, "A model chooses topics by it: say in a sentence what it contains."
    SKILL = _NOTE, "Some clients leave it out: see https://agentskills.io/specification."
    OVERSIZE = _NOTE, "It cannot be read in parts: give it headings, split it, or ignore it."
    DEAD_LINK = _NOTE, "A model that follows it finds nothing: correct it, or write the page."
    DUPLICATE = _NOTE, "It takes the place of another passage: keep one, and ignore the others."

    def __init__(self, level: Level, advice: str) -> None:
        self.level = level
        self.advice = advice

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
            "advice": self.rule.advice,
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
        yield paint(f"  {rule.advice}", dim=True)


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
