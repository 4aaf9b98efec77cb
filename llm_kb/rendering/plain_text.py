"""Text for people and models: others' text made safe, counts and sizes.

Others' text stays on one line where a line is expected, and cannot close a tag that
is open. This module does not know topics or subjects.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from llm_kb.characters import BLANK_LETTERS, INVISIBLE, JOINERS

# White space, characters without width and attributes are not part of a well-formed end tag,
# but a model reads `</ Subject >` as one, and `</sub\u200bject>` too.
_GAP = rf"[\s{INVISIBLE}]*"
_TAGS = "|".join(
    f"[{INVISIBLE}]*".join(name) for name in ("subject", "topic", "knowledge", "passage")
)
_CLOSING_TAG = re.compile(rf"<(?={_GAP}/{_GAP}(?:{_TAGS})(?![\w.:-]))", re.IGNORECASE)


def defuse(text: str) -> str:
    r"""Return text that cannot close our tags: `</subject>` becomes `<\/subject>`."""
    return _CLOSING_TAG.sub(r"<\\", text) if "<" in text else text


def attribute(text: str) -> str:
    """Return text for use between the quotes of a tag; a name keeps its spaces."""
    if not text.isprintable():
        text = "".join(c if unicodedata.category(c) == "Zs" else _visible(c) for c in text)
    return defuse(text.replace('"', "&quot;"))


def one_line(text: str) -> str:
    """Return text on one line: runs of white space become a space, controls vanish."""
    if not text.isprintable():
        text = "".join(map(_visible, text))
    elif "  " not in text:
        return text.strip(" ")  # a space is the only white space that is printable
    return " ".join(text.split())


_BLANK_LETTERS = {ord(c): f"\\u{ord(c):04x}" for c in BLANK_LETTERS}


def visible_line(text: str) -> str:
    """Return text on one line, for people: characters that `one_line` drops become codes."""
    text = text.translate(_BLANK_LETTERS)
    if text.isprintable():
        return one_line(text)
    return one_line("".join(map(_visible_or_code, text)))


def visible_text(text: str) -> str:
    """Return text for people, line by line: control characters become codes.

    Only a line feed ends a line: any other separator could make one text look like two.
    """
    return "\n".join(
        line if line.isprintable() else "".join(map(_visible_or_code, line))
        for line in text.replace("\r\n", "\n").split("\n")
    )


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


def bounded_line(text: str) -> str:
    """Return a name or a notice on one short line without closing tags."""
    return defuse(shorten(one_line(text), LONGEST_NAME))


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number of things: `1 file`, `1,247 files`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_size(size: int) -> str:
    """Return a number of bytes in the unit that suits it: `999 B`, `1.5 KB`, `98 MB`."""
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    for unit in ("KB", "MB", "GB"):
        if amount < 999.5:
            return _two_digits(amount, unit)
        amount /= 1000
    return _two_digits(amount, "TB")


def _two_digits(amount: float, unit: str) -> str:
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:,.0f} {unit}"


def _visible(character: str) -> str:
    """Return the replacement of a character on a line: itself, a space or nothing."""
    if character.isspace():
        return " "
    # Cc control, Cf format (bidirectional, tag characters), Cs surrogate
    hidden = unicodedata.category(character) in {"Cc", "Cf", "Cs"}
    return "" if hidden and character not in JOINERS else character


def _visible_or_code(character: str) -> str:
    if character == "\t":
        return character
    return _visible(character) or character.encode("unicode_escape").decode()
