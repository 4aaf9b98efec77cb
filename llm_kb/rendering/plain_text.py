"""Text for people and models: others' text made safe, counts, sizes and tokens.

Others' text stays on one line where a line is expected, and cannot close a tag that
is open. This module does not know topics or subjects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from llm_kb.subjects.characters import BLANK_LETTERS, INVISIBLE
from llm_kb.subjects.names import UNUSABLE

# White space, characters without width and attributes are not part of a well-formed end tag,
# but a model reads `</ Subject >` as one, and `</sub\u200bject>` too.
_GAP = rf"[\s{INVISIBLE}]*"
_TAGS = "|".join(
    f"[{INVISIBLE}]*".join(name) for name in ("subject", "topic", "knowledge", "passage", "also")
)
_CLOSING_TAG = re.compile(rf"<(?={_GAP}/{_GAP}(?:{_TAGS})(?![\w.:-]))", re.IGNORECASE)


def defuse(text: str) -> str:
    r"""Return text that cannot close our tags: `</subject>` becomes `<\/subject>`."""
    return _CLOSING_TAG.sub(r"<\\", text) if "<" in text else text


def attribute(text: str) -> str:
    """Return text for use between the quotes of a tag; a name keeps its spaces."""
    text = UNUSABLE.sub(_remove, text)
    return defuse(text.replace('"', "&quot;"))


def one_line(text: str) -> str:
    """Return text on one line: runs of white space become a space, controls vanish."""
    if not text.isprintable():
        text = UNUSABLE.sub(_remove, text)
    elif "  " not in text:
        return text.strip(" ")  # a space is the only white space that is printable
    return " ".join(text.split())


_BLANK_LETTERS = {ord(c): f"\\u{ord(c):04x}" for c in BLANK_LETTERS}


def visible_line(text: str) -> str:
    """Return text on one line, for people: characters that `one_line` drops become codes."""
    text = text.translate(_BLANK_LETTERS)
    if text.isprintable():
        return one_line(text)
    return one_line(UNUSABLE.sub(_encode, text))


def visible_text(text: str) -> str:
    """Return text for people, line by line: control characters become codes.

    Only a line feed ends a line: any other separator could make one text look like two.
    """
    return "\n".join(UNUSABLE.sub(_encode, line) for line in text.replace("\r\n", "\n").split("\n"))


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


def _remove(match: re.Match[str]) -> str:
    """Return the replacement of an unusable character on a line: a space or nothing."""
    return " " if match[0].isspace() else ""


def _encode(match: re.Match[str]) -> str:
    """Return the replacement of such a character for people: tabs stay, others are codes."""
    character = match[0]
    if character == "\t":
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()
