"""Finds and reads config fragments, and parses assignments and values of `-k`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from llm_kb.config.keys import TABLES, TOPIC_KEYS, Key, LayerSource, ListKey
from llm_kb.config.layers import LayerConfig, parse_layer
from llm_kb.config.workspace import read_toml
from llm_kb.errors import (
    MAX_PATH_SHOWN,
    ConfigError,
    KbError,
    PatternError,
    cut,
    quote,
    show_place,
)
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import suggest
from llm_kb.files.walk import iter_files
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Layer, Origin

SUFFIX = ".toml"


def read_fragment(
    text: str,
    own: LayerSource,
    *,
    cwd: Path | None,
    workspace: Path | None,
    load_paths: Sequence[Path],
) -> tuple[LayerConfig, LayerSource]:
    """Return the settings of a value of `--kb-cfg`, and their source.

    A file inside the workspace may set what the workspace's own file may; an
    assignment, or a file elsewhere, may set what the user may, as `own` says. Raises KbError.
    """
    if is_assignment(text):
        place = f"--kb-cfg {cut(text, MAX_PATH_SHOWN)}"
        source = replace(own, origin=Origin(layer=Layer.COMMAND_LINE, place=place))
        return parse_assignment(text, source), source
    path = find_fragment(text, own, cwd or own.base, load_paths)
    # A link belongs to the workspace if either of its ends does.
    is_workspace = workspace is not None and (
        path.is_relative_to(workspace) or _leads_inside(path, workspace)
    )
    origin = Origin(layer=Layer.FRAGMENT, place=str(path))
    source = replace(own, origin=origin, bounds=workspace if is_workspace else None)
    return parse_layer(read_toml(path, owned_below=source.owned_below), source), source


def find_fragment(text: str, own: LayerSource, cwd: Path, load_paths: Sequence[Path]) -> Path:
    """Return the absolute path of the file that a name or a path stands for.

    A name is looked up first, unless the text can only be a path, or is the path of an
    existing file that ends in `.toml`. Raises KbError.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError(
            "--kb-cfg", [f"found {quote(text)}; allowed: a name, a path or KEY=VALUE"]
        )
    path = cwd / text
    if text.startswith("~/") and own.home is not None:
        path = own.home / text[2:]
    path = Path(os.path.normpath(path))
    if text.startswith(("/", "./", "../", "~/")) or Path(text).is_absolute():
        return path
    is_file = os.path.isfile(path)  # noqa: PTH113 - it never raises, however long the name
    if text.endswith(SUFFIX) and is_file:
        return path
    named = _find_named(text.removesuffix(SUFFIX), load_paths)
    if named is not None:
        return named
    if is_file:
        return path
    known = list_fragments(load_paths)
    searched = ", ".join(map(show_place, load_paths)) or "no directory"
    raise KbError(
        f"unknown config fragment {quote(text, MAX_PATH_SHOWN)}; available:"
        f" {', '.join(known) or 'none'} (in {searched}){suggest(text, known)}"
    )


def list_fragments(load_paths: Sequence[Path]) -> list[str]:
    """Return the names that `--kb-cfg` can find, sorted."""
    paths = {path for directory in load_paths for path, _ in iter_files(directory)}
    return sorted(path.removesuffix(SUFFIX) for path in paths if path.endswith(SUFFIX))


def _find_named(name: str, load_paths: Sequence[Path]) -> Path | None:
    for directory in (Path(os.path.normpath(load_path)) for load_path in load_paths):
        path = Path(os.path.normpath(directory / f"{name}{SUFFIX}"))
        if not os.path.lexists(path):
            continue
        if not path.is_relative_to(directory) or not _leads_inside(path, directory):
            problem = f"{name!r} leaves {str(directory)!r}; to use such a file, give its path"
            raise ConfigError("--kb-cfg", [problem])
        return path
    return None


def _leads_inside(path: Path, directory: Path) -> bool:
    return resolve_links(path).is_relative_to(resolve_links(directory))


# A key has no slash, so that `conf/a=b.toml` stays a path.
_ASSIGNMENT = re.compile(r"(?P<key>[\w.\"'\s-]+)(?P<operator>\+?=)(?P<value>.*)", re.DOTALL)


def is_assignment(text: str) -> bool:
    """Tell whether a config fragment is an assignment, not a name or a path."""
    return _ASSIGNMENT.fullmatch(text) is not None


def parse_assignment(text: str, source: LayerSource) -> LayerConfig:
    """Return the layer of `KEY=VALUE` (replaces a list) or `KEY+=VALUE` (extends a list).

    The value is TOML. A string needs no quotes, which shells remove, and may stand for a
    list of one. Raises ConfigError.
    """
    found = _ASSIGNMENT.fullmatch(text)
    if found is None:
        raise ConfigError(text, ["not an assignment; write KEY=VALUE or KEY+=VALUE"])
    parts = _split_key(found["key"].strip())
    key = _find_key(parts)
    if found["operator"] == "+=" and key is not None and not isinstance(key, ListKey):
        problem = f"{'.'.join(parts)}: only a list can be extended with '+='; use '='"
        raise ConfigError(source.origin.place or text, [problem])
    table = {parts[-1]: _parse_value(found["value"], key)}
    for part in reversed(parts[:-1]):
        table = {part: table}
    return parse_layer(table, source, replaces=found["operator"] == "=")


def split_knowledge(text: str) -> tuple[str, str]:
    """Return the topic id and pattern of a value of `-k`; a topic alone means all of it.

    Raises PatternError.
    """
    topic, slash, pattern = text.partition("/")
    if not topic:
        raise PatternError(text, "it names no topic; write TOPIC/PATTERN")
    if slash and not pattern:
        raise PatternError(text, f"nothing follows the slash; {topic!r} alone means all of it")
    return topic, parse_pattern(pattern).text if slash else "**"


def _split_key(text: str) -> list[str]:
    """Split a dotted key; a topic's id may hold dots without being quoted."""
    parts = [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text)]
    if parts[:2] == ["kb", "topic"] and len(parts) > 4:
        return [*parts[:2], ".".join(parts[2:-1]), parts[-1]]
    return parts


def _find_key(parts: Sequence[str]) -> Key | None:
    if parts[:2] == ["kb", "topic"] and len(parts) == 4:
        return TOPIC_KEYS.get(parts[-1])
    return TABLES.get(".".join(parts[:-1]), {}).get(parts[-1])


def _parse_value(text: str, key: Key | None) -> object:
    """Return a value as TOML, or else as a string."""
    # Imported here: `-k` does not need the TOML reader.
    from llm_kb.files.toml import TomlError, decode_toml  # noqa: PLC0415

    raw = text.strip()
    try:
        table = decode_toml(f"value = {raw}")
    except TomlError:  # a string without quotes
        table = {}
    value: object = table["value"] if table.keys() == {"value"} else raw
    if key is not None and key.is_text and not isinstance(value, str | list | dict):
        value = raw  # title=2026 is a title
    if isinstance(key, ListKey) and not isinstance(value, list):
        value = [value]
    return value
