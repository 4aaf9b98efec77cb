"""Others' text made safe: on one line, visible, and unable to close a tag of our prompts.

The characters that control a terminal, reorder or hide text, or cannot be seen are one table;
each entry is what stands between the brackets of a regular expression's class.
"""

from __future__ import annotations

import re
from functools import cache

CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""Control characters, without tabs and line ends."""

SURROGATES = "\ud800-\udfff"
"""Halves of pairs, which also stand for bytes that are not UTF-8."""

JOINERS = "\u200c\u200d"
"""Characters without width that belong to the spelling of scripts and emoji."""

REORDERING = "\u202a-\u202e\u2066-\u2069"
TAG_CHARACTERS = "\U000e0000-\U000e007f"
BLANK_LETTERS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"
"""Letters and symbols that are blank or joined, rows of which draw a line."""

_SELECTORS = "\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0080-\U000e0fff"
_OTHER_FORMATS = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f\u2060-\u206f"
    "\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)

HIDDEN = f"{CONTROLS}\u2028\u2029{REORDERING}{_OTHER_FORMATS}{SURROGATES}{TAG_CHARACTERS}"
"""All that controls, reorders or hides, tabs and line ends aside: not kept in a text."""

UNUSABLE = re.compile(f"[\t\n\r{HIDDEN}]")
"""All that controls, reorders, hides or ends a line, joiners aside: not in a name, not printed."""

INVISIBLE = f"{HIDDEN}{JOINERS}{BLANK_LETTERS}{_SELECTORS}"
"""All that may be between the letters of a word without being seen.

That is what Unicode calls default ignorable, and what else is blank or does not belong in a text.
"""

_LETTER = r"(?!\d)[\u0620-\u0963\u0966-\u0dff\u1000-\u109f\u1780-\u17d3\u1820-\u18af]"
"""A letter of a script that joins: Arabic and its kin, those of India, Khmer, Mongolian."""

UNSEEN = re.compile(rf"(?!\r\n)\r|(?!(?<={_LETTER})[{JOINERS}]{_LETTER})[{INVISIBLE}]")
"""What a reviewer does not see: all of them, but a joiner between two letters that it joins.

Those of emoji too: where the font has no such emoji, nobody sees whether they are there.
"""

TAGS = ("knowledge", "topic", "subject", "passage", "also", "message", "diff", "question")
"""The names of all tags that prompts and answers of ours have around others' text."""

# White space, characters without width and attributes are not part of a well-formed end tag,
# but a model reads `</ Subject >` as one, and `</sub\u200bject>` too.
_GAP = rf"[\s{INVISIBLE}]*"


@cache
def _compile_closing_tag() -> re.Pattern[str]:
    """Return the expression of our closing tags, which takes 20 ms to compile."""
    names = "|".join(_GAP.join(name) for name in TAGS)
    return re.compile(
        # Some blank characters count as letters, which must not make the name another one.
        rf"<(?={_GAP}/{_GAP}(?:{names})(?:[{INVISIBLE}]|(?![\w.:-])))",
        re.IGNORECASE,
    )


def defuse(text: str) -> str:
    r"""Return text that cannot close our tags: `</subject>` becomes `<\/subject>`."""
    return _compile_closing_tag().sub(r"<\\", text) if "<" in text else text


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


_BLANK_LETTERS = re.compile(f"[{BLANK_LETTERS}]")


def visible_line(text: str) -> str:
    """Return text on one line, for people: characters that `one_line` drops become codes."""
    text = text if text.isascii() else _BLANK_LETTERS.sub(_encode, text)
    if text.isprintable():
        return one_line(text)
    return one_line(UNUSABLE.sub(_encode, text))


def visible_text(text: str) -> str:
    """Return text for people, line by line: control characters become codes.

    Only a line feed ends a line: any other separator could make one text look like two.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(UNUSABLE.sub(_encode, line) for line in lines)


def _remove(match: re.Match[str]) -> str:
    """Return the replacement of an unusable character on a line: a space or nothing."""
    return " " if match[0].isspace() else ""


def _encode(match: re.Match[str]) -> str:
    """Return the replacement of such a character for people: tabs stay, others are codes."""
    character = match[0]
    if character == "\t":
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()
