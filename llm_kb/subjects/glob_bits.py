"""Matches patterns that are too long for a regex, with bit sets of positions.

An integer holds every position of the slug at which the first part of the pattern can
end. Each step of the pattern is a few operations on that integer, so matching never
backtracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cache
from itertools import takewhile

from llm_kb.subjects.glob_syntax import ANY, Char, Run


class Star(Enum):
    """The steps that match more than one character."""

    WITHIN = "*"
    ACROSS = "**/"


def bit_matcher(runs: Sequence[Run]) -> Callable[[str], bool]:
    """Return a function that tells whether the pattern matches a whole slug."""
    steps = tuple(_flatten(runs))
    prefix = "".join(takewhile(lambda step: isinstance(step, str), steps))  # type: ignore[arg-type]
    rest = steps[len(prefix) :]
    shortest = sum(not isinstance(step, Star) for step in rest)

    def matches(slug: str) -> bool:
        # The length test bounds the work by the slug, however long the pattern is.
        if len(slug) - len(prefix) < shortest or not slug.startswith(prefix):
            return False
        return _matches(rest, slug[len(prefix) :])

    return matches


def _flatten(runs: Sequence[Run]) -> Iterator[Char | Star]:
    for number, run in enumerate(runs):
        if number:
            yield Star.ACROSS
        for position, component in enumerate(run):
            for index, chunk in enumerate(component):
                if index:
                    yield Star.WITHIN
                yield from chunk
            if number < len(runs) - 1 or position < len(run) - 1:
                yield "/"


def _matches(steps: Sequence[Char | Star], slug: str) -> bool:
    alphabet, backwards = set(slug), slug[::-1]

    @cache
    def find_members(members: frozenset[str]) -> int:
        digits = {ord(char): "01"[char in members] for char in alphabet}
        return int(backwards.translate(digits) or "0", 2)

    @cache
    def find_positions(char: Char) -> int:
        """Return the positions of the characters that an element of a pattern matches."""
        if isinstance(char, str):
            return find_members(frozenset(alphabet & {char}))
        return find_members(frozenset(other for other in alphabet if other in char))

    inside = find_positions(ANY)
    starts = find_positions("/") << 1 | 1
    here = 1
    for step in steps:
        if step is Star.WITHIN:
            # Adding carries each position through the 1s after it, to the component's end.
            here |= ((here & inside) + inside) ^ inside
        elif step is Star.ACROSS:
            here |= starts & -(here & -here)
        else:
            here = (here & find_positions(step)) << 1
            if not here:
                return False
    # A `**` at the end matches any rest; no slug ends in `/`.
    return bool((steps and steps[-1] is Star.ACROSS) or here >> len(slug))
