"""Text for people and models: names, counts, sizes and tokens."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from llm_kb.texts.markup import mark_fenced
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


_SIGNS = re.compile(r" *(?:(?:>|[-*+]|(?:#|\d{1,3})[.)]) +)*")
"""What is before the words of a line: its indentation, the sign of an item or a quotation."""

_WORDS = re.compile(r"[\w\"'(\[`*]")
_COLUMNS = re.compile(r"[|\t]|[^\s.,;:!?] {2,}\S")


def wrap_prose(text: str, width: int, *, is_markdown: bool) -> list[str]:
    """Return the lines of Markdown or reStructuredText, those of long prose broken between words.

    What is in columns, or may be code by its indentation, stays as it is; in Markdown what is
    fenced as well, and a text that begins or ends within a fence as a whole.
    """
    lines = text.split("\n")
    is_open, marked = False, [(False, line) for line in lines]
    if is_markdown:
        *marked, (is_open, _) = mark_fenced([*lines, ""])
    deepest = 3 if is_markdown else 0
    return [line if is_open or is_code else _wrap(line, width, deepest) for is_code, line in marked]


def _wrap(line: str, width: int, deepest: int) -> str:
    """Return a line broken after `width` columns, with the same before the words of each part.

    One stays as it is if that is over half of the width, or if a character is of two columns.
    """
    words = _SIGNS.sub("", line, count=1)
    signs = line[: len(line) - len(words)]
    is_deep = len(signs) - len(signs.lstrip(" ")) > deepest or 2 * len(signs) > width
    is_prose = _WORDS.match(words) and not _COLUMNS.search(words)
    if len(line) <= width or is_deep or not is_prose or len(line) < count_columns(line):
        return line
    below = re.sub("[^> ]", " ", signs)
    return textwrap.fill(
        line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )


def count_columns(text: str) -> int:
    """Return how many columns of a terminal a line takes: characters of East Asia take two."""
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)


def cut_columns(text: str, columns: int) -> str:
    """Return what fits into columns of a terminal, at least one, with an ellipsis if it was cut."""
    if count_columns(text) <= columns:
        return text
    ends = accumulate(map(count_columns, text))
    return text[: sum(end < columns for end in ends)].rstrip() + "…"


def fold_columns(line: str, columns: int) -> list[str]:
    """Return a line as a terminal of so many columns breaks it."""
    rows = []
    while count_columns(line) > columns:
        at = max(1, sum(end <= columns for end in accumulate(map(count_columns, line))))
        rows.append(line[:at])
        line = line[at:]
    return [*rows, line]


def bounded_line(text: str) -> str:
    """Return a name or a notice on one short line without closing tags."""
    return defuse(shorten(one_line(text), LONGEST_NAME))


def name_place(path: str, cwd: Path) -> str:
    """Return a path relative to the current directory, if it is below that."""
    return path.removeprefix(f"{cwd}{os.sep}")


def command_line(*words: str) -> str:
    """Return a command of `llm kb` as a shell takes it, also for names like those of options."""
    at = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    dashes = ["--"] if at < len(words) else []
    return shlex.join(["llm", "kb", *words[:at], *dashes, *words[at:]])


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
