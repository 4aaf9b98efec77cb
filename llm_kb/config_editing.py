"""Edit a configuration file as a careful person would: one place changed, all else kept.

A text that reads back as anything but what was wanted is never written.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_kb.atomic import locked, replace_file
from llm_kb.config_changes import Change
from llm_kb.config_keys import Speaker
from llm_kb.config_layers import LayerConfig, parse_layer
from llm_kb.config_reading import decode_bytes, read_bytes
from llm_kb.errors import ConfigError, KbError
from llm_kb.toml_text import TomlError, decode_toml
from llm_kb.topics import Layer

_MARK = b"\xef\xbb\xbf"


class EditError(KbError):
    """A file in which a change cannot be made without touching something else."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key
        super().__init__(
            f"cannot change {key} in {str(path)!r} without touching other parts; edit it by hand"
        )


def edit_config(
    path: Path,
    speaker: Speaker,
    decide: Callable[[dict[str, Any]], Change],
    check: Callable[[LayerConfig], None] = lambda _: None,
) -> None:
    """Make one change to a configuration file, or write the file where there is none.

    `decide` is given the document as it is, while no other editor can change it,
    and may raise. Nothing is written that is no valid layer, or for which `check`
    raises ConfigError. Raises ConfigError, EditError, WriteError.
    """
    with locked(Path(os.path.realpath(path)).parent):
        is_workspace = speaker.origin.layer is not Layer.USER
        data = read_bytes(path, require_owner=is_workspace) if os.path.lexists(path) else b""
        document = decode_bytes(data, path)
        parse_layer(document, speaker)
        change = decide(copy.deepcopy(document))
        text = apply_change(change, data.decode("utf-8-sig"), path)
        try:
            check(parse_layer(decode_toml(text), speaker))
        except ConfigError as error:
            raise ConfigError(f"{path}, left as it is", error.problems) from error
        replace_file(path, (_MARK if data.startswith(_MARK) else b"") + text.encode())


def apply_change(change: Change, text: str, path: Path) -> str:
    """Return the text after a change. Raises EditError."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    expected = decode_toml(text)
    change.apply(expected)
    _prune(expected)
    for candidate in change.write(text):
        if _reads_as(candidate, expected):
            return candidate.replace("\n", newline)
    raise EditError(path, ".".join(change.key))


def _reads_as(text: str, expected: dict[str, Any]) -> bool:
    try:
        document = decode_toml(text)
    except TomlError:
        return False
    _prune(document)
    return document == expected


def _prune(document: dict[str, Any]) -> None:
    """Drop the tables that say nothing: whether one is written out makes no difference."""
    kb = document.get("kb")
    if kb and kb.get("topic") == {}:
        del kb["topic"]
    if kb == {}:
        del document["kb"]
