"""The rules of `llm kb check`, their findings, and the report for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum, unique
from itertools import groupby
from typing import NamedTuple

from llm_kb.rendering.plain_text import count


class Level(Enum):
    """The level of a rule: an error does not work as written, a warning could be better."""

    ERROR = "error"
    WARNING = "warning"


def _error(why: str, fix: str) -> tuple[Level, str, str]:
    return Level.ERROR, why, fix


def _warning(why: str, fix: str) -> tuple[Level, str, str]:
    return Level.WARNING, why, fix


@unique
class Rule(Enum):
    """Every rule, in the order of a report."""

    CONFIGURATION = _error(
        "A configuration with a mistake is not used at all.",
        "Make the file readable, or correct the key that is named.",
    )
    NO_CONFIGURATION = _error(
        "Without a configuration there is nothing to check, and models find nothing to learn.",
        "Change to the project's directory, or write a first configuration with `llm kb init`.",
    )
    NO_DIRECTORY = _error(
        "The topic has no subjects, so no model ever sees it.",
        "Create the directory, correct `subjects`, or remove the topic.",
    )
    UNMATCHED = _error(
        "The configuration promises something that does not happen.",
        "Correct the pattern after `llm kb list TOPIC --all`, or remove it.",
    )
    SKIPPED = _error(
        "It is in the topic's directory, but no model can learn it.",
        "Move or rename it, or add it to the topic's `ignore`.",
    )
    DAMAGED_STORE = _error(
        "Models see none of the entries captured in this repository, and none can be added.",
        "Look at the note with the first command, and point its ref at a version that can be read.",
    )
    UNREADABLE = _error(
        "It is listed, but a model that loads it gets an error.",
        "Make the file readable for you, or add it to the topic's `ignore`.",
    )
    INVISIBLE = _error(
        "Models read these characters and reviewers do not see them: they can hide instructions.",
        "Remove them, and find out where they came from.",
    )
    DANGLING = _error(
        "A model that follows it gets an error instead of knowledge.",
        "Correct the slug, or write the subject.",
    )
    NO_TOPICS = _warning(
        "A model has nothing to learn here.",
        "Add a topic with `llm kb add`.",
    )
    REPEATED = _warning(
        "One of them is enough.",
        "Remove the others.",
    )
    NESTED = _warning(
        "Its subjects are listed, searched and counted twice.",
        "Remove one of the topics, or add the inner directory to the outer topic's `ignore`.",
    )
    UNKNOWN_TOPIC = _warning(
        "A model that follows it gets an error instead of knowledge.",
        "Name a topic of this configuration.",
    )
    UNCHECKED = _warning(
        "A reference that was not followed may lead to nothing.",
        "Look at the subjects with the most references: nobody writes that many by hand.",
    )
    SKILL = _warning(
        "Models choose a skill by its description; clients that follow the specification of "
        "Agent Skills leave out one that breaks its rules.",
        "Correct the SKILL.md or its front matter (https://agentskills.io/specification).",
    )
    AMBIGUOUS = _warning(
        "Their common slug loads all of them, and listings name them with their extensions.",
        "Rename one of them, or add one to the topic's `ignore`.",
    )
    UNMENTIONED = _warning(
        "A model can load a hidden subject only after it has read the subject's name.",
        "Name it in a subject that is listed, or add it to the topic's `ignore`.",
    )
    BINARY = _warning(
        "A model that loads it only learns that it was skipped.",
        "Add it to the topic's `ignore`, or save it as UTF-8 if it is text.",
    )
    UNDECODABLE = _warning(
        "A model sees replacement characters in their place.",
        "Save the file as UTF-8.",
    )
    ZERO_WIDTH = _warning(
        "They split words for a model, and a search for such a word finds nothing.",
        "Remove them.",
    )
    OVERSIZE = _warning(
        "A model loads such a subject by its parts, and here it can only name lines.",
        "Give it headings, split it, or raise `max_result_chars`.",
    )
    NOT_SEARCHED = _warning(
        "It is not indexed, so searches never return it.",
        "Split it into several subjects or topics, or add it to the topic's `ignore`.",
    )
    OUTDATED_EXPORT = _warning(
        "Models read rules in the file that were changed or withdrawn.",
        "Run `llm kb knowledge export --to FILE` again, with the same `--scope` if it had one; "
        "if entries are shared, first `llm kb knowledge pull`.",
    )
    UNSAFE_NAME = _warning(
        "Some shells, file systems or models will get it wrong.",
        "Rename the file.",
    )
    EMPTY_TOPIC = _warning(
        "A topic without listed subjects is not in the menu.",
        "Write a subject with `llm kb new`, or remove the topic.",
    )
    NO_INTRODUCTION = _warning(
        "The introduction in the menu is all a model has to decide whether to look.",
        'Describe in one sentence what the topic contains: `introduction = "…"`.',
    )
    OVER_BUDGET = _warning(
        "A model has to ask for what was cut from the menu.",
        "Raise `menu_budget`, shorten introductions, or disable topics.",
    )

    def __init__(self, level: Level, why: str, fix: str) -> None:
        self.level = level
        self.why = why
        self.fix = fix

    @property
    def id(self) -> str:
        """The rule's name in reports, in JSON and in `[kb.check] ignore`."""
        return self.name.lower().replace("_", "-")


MOST_SHOWN = 50
"""The most findings of one rule that a report lists."""

RULE_IDS = tuple(rule.id for rule in Rule)

_ORDER = {rule: number for number, rule in enumerate(Rule)}


class Finding(NamedTuple):
    """A finding in a file; `line` counts from one, and None is the whole file."""

    rule: Rule
    file: str
    what: str
    line: int | None = None

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


def render_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the lines of a report on sorted findings, with one explanation for each rule."""
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        of_rule = list(group)
        for finding in of_rule[:MOST_SHOWN]:
            line = f":{finding.line}" if finding.line else ""
            yield f"{finding.file}{line}: {rule.level.value}: {finding.what} [{rule.id}]"
        if len(of_rule) > MOST_SHOWN:
            yield f"  and {len(of_rule) - MOST_SHOWN:,} more; --json lists all of them"
        yield f"  why: {rule.why}"
        yield f"  fix: {rule.fix}"


def render_summary(
    findings: Iterable[Finding],
    subjects: int,
    ignored: Collection[Finding] = (),
    *,
    hidden: int = 0,
) -> str:
    """Return one line with the numbers of findings and of subjects that were read."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level.value) for level in Level if level in levels]
    summary = f"{' and '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"
    summary += f" and {count(hidden, 'hidden one')}" if hidden else ""
    if not ignored:
        return summary
    names = ", ".join(sorted({finding.rule.id for finding in ignored}))
    return f"{summary}; {len(ignored):,} ignored by kb.check.ignore ({names})"
