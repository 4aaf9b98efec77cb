"""Decoding TOML from strangers, in time that is linear in its length."""

from __future__ import annotations

import re
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_DOTS = 20
"""Dots on one line outside of strings. `tomllib` takes time that is quadratic in them."""

MOST_TABLES = 10_000
"""Lines that begin with a bracket. Each may be a table, which takes the most time to make."""

# Every alternative also matches without its end, so that the scan stays linear.
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
    """A text that is not valid TOML; the message names the reason and the line."""


def decode_toml(text: str) -> dict[str, object]:
    """Decode a TOML document. Raises TomlError."""
    if _has_many_dots(text) and _has_many_dots(_NO_KEY.sub("''", text)):
        raise TomlError(f"it has a key of more than {MOST_DOTS} parts")
    if text.count("\n[") > MOST_TABLES:
        raise TomlError(f"it has more than {MOST_TABLES:,} tables")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, or a number Python refuses to convert
        reason, at, place = str(error).rpartition(" (at ")
        message = f"{place.removesuffix(')')}: {reason}" if at else str(error)
        raise TomlError(message) from error


def _has_many_dots(text: str) -> bool:
    return any(line.count(".") > MOST_DOTS for line in text.split("\n"))
