"""Patterns over slugs: globs that match in linear time and guide a walk.

`*` and `?` stay within a level, `**` as a whole component spans levels, `[...]`
is a character class. A pattern matches a whole slug, case-sensitively.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from operator import methodcaller
from typing import TypeAlias

from llm_kb.errors import PatternError
from llm_kb.subjects.glob_bits import bit_matcher
from llm_kb.subjects.glob_regex import translate
from llm_kb.subjects.glob_syntax import Run, parse_runs

Matcher: TypeAlias = Callable[[str], object]
"""Called with a slug; truthy if it matches."""

_MOST_REPEATED = 40
"""How often a regex may look at one character of a slug."""

_MOST_COMPILED = 12_000
"""The most elements of a compiled regex, more than the longest path on a disk."""


MAX_GLOB = 1000
"""The most characters of a glob; none of this length takes a millisecond on a slug."""

MAX_SLUG = 4096
"""The most characters of a pattern without wildcards; no system has longer paths."""


# Without slots: `cached_property` stores values in the instance.
@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A valid pattern, made by `parse_pattern` and compiled on first use."""

    text: str
    """The pattern in Unicode NFC, as slugs are."""

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs of components between its `**`."""
        return parse_runs(self.text)

    @cached_property
    def literal(self) -> str | None:
        """The slug that it matches if it has no wildcard, else None."""
        return self.text if len(self.runs) == 1 and _is_literal(self.runs[0]) else None

    @cached_property
    def matches(self) -> Matcher:
        """The compiled matcher, without a wrapper for speed."""
        if self.literal is not None:
            return self.literal.__eq__
        if self.runs == ((), ()):
            return bool
        if self.runs[1:] == ((),) and _is_literal(self.runs[0]):
            return methodcaller("startswith", self.text.partition("*")[0])
        return _compile([self]) if self.fits_regex else bit_matcher(self.runs)

    @cached_property
    def fits_regex(self) -> bool:
        """Whether a regex matches it fast on any slug; other patterns use bit sets."""
        repeated = max(_count_looks(run, number > 0) for number, run in enumerate(self.runs))
        elements = sum(len(chunk) + 1 for run in self.runs for part in run for chunk in part)
        return repeated <= _MOST_REPEATED and elements <= _MOST_COMPILED


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
    if len(unique) == 1:
        return patterns[0].matches
    literals = frozenset(pattern.literal for pattern in unique if pattern.literal is not None)
    globs = [pattern for pattern in unique if pattern.literal is None]
    compiled = [pattern for pattern in globs if pattern.fits_regex]
    matchers = [pattern.matches for pattern in globs if not pattern.fits_regex]
    if compiled:
        matchers.insert(0, _compile(compiled))
    if literals or not matchers:
        matchers.insert(0, literals.__contains__)
    return matchers[0] if len(matchers) == 1 else _first_of(matchers)


def _first_of(matchers: Sequence[Matcher]) -> Matcher:
    def matches(slug: str) -> bool:
        for matcher in matchers:  # noqa: SIM110 - any() would cost a generator a slug
            if matcher(slug):
                return True
        return False

    return matches


def _compile(patterns: Iterable[Pattern]) -> Matcher:
    groups = count()
    source = "|".join(translate(pattern.runs, groups) for pattern in patterns)
    return re.compile(source, re.DOTALL).fullmatch


def _count_looks(run: Run, is_searched: bool) -> int:
    """Return a bound on how often a regex looks at one character.

    A chunk after a star is tried from each position, and a run after a `**` from
    each level, where a star takes time of its own.
    """
    longest = max((len(chunk) for component in run for chunk in component[1:]), default=0)
    levels = sum(min(len(component), 2) for component in run) if is_searched else 1
    return max(longest, 1) * levels


def _is_literal(run: Run) -> bool:
    return all(
        len(component) == 1 and all(isinstance(char, str) for char in component[0])
        for component in run
    )
