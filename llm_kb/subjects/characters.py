"""The characters that control a terminal, reorder or hide text, or cannot be seen: one table.

Each entry is what stands between the brackets of a regular expression's class.
"""

from __future__ import annotations

CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""Control characters, without tabs and line ends."""

SURROGATES = "\ud800-\udfff"
"""Halves of pairs, which also stand for bytes that are not UTF-8."""

JOINERS = "\u200c\u200d"
"""Characters without width that belong to the spelling of scripts and emoji."""

ZERO_WIDTH = "\u200b\u2060-\u2064\ufeff"
REORDERING = "\u202a-\u202e\u2066-\u2069"
TAG_CHARACTERS = "\U000e0000-\U000e007f"
BLANK_LETTERS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters and symbols that are blank or joined, rows of which draw a line."""

_SELECTORS = "\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0080-\U000e0fff"
_OTHER_FORMATS = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200e\u200f\u2065\u206a-\u206f"
    "\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a"
)

HIDDEN = (
    f"{CONTROLS}\u2028\u2029{REORDERING}{ZERO_WIDTH}{_OTHER_FORMATS}{SURROGATES}{TAG_CHARACTERS}"
)
"""All that controls, reorders or hides, tabs and line ends aside: not kept in a text."""

UNUSABLE = f"\t\n\r{HIDDEN}"
"""All that controls, reorders, hides or ends a line, joiners aside: not in a name, not printed."""

INVISIBLE = f"{HIDDEN}{JOINERS}{BLANK_LETTERS}{_SELECTORS}\ufff0-\ufff8"
"""All that may be between the letters of a word without being seen."""
