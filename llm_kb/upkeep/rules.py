"""What `llm kb check` can find: each rule with why it matters and how to mend it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from itertools import groupby

from llm_kb.rendering.plain_text import count
from llm_kb.rendering.presentation import NOT_UTF8, Presented
from llm_kb.subjects.topics import Skipped, Subject


class Level(Enum):
    """Whether something does not work as it is written, or could only be better."""

    ERROR = "error"
    WARNING = "warning"


@unique
class Rule(Enum):
    """Everything that is checked, in the order of a report."""

    CONFIGURATION = (
        Level.ERROR,
        "Nothing of a broken configuration is used.",
        "Correct the file; `llm kb config` shows what is in effect.",
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
        "It lies in the topic's directory, but no model can learn it.",
        "Move or rename it, or add it to the topic's `ignore`.",
    )
    UNREADABLE = (
        Level.ERROR,
        "It is listed, but a model that loads it gets an error.",
        "Give yourself the right to read it, or add it to the topic's `ignore`.",
    )
    INVISIBLE = (
        Level.ERROR,
        "A model reads them, a person who reviews the file does not: they can hide instructions.",
        "Remove them, and find out how they came there.",
    )
    DANGLING = (
        Level.ERROR,
        "A model that follows it gets an error instead of knowledge.",
        "Correct the slug, or write the subject.",
    )
    UNKNOWN_TOPIC = (
        Level.WARNING,
        "A model that follows it gets an error instead of knowledge.",
        "Name a topic of this configuration.",
    )
    AMBIGUOUS = (
        Level.WARNING,
        "Their common slug loads all of them, and listings name them by their files.",
        "Rename one of them.",
    )
    UNMENTIONED = (
        Level.WARNING,
        "A model can load a hidden subject only when something it reads names it.",
        "Name its slug in a visible subject, or take the dot off its path.",
    )
    BINARY = (
        Level.WARNING,
        "It is listed, but a model that loads it is only told that it was skipped.",
        "Add it to the topic's `ignore`, or save it as UTF-8 if it is text.",
    )
    UNDECODABLE = (
        Level.WARNING,
        "A model sees replacement characters in their place.",
        "Save the file as UTF-8.",
    )
    ZERO_WIDTH = (
        Level.WARNING,
        "They split words for a model, and a search for such a word finds nothing.",
        "Remove them.",
    )
    OVERSIZE = (
        Level.WARNING,
        "A model never sees the end of it.",
        "Split it into several subjects, or raise `max_result_chars`.",
    )
    UNSAFE_NAME = (
        Level.WARNING,
        "Some shells, file systems or models will not get it right.",
        "Rename the file.",
    )
    EMPTY_TOPIC = (
        Level.WARNING,
        "A topic without subjects to list is not in the menu.",
        "Write a subject with `llm kb new`, or remove the topic.",
    )
    NO_INTRODUCTION = (
        Level.WARNING,
        "The introduction in the menu is all a model has to decide whether to look.",
        'Say in a sentence what the topic knows: `introduction = "…"`.',
    )
    OVER_BUDGET = (
        Level.WARNING,
        "What was cut from the menu a model has to ask for.",
        "Raise `menu_budget`, shorten introductions, or disable topics.",
    )

    def __init__(self, level: Level, why: str, mend: str) -> None:
        self.level = level
        self.why = why
        self.mend = mend

    @property
    def id(self) -> str:
        """The rule's name in JSON."""
        return self.name.lower().replace("_", "-")


