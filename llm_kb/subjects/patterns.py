"""Patterns over slugs: globs, of which `fnmatch` matches a level at a time.

`*` and `?` stay within a level, `**` as a whole level spans levels, `[...]` is a character
class. A pattern matches a whole slug, case-sensitively. A level takes time in proportion to
its length, since `fnmatch` keeps the first place where a piece after a `*` fits, and so do
the levels after a `**`: since their number is fixed, a later place could not do better.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from typing import TypeAlias

from llm_kb.errors import PatternError

Matcher: TypeAlias = Callable[[str], object]
"""Called with a slug, or one level of it; truthy if it matches."""

Run: TypeAlias = tuple[Matcher, ...]
"""The matchers of successive levels; a pattern is the runs between its `**`."""

MAX_GLOB = 1000
"""The most characters of a glob."""

MAX_SLUG = 4096
"""The most characters of a pattern without wildcards; no system has longer paths."""

_WILDCARD = re.compile(r"[*?[]")
_CLASS = re.compile(r"\[(?:[!^].|[^!^])[^\]]{0,60}\]")
"""A class of up to 60 characters, of which the first may be a `]`."""


# Without slots: `cached_property` stores values in the instance.
@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A valid pattern, made by `parse_pattern` and compiled on first use."""

    text: str
    """The pattern in Unicode NFC, as slugs are."""

    @cached_property
    def literal(self) -> str | None:
        """The slug that it matches if it has no wildcard, else None."""
        return None if any(map(is_glob, self.text.split("/"))) else self.text

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs between its `**`, of which repeated ones count as one.

        The first run starts the slug and the last one ends it; either is empty if the
        pattern has a `**` there.
        """
        runs: list[list[Matcher]] = [[]]
        for level in self.text.split("/"):
            if level != "**":
                runs[-1].append(_compile_level(level))
            elif len(runs) == 1 or runs[-1]:
                runs.append([])
        return tuple(map(tuple, runs))

    @cached_property
    def matches(self) -> Matcher:
        """A function that tells whether the pattern matches a slug."""
        if self.literal is not None:
            return self.literal.__eq__
        start, runs = _WILDCARD.split(self.text, maxsplit=1)[0], self.runs
        return lambda slug: slug.startswith(start) and _match_runs(runs, slug.split("/"))


def is_glob(level: str) -> bool:
    """Tell whether a level has wildcards."""
    return "*" in level or "?" in level or bool(_CLASS.search(level))


def has_open_class(level: str) -> bool:
    """Tell whether a level has a `[` that is an ordinary character, since no class begins there."""
    return "[" in _CLASS.sub("", level)


def _compile_level(level: str) -> Matcher:
    if not is_glob(level):
        return level.__eq__
    level = _CLASS.sub(lambda found: found[0].replace("[^", "[!", 1), level)  # as a shell takes it
    return re.compile(translate(level)).match if level.strip("*") else bool


def _match_runs(runs: Sequence[Run], levels: Sequence[str]) -> bool:
    """Tell whether the runs fit into the levels of a slug, with any levels between them."""
    first, last = runs[0], runs[-1]
    if len(runs) == 1:
        return len(levels) == len(first) and _fits(first, levels, 0)
    position, end = len(first), len(levels) - len(last)
    if position > end or not (_fits(first, levels, 0) and _fits(last, levels, end)):
        return False
    for run in runs[1:-1]:
        while position + len(run) <= end and not _fits(run, levels, position):
            position += 1
        position += len(run)
    # A `**` at the end stands for one level at least.
    return position < end or (position == end and bool(last))


def _fits(run: Run, levels: Sequence[str], position: int) -> bool:
    """Tell whether a run matches the levels from a position on."""
    for matches in run:
        if not matches(levels[position]):
            return False
        position += 1
    return True


@lru_cache(maxsize=1024)
def parse_pattern(text: str) -> Pattern:
    """Return the pattern of a text. Raises PatternError with the reason if it is invalid."""
    if not text:
        raise PatternError(text, "it is empty")
    if len(text) > MAX_SLUG:
        raise PatternError(text, f"it is longer than {MAX_SLUG:,} characters")
    if text.startswith("/"):
        raise PatternError(text, "it starts with '/'; patterns are relative to the topic")
    if "\\" in text:
        raise PatternError(text, "it contains a backslash; separate levels with '/'")
    if "\0" in text:
        raise PatternError(text, "it contains a NUL character")
    if ".." in text.split("/"):
        raise PatternError(text, "it contains a '..' component; patterns stay inside the topic")
    pattern = Pattern(text=unicodedata.normalize("NFC", text))
    if len(pattern.text) > MAX_GLOB and pattern.literal is None:
        raise PatternError(text, f"it is longer than {MAX_GLOB:,} characters and not an exact slug")
    return pattern


def compile_any(patterns: Sequence[Pattern]) -> Matcher:
    """Return one matcher for slugs that any of the patterns matches."""
    unique = dict.fromkeys(patterns)
    literals = frozenset(pattern.literal for pattern in unique if pattern.literal is not None)
    globs = [pattern.matches for pattern in unique if pattern.literal is None]
    return lambda slug: slug in literals or any(matches(slug) for matches in globs)


def split_knowledge(text: str) -> tuple[str, str]:
    """Return the topic id and pattern of a value of `-k`; a topic alone means all of it.

    Raises PatternError.
    """
    topic, slash, pattern = text.partition("/")
    if not topic:
        raise PatternError(text, "it names no topic; write TOPIC/PATTERN")
    if slash and not pattern:
        raise PatternError(text, f"nothing follows the slash; {topic!r} alone means all of it")
    return topic, parse_pattern(pattern).text if slash else "**"
