"""Parses a pattern into components, chunks between stars, and characters.

Pure; matching is in `glob_regex` and `glob_bits`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CharClass:
    """`[...]`, or `?` as the negation of nothing; never matches a `/`."""

    ranges: tuple[tuple[str, str], ...]
    """First and last character of each range: sorted, apart, without `/`."""
    negated: bool

    def __contains__(self, char: str) -> bool:
        """Tell whether the class matches this one character."""
        index = bisect_right(self.ranges, (char, "\U0010ffff"))
        listed = index > 0 and char <= self.ranges[index - 1][1]
        return char != "/" and listed != self.negated


Char: TypeAlias = str | CharClass
Chunk: TypeAlias = tuple[Char, ...]
Component: TypeAlias = tuple[Chunk, ...]
"""The chunks between the stars: `ab*c` is `(("a", "b"), ("c",))`, `*` is `((), ())`."""
Run: TypeAlias = tuple[Component, ...]
"""Components in sequence; a pattern is the runs between its `**`."""

ANY = CharClass(ranges=(), negated=True)


def parse_runs(text: str) -> tuple[Run, ...]:
    """Split a pattern into the runs of components between its `**`.

    The first run starts the slug and the last one ends it; either is empty if the pattern
    has a `**` there. Repeated `**` count as one.
    """
    runs: list[list[Component]] = [[]]
    for component in text.split("/"):
        if component != "**":
            runs[-1].append(parse_component(component))
        elif len(runs) == 1 or runs[-1]:
            runs.append([])
    return tuple(map(tuple, runs))


def parse_component(text: str) -> Component:
    """Split one component at its stars into chunks of characters.

    An unclosed `[` is an ordinary character. So is one whose `]` comes only
    after a `/`, because components are split first, as in a shell.
    """
    chunks: list[list[Char]] = [[]]
    last_bracket = text.rfind("]")
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append([])
        elif char == "?":
            chunks[-1].append(ANY)
        else:
            body = index + (text[index : index + 1] in ("!", "^"))
            # A `]` right at the start is a member, so the end is looked for after it.
            end = text.find("]", body + 1) if char == "[" and body < last_bracket else -1
            if end < 0:
                chunks[-1].append(char)
            else:
                chunks[-1].append(_parse_class(text[body:end], negated=body > index))
                index = end + 1
    return tuple(map(tuple, chunks))


@lru_cache(maxsize=256)
def _parse_class(body: str, *, negated: bool) -> CharClass:
    """Return the class of the text between the brackets; a reversed range is empty.

    Equal texts give the same object.
    """
    spans: list[tuple[str, str]] = []
    index = 0
    while index < len(body):
        is_range = body[index + 1 : index + 2] == "-" and index + 2 < len(body)
        first, last = body[index], body[index + 2 if is_range else index]
        index += 3 if is_range else 1
        if first <= "/" <= last:
            # `/` separates components, so no class may cross it: `.` and `0` are its neighbours.
            spans += [(first, "."), ("0", last)]
        else:
            spans.append((first, last))
    ranges: list[tuple[str, str]] = []
    for first, last in sorted(span for span in spans if span[0] <= span[1]):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        else:
            ranges.append((first, last))
    return CharClass(ranges=tuple(ranges), negated=negated)
