"""Readers of single values from outside, and how errors show such values.

Each reader returns the value in its proper type or raises BadValueError. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from llm_kb.characters import CONTROLS, SURROGATES
from llm_kb.errors import MAX_SHOWN, cut, find_similar, quote

MAX_COUNT = 2**63 - 1
"""The largest number that TOML promises to hold; a larger one may not even be printable."""

CONTROL = re.compile(f"[{CONTROLS}{SURROGATES}]")


class BadValueError(ValueError):
    """A value that is not allowed for its key; the message names the value and the allowed ones."""

    def __init__(self, found: str, allowed: str) -> None:
        self.found = found
        self.allowed = allowed
        super().__init__(f"found {found}; allowed: {allowed}")


def read_text(value: object) -> str:
    """Read a string of any number of lines, without control characters."""
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    if CONTROL.search(value):
        raise BadValueError(describe(value), "a string without control characters")
    return value


def read_line(value: object) -> str:
    """Read a string of one line, without control characters."""
    text = read_text(value)
    if "\n" in text or "\r" in text:
        raise BadValueError(describe(value), "a string of one line")
    return text


def read_flag(value: object) -> bool:
    """Read `true` or `false`."""
    if not isinstance(value, bool):
        raise BadValueError(describe(value), "true or false")
    return value


def read_count(value: object, least: int = 0, most: int = MAX_COUNT) -> int:
    """Read a whole number from `least` to `most`; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        is_open = most == MAX_COUNT and not (isinstance(value, int) and value > most)
        allowed = f"{least} or more" if is_open else f"from {least} to {most}"
        raise BadValueError(describe(value), f"a whole number{',' if is_open else ''} {allowed}")
    return value


def read_choice(value: object, choices: Collection[str]) -> str:
    """Read one of these strings."""
    if not isinstance(value, str) or value not in choices:
        raise BadValueError(describe(value), ", ".join(sorted(choices)) + suggest(value, choices))
    return value


def describe(value: object) -> str:
    """Name a value for an error, short and on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        is_short = len(value) <= MAX_SHOWN // 3 and all(isinstance(i, str | int) for i in value)
        shown = f"[{', '.join(map(show_value, value))}]" if is_short else ""
        return f"the list {shown}" if is_short and len(shown) <= MAX_SHOWN else "a list"
    if isinstance(value, bool | str):
        return show_value(value)
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return f"the {kind} {show_value(value)}"


def suggest(found: object, choices: Collection[str]) -> str:
    """Return `; did you mean …?` with the nearest choice (of a mapping, its value), or nothing."""
    if not isinstance(found, str) or len(found) > MAX_SHOWN:
        return ""
    near = find_similar(found, sorted(choices), most=1)
    if not near:
        return ""
    meant = choices[near[0]] if isinstance(choices, Mapping) else near[0]
    return f"; did you mean {meant!r}?"


def show_value(value: object) -> str:
    """Return a single value as an error names it: short, on one line."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return repr(value).lower()
    try:
        return cut(repr(value))
    except ValueError:  # a number of more digits than Python prints
        return "too long to print"
