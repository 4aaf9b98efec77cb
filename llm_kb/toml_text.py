"""Decode TOML, with every way it can fail as one error."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class TomlError(ValueError):
    """A text that is no TOML document; the message says why and on which line."""


def decode_toml(text: str) -> dict[str, object]:
    """Decode a TOML document. Raises TomlError."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, or a number Python refuses to convert
        raise TomlError(str(error)) from error
