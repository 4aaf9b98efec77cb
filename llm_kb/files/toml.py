"""Decode TOML from anybody, within a time that grows with its length."""

from __future__ import annotations

import re
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_DOTS = 100
"""Dots on one line, strings aside. The reader's time grows with their square."""

# Every alternative also matches when it is left open, so that the scan stays linear.
_NO_KEY = re.compile(
    r"""
    \"\"\" (?: \\. | [^\\] )*? (?: \"\"\" | \Z )
    | ''' .*? (?: ''' | \Z )
    | " (?: \\[^\n] | [^"\\\n] )* "?
    | ' [^'\n]* '?
    | \# [^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)


class TomlError(ValueError):
    """A text that is not a TOML document; the message says why and on which line."""


def decode_toml(text: str) -> dict[str, object]:
    """Decode a TOML document. Raises TomlError."""
    if _has_many_dots(text) and _has_many_dots(_NO_KEY.sub("''", text)):
        raise TomlError(f"it has a key of more than {MOST_DOTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, or a number Python refuses to convert
        raise TomlError(str(error)) from error


def _has_many_dots(text: str) -> bool:
    return any(line.count(".") > MOST_DOTS for line in text.split("\n"))
