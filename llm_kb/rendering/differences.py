"""The difference of two texts for people, line by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import takewhile

from llm_kb.errors import cut
from llm_kb.texts.document import find_line
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import visible_text

CONTEXT = 3
"""Lines around a difference."""

LONGEST = 500
"""The most characters of a line that is not different."""

MOST_COMPARED = 2_000
"""The most lines in which common ones are looked for: that takes time with their square."""


def render_difference(before: str, after: str, path: str) -> list[str]:
    """Return the lines that differ, `-` those of before and `+` those of after, and some around.

    Above each place in a text that was not empty is a line with its number and its heading, by the
    format of `path`. What cannot be seen becomes codes, also line ends if they are not all alike.
    Of texts with too many different lines, all from the first difference to the last are shown.
    """
    are_alike = {text.count("\r\n") == text.count("\n") for text in (before, after) if text}
    shown = "" if are_alike == {True} else "\\r"
    old, new = (_split(text.replace("\r\n", f"{shown}\n")) for text in (before, after))
    start = max(_count_common(old, new) - CONTEXT, 0)
    end = max(_count_common(old[start:][::-1], new[start:][::-1]) - CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(new) > MOST_COMPARED:
        lines = ["@@ -1", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        # Its first lines name the files.
        lines = [*unified_diff(old, new, n=CONTEXT, lineterm="")][2:]
    named = _name_places(lines, path, before, start) if before else lines[1:]
    # Of what stays as it is, a long line need not be read to its end.
    return [visible_text(line if line[0] in "-+" else cut(line, LONGEST)) for line in named]


def _name_places(lines: Sequence[str], path: str, before: str, start: int) -> Iterator[str]:
    """Yield the lines of a difference, in which each place is named by its line and heading.

    The heading is that of the last line above a change. The first `start` lines are left out.
    """
    document, first = read_document(path, before), find_line(before, 0, start)
    for at, line in enumerate(lines, start=1):
        if not (place := re.match(r"@@ -(\d+)", line)):
            yield line
            continue
        same = takewhile(lambda each: each[0] == " ", lines[at : at + CONTEXT + 1])
        below = int(place[1]) - 1 + len([*same])
        above = find_line(before, first, below - 1)
        title = document.find_section(above, above + 1).title if start + below else ""
        yield f"@@ line {start + below + 1:,} @@ {title}".rstrip()


def _split(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, last, "\\ no line end"] if last else lines


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of lines with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
