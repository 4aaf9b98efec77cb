"""The root error and the errors that more than one module raises.

An error has a class of its own if code catches it, or raises the same message in several
places, or the documentation offers it to Python callers; all others are a KbError. A message
stands alone: what is wrong, where, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice


def show_place(place: object) -> str:
    """Return a path unchanged, or with codes for characters that could deceive a reader."""
    text = str(place)
    return text if text.isprintable() else ascii(text)


MAX_SHOWN = 60
"""The most characters of a value or a key that an error shows."""

MAX_PATH_SHOWN = 300
"""The most characters that an error shows of an unchecked path."""

MOST_NAMES = 50
"""The most topics that an error names."""

_ALIKE = 0.7
"""Least similarity of a name that is suggested for another one."""


def join_names(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Return the first names on a line, and the number of the others."""
    more = [f"and {len(names) - most:,} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


MAX_PROBLEMS = 50
"""The most problems that one error lists; the rest are counted."""


def limit_problems(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and a last line with the number of the others."""
    shown = list(problems[:MAX_PROBLEMS])
    if len(problems) > MAX_PROBLEMS:
        shown.append(f"and {len(problems) - MAX_PROBLEMS:,} more")
    return shown


MAX_MESSAGE = 10_000
"""The most characters of an error, which may repeat others' text. Claude Code shows 11,000."""


def quote(text: str, most: int = MAX_SHOWN) -> str:
    """Return any text quoted, on one line and cut to what an error shows."""
    return cut(repr(text[: most + 1]), most)


def cut(shown: str, most: int = MAX_SHOWN) -> str:
    """Return a line cut to what an error shows."""
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def bound(message: str) -> str:
    """Return a message cut to a readable length, both each word and as a whole."""
    message = re.sub(r"\S{400,}", lambda word: f"{word[0][:300]}…{word[0][-60:]}", message)
    if len(message) <= MAX_MESSAGE:
        return message
    return f"{message[: MAX_MESSAGE - 1000]} … {message[-900:]}"  # the end says what to do


class KbError(Exception):
    """Root of every error this package raises on purpose; its message is bounded."""

    def __str__(self) -> str:
        return bound(super().__str__())


_OF_FILE = ("is ", "was ", "contains ", "cannot be ")
"""The first words of a problem whose subject is the file; others begin with a key."""


class ConfigError(KbError):
    """One or more problems of one configuration file, reported together."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where = where
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            link = " " if self.problems[0].startswith(_OF_FILE) else ": "
            message = f"{show_place(where)}{link}{self.problems[0]}"
        else:
            lines = "".join(f"\n  - {problem}" for problem in limit_problems(self.problems))
            message = f"{show_place(where)}: {len(self.problems):,} problems{lines}"
        super().__init__(message)


class PatternError(KbError):
    """An invalid pattern."""

    def __init__(self, pattern: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"invalid pattern {quote(pattern)}: {reason}")


class UnknownTopicError(KbError):
    """A topic that is neither an id nor a title."""

    def __init__(
        self, name: str, topics: Sequence[str], *, near: str = "", has_workspace: bool = True
    ) -> None:
        known = join_names(topics) or "none here ('llm kb add' makes one)"
        if not near and (similar := find_similar(name, topics, most=1, least=_ALIKE)):
            near = f"; did you mean {similar[0]!r}?"
        message = f"unknown topic {quote(name)}; valid topics: {known}{near}"
        if not has_workspace:
            message += "; neither this directory nor one above it has an llm-kb.toml"
        super().__init__(message)


MOST_CANDIDATES = 5000
"""The most names that are compared with a mistyped one: a suggestion must not take seconds."""

LONGEST_NAME = 100
"""The longest name compared: the time grows with the cube of the length."""

_RANKED = 20
"""The most names that are compared exactly."""


def find_similar(
    typed: str, names: Iterable[str], *, most: int, least: float = 0.6
) -> tuple[str, ...]:
    """Return the names that look like a mistyped one without regard to case, the likest first.

    Each is compared as a whole and by what follows its last `/`. `least` is the least
    similarity, from 0 to 1. An upper bound, found in linear time, picks the few that are
    compared exactly.
    """
    # Imported here: only errors need it.
    from difflib import SequenceMatcher  # noqa: PLC0415

    if len(typed) > LONGEST_NAME:
        return ()
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(typed.casefold())
    bounds: list[tuple[float, str, str]] = []
    for name in islice(names, MOST_CANDIDATES):
        for part in {name[:LONGEST_NAME], name.rpartition("/")[2][:LONGEST_NAME]}:
            matcher.set_seq1(part.casefold())
            if matcher.real_quick_ratio() >= least and (bound := matcher.quick_ratio()) >= least:
                bounds.append((bound, name, part))
    ratios: dict[str, float] = {}
    for _, name, part in sorted(bounds, reverse=True)[:_RANKED]:
        matcher.set_seq1(part.casefold())
        ratios[name] = max(ratios.get(name, 0.0), matcher.ratio())
    near = sorted((-ratio, name) for name, ratio in ratios.items() if ratio >= least)
    return tuple(name for _, name in near[:most])


class NoMatchError(KbError):
    """A pattern that matches no subject of a topic; `message` says it in other words."""

    def __init__(
        self, topic: str, pattern: str, near: Sequence[str] = (), *, message: str = ""
    ) -> None:
        self.topic = topic
        self.pattern = pattern
        if message:
            super().__init__(message)
            return
        message = f"no subject of topic {topic!r} matches {quote(pattern)}"
        if near:
            message += f"; did you mean: {join_names(near)}"
            if any("**/" in name or "/**" in name for name in near):
                message += " ('*' stops at '/', '**' goes on)"
        super().__init__(message)


class NoPartError(NoMatchError):
    """A reference to a part that its subject does not have."""

    def __init__(self, topic: str, slug: str, anchor: str, near: Sequence[str]) -> None:
        self.anchor = anchor
        self.outline = f"{slug}#"
        """The pattern with which `learn` lists the parts."""
        self.problem = f"subject {quote(slug)} of topic {topic!r} has no part {quote(f'#{anchor}')}"
        """What is wrong, without what to do."""
        if near:
            self.problem += f"; did you mean: {join_names([f'{slug}#{each}' for each in near])}"
        message = f"{self.problem}; {quote(self.outline)} lists them"
        super().__init__(topic, f"{slug}#{anchor}", message=message)


class UnreadableError(KbError):
    """A subject that cannot be read: gone, changed, denied, or not a regular file."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"cannot read {path!r}: {reason}")
