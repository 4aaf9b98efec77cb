"""The difference of two texts for people, line by line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from llm_kb.errors import cut
from llm_kb.texts.safe import visible_text

CONTEXT = 3
"""Lines around a difference."""

LONGEST = 500
"""The most characters of a line that is not different."""

MOST_COMPARED = 2_000
"""The most lines in which common ones are looked for: that takes time with their square."""


def render_difference(before: str, after: str) -> list[str]:
    """Return the lines that differ, `-` those of before and `+` those of after, and some around.

    What cannot be seen becomes codes, also line ends if they are not all alike. Of texts with too
    many different lines, all from the first difference to the last are shown.
    """
    are_alike = {text.count("\r\n") == text.count("\n") for text in (before, after) if text}
    shown = "" if are_alike == {True} else "\\r"
    old, new = (_split(text.replace("\r\n", f"{shown}\n")) for text in (before, after))
    start = max(_count_common(old, new) - CONTEXT, 0)
    end = max(_count_common(old[start:][::-1], new[start:][::-1]) - CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(new) > MOST_COMPARED:
        lines = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        diff = unified_diff(old, new, n=CONTEXT, lineterm="")
        # Its first lines name the files, and others are numbers of lines.
        lines = ["..." if line.startswith("@@") else line for line in [*diff][3:]]
    # Of what stays as it is, a long line need not be read to its end.
    return [visible_text(line if line[0] in "-+" else cut(line, LONGEST)) for line in lines]


def _split(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, last, "\\ no line end"] if last else lines


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of lines with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