_ORDER = {rule: number for number, rule in enumerate(Rule)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something found in a file; `line` counts from one and is None for all of it."""

    rule: Rule
    file: str
    what: str
    line: int | None = None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "level": self.rule.level.value,
            "rule": self.rule.id,
            "file": self.file,
            "line": self.line,
            "what": self.what,
            "why": self.rule.why,
            "mend": self.rule.mend,
        }


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by rule, errors first, then by file and line."""
    return sorted(set(findings), key=lambda f: (_ORDER[f.rule], f.file, f.line or 0, f.what))


def render_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the lines of a report of sorted findings: reasons once for each rule."""
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        for finding in group:
            line = f":{finding.line}" if finding.line else ""
            yield f"{finding.file}{line}: {rule.level.value}: {finding.what}"
        yield f"  why:  {rule.why}"
        yield f"  mend: {rule.mend}"


def has_errors(findings: Iterable[Finding]) -> bool:
    """Tell whether something does not work as it is written."""
    return any(finding.rule.level is Level.ERROR for finding in findings)


def render_summary(findings: Iterable[Finding], subjects: int) -> str:
    """Return one line on how much was found in how many subjects."""
    levels = [finding.rule.level for finding in findings]
    counts = [count(levels.count(level), level.value) for level in Level if level in levels]
    return f"{' and '.join(counts) or 'nothing wrong'} in {count(subjects, 'subject')}"


_ZERO_WIDTH = re.compile("[\u200b\u2060-\u2064\ufeff]")
_UNSEEN = (
    (Rule.INVISIBLE, ("tag character", None), re.compile("[\U000e0000-\U000e007f]")),
    (
        Rule.INVISIBLE,
        ("bidirectional control", None),
        re.compile("[\u202a-\u202e\u2066-\u2069]"),
    ),
    (Rule.ZERO_WIDTH, ("character without width", "characters without width"), _ZERO_WIDTH),
)
_MOST_POINTS = 5
_ODD_NAMES = {
    "has characters of patterns": re.compile(r"[*?\[\]]"),
    "has characters that Windows forbids": re.compile(r'[<>:"|\\]|[. ](?:/|$)'),
    "is a device on Windows": re.compile(
        r"(?:^|/)(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.[^/]*)?(?:/|$)", re.IGNORECASE
    ),
    "has white space at an edge": re.compile(r"(?:^|/)\s|\s(?:\.[^/.]*)?(?:/|$)"),
    "has quotes": re.compile(r"['`]"),
    "looks like an option": re.compile(r"^-"),
    "has joiners, which have no width": re.compile("[\u200c\u200d]"),
}


def check_name(file: str, path: str) -> Iterator[Finding]:
    """Find what makes the path of a subject hard to name."""
    odd = [what for what, pattern in _ODD_NAMES.items() if pattern.search(path)]
    if odd:
        yield Finding(rule=Rule.UNSAFE_NAME, file=file, what=f"its name {', '.join(odd)}")


def check_alike(files: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Find paths, given with their files, that differ in case alone."""
    alike: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, path in files:
        alike[path.casefold()].append((file, path))
    for group in alike.values():
        for file, path in group if len(group) > 1 else ():
            others = ", ".join(repr(other) for _, other in group if other != path)
            what = f"its name differs only in case from {others}"
            yield Finding(rule=Rule.UNSAFE_NAME, file=file, what=what)


def check_ambiguous(subjects: Iterable[tuple[str, Subject]]) -> Iterator[Finding]:
    """Find subjects, given with their files, that share a slug."""
    sharing: defaultdict[str, list[tuple[str, Subject]]] = defaultdict(list)
    for file, subject in subjects:
        sharing[subject.slug].append((file, subject))
    for slug, group in sharing.items():
        for file, subject in group if len(group) > 1 else ():
            others = ", ".join(repr(s.path) for _, s in group if s is not subject)
            what = f"its slug {slug!r} is also that of {others}"
            yield Finding(rule=Rule.AMBIGUOUS, file=file, what=what)


def check_skipped(file: str, skipped: Skipped) -> Finding:
    """Return the finding for what a walk passed over."""
    return Finding(rule=Rule.SKIPPED, file=file, what=skipped.reason)


def check_content(file: str, presented: Presented, max_chars: int) -> Iterator[Finding]:
    """Find what a model would not get of a subject."""
    if presented.binary:
        yield Finding(rule=Rule.BINARY, file=file, what=presented.notices[0])
        return
    for notice in presented.notices:
        if NOT_UTF8 in notice:
            yield Finding(rule=Rule.UNDECODABLE, file=file, what=notice)
    if max_chars and (presented.is_cut or len(presented.text) > max_chars):
        what = f"its {presented.size:,} bytes are more than one load returns"
        yield Finding(rule=Rule.OVERSIZE, file=file, what=what)


def check_characters(file: str, text: str, where: str = "") -> Iterator[Finding]:
    """Find characters that no reader sees, or that change the order of what is read."""
    if text.isascii():
        return
    for rule, (one, many), pattern in _UNSEEN:
        found = pattern.findall(text)
        if found:
            line = None if where else text.count("\n", 0, text.index(found[0])) + 1
            points = ", ".join(f"U+{ord(c):04X}" for c in sorted(set(found))[:_MOST_POINTS])
            what = f"{count(len(found), one, many)}{where}: {points}"
            yield Finding(rule=rule, file=file, line=line, what=what)


def check_patterns(file: str, key: str, unmatched: Sequence[str]) -> Iterator[Finding]:
    """Return a finding for each pattern of a configuration that matches nothing."""
    for pattern in unmatched:
        yield Finding(rule=Rule.UNMATCHED, file=file, what=f"{key}: {pattern!r} matches nothing")
