"""Translates patterns into regular expressions that match in linear time.

A wildcard ends at the nearest place where the next chunk or run fits. Since these have a
fixed length, a later place could never do better, so the regex need not backtrack.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from llm_kb.subjects.glob_syntax import Char, Chunk, Component, Run

# `*` after `**` matches any text that is not empty.
_LEVEL = "[^/]+"
_BELOW = ".+"


def translate(runs: Sequence[Run], groups: Iterator[int]) -> str:
    """Return the source of a regex that matches whole slugs, for `re.DOTALL`.

    `groups` yields numbers for group names, never twice within one expression.
    """
    first, *searched = runs
    parts = [_translate_run(first, groups)]
    for position, run in enumerate(searched):
        parts.append("/" if position == 0 and first else "")
        ends = position == len(searched) - 1
        # Nothing after the last search can fail, so it may start from the far end.
        settles = ends or (position == len(searched) - 2 and not searched[-1])
        if run and settles:
            parts.append("(?:.*/)?" + _translate_run(run, groups))
        elif run:
            parts.append(_settle("(?:.*?/)??" + _translate_run(run, groups) + "/", groups))
        if run and not ends and settles:
            parts.append("/")
        if ends and not run:
            parts.append(_BELOW)
    return "".join(parts)


def _translate_run(run: Run, groups: Iterator[int]) -> str:
    return "/".join(_translate_component(component, groups) for component in run)


def _translate_component(component: Component, groups: Iterator[int]) -> str:
    if component == ((), ()):
        return _LEVEL
    first, *searched = map(_translate_chunk, component)
    if not searched:
        return first
    *middle, last = searched
    settled = [_settle(f"[^/]*?{chunk}", groups) for chunk in middle]
    if middle and not last:
        # The rest of the level may be anything, and the farthest place is found faster.
        settled[-1] = _settle(f"[^/]*{middle[-1]}", groups)
    return f"{first}{''.join(settled)}[^/]*{last}"


def _settle(source: str, groups: Iterator[int]) -> str:
    """Return an expression that keeps its first match, whatever follows."""
    if sys.version_info >= (3, 11):
        return f"(?>{source})"
    # A lookahead keeps its first match too; the back-reference consumes it.
    name = f"_{next(groups)}"
    return f"(?=(?P<{name}>{source}))(?P={name})"


def _translate_chunk(chunk: Chunk) -> str:
    return "".join(map(_translate_char, chunk))


def _translate_char(char: Char) -> str:
    if isinstance(char, str):
        return re.escape(char)
    spans = "".join(
        re.escape(first) if first == last else f"{re.escape(first)}-{re.escape(last)}"
        for first, last in char.ranges
    )
    if char.negated:
        return f"[^/{spans}]"
    return f"[{spans}]" if spans else "(?!)"
