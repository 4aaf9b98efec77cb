"""Text for people and models: names, counts, sizes and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from llm_kb.texts.safe import defuse, one_line


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of a line, with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


MAX_NAMED = 3
"""Maximum number of names in a line of text; the rest are counted."""

LONGEST_NAME = 300


def name_some(names: Iterable[str]) -> str:
    """Return the first names, made safe for a line, and the number of the others."""
    names = list(names)
    shown = ", ".join(map(bounded_line, names[:MAX_NAMED]))
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown


def join_fitting(names: Sequence[str], room: int) -> str:
    """Return the first names that fit on a line, at least one, and the number of the others."""
    if sum(len(name) + len(", ") for name in names) <= room + len(", "):
        return ", ".join(names)
    ends = accumulate(len(name) + len(", ") for name in names)
    fitting = max(1, sum(end <= room - len("and 10,000 more") for end in ends))
    return ", ".join([*names[:fitting], f"and {len(names) - fitting:,} more"])


def bounded_line(text: str) -> str:
    """Return a name or a notice on one short line without closing tags."""
    return defuse(shorten(one_line(text), LONGEST_NAME))


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number of things: `1 file`, `1,247 files`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


CHARACTERS = 4
"""Characters, or bytes, that make one token."""


def estimate_tokens(text: str | int) -> int:
    """Estimate the tokens of a text, or of a number of characters; part of one counts whole."""
    return -(-(text if isinstance(text, int) else len(text)) // CHARACTERS)


def format_size(size: int) -> str:
    """Return a number of bytes in the unit that suits it: `999 B`, `1.5 KB`, `98 MB`."""
    amount, units = float(size), ["B", "KB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        del units[0]
    digits = 1 if amount < 9.95 and units[0] != "B" else 0
    return f"{amount:,.{digits}f} {units[0]}"
