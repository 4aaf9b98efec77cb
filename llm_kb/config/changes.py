"""Changes the text of a configuration file as a person would.

Each change proposes texts; `edit_config` writes the first one that has exactly the expected
content.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.config.keys import LayerSource
from llm_kb.config.layers import LayerConfig, parse_layer
from llm_kb.config.workspace import decode_bytes, read_bytes
from llm_kb.errors import ConfigError, KbError, UnknownTopicError
from llm_kb.files.atomic import locked, replace_file
from llm_kb.files.containment import resolve_links
from llm_kb.files.toml import TomlError, decode_toml

_HEADER = re.compile(r"\s*\[")
_BLANK_OR_COMMENT = re.compile(r"\s*(#.*)?")


class Change(NamedTuple):
    """A new value for a dotted key of a topic, or for the topic; None removes it."""

    key: tuple[str, ...]
    value: dict[str, Any] | list[str] | str | None

    def apply(self, document: Any) -> None:
        """Make the change in a document."""
        *tables, name = self.key
        for table in tables:
            document = document.setdefault(table, {})
        if self.value is None:
            del document[name]
        else:
            document[name] = self.value


def define_topic(document: Mapping[str, Any], id_: str, fields: Mapping[str, Any]) -> Change:
    """Return the change that defines a new topic. Raises KbError for one that exists."""
    if id_ in _topics(document):
        raise KbError(
            f"topic {id_!r} exists already; 'llm kb new {id_}/SLUG' writes a subject of it"
        )
    return Change(("kb", "topic", id_), dict(fields))


def drop_topic(document: Mapping[str, Any], id_: str) -> Change:
    """Return the change that removes a topic; comments outside its table stay.

    Raises UnknownTopicError.
    """
    _require_topic(document, id_)
    return Change(("kb", "topic", id_), None)


def extend_patterns(
    document: Mapping[str, Any], id_: str, name: str, patterns: Sequence[str]
) -> Change:
    """Return the change that adds patterns to a topic's list, each only once."""
    there = _topics(document).get(id_, {}).get(name, [])
    return Change(("kb", "topic", id_, name), list(dict.fromkeys((*there, *patterns))))


def reduce_patterns(
    document: Mapping[str, Any], id_: str, name: str, patterns: Sequence[str]
) -> Change:
    """Return the change that removes patterns from a topic's list.

    Raises KbError for one that is not in it.
    """
    there = _topics(document).get(id_, {}).get(name, [])
    for pattern in patterns:
        if pattern not in there:
            holds = ", ".join(there) or "nothing"
            raise KbError(f"{pattern!r} is not in kb.topic.{id_}.{name}; it holds: {holds}")
    return Change(("kb", "topic", id_, name), [each for each in there if each not in patterns])


def _topics(document: Mapping[str, Any]) -> Mapping[str, Any]:
    topics: Mapping[str, Any] = document.get("kb", {}).get("topic", {})
    return topics


def _require_topic(document: Mapping[str, Any], id_: str) -> None:
    if id_ not in _topics(document):
        raise UnknownTopicError(id_, sorted(_topics(document)))


def _propose(text: str, change: Change) -> Iterator[str]:
    """Yield texts that may show a change, the best first."""
    (_, _, id_, *name), value = change
    if isinstance(value, dict):
        lines = "".join(f"{key} = {_quote(text)}\n" for key, text in value.items())
        start = text.rstrip("\n") + "\n\n" if text.strip() else ""
        header = id_ if re.fullmatch(r"[A-Za-z0-9_-]+", id_) else _quote(id_)
        yield f"{start}[kb.topic.{header}]\n{lines}"
    elif value is None:
        yield from _without_table(text, id_)
    else:
        if isinstance(value, list):
            yield _with_tomlkit(text, lambda document: _edit_array(document, change.key, value))
        yield from _with_line(text, id_, f"{name[0]} = {_quote(value)}")
    yield _with_tomlkit(text, change.apply)


def _with_tomlkit(text: str, change: Callable[[Any], object]) -> str:
    """Return the text after a change of the document, or unchanged if that fails."""
    try:
        document = tomlkit.parse(text)
        change(document)
        return tomlkit.dumps(document)
    except (TOMLKitError, LookupError, TypeError, ValueError, AttributeError):
        return text


def _edit_array(document: Any, key: Sequence[str], patterns: Sequence[str]) -> None:
    """Change an array to these patterns, keeping the comments of the others."""
    array = reduce(getitem, key, document)
    for place in reversed(range(len(array))):
        if array[place] not in patterns:
            del array[place]
    for pattern in patterns[len(array) :]:
        array.append(pattern)


def _without_table(text: str, id_: str) -> Iterator[str]:
    """Yield the text without the topic's table, for each possible end of the table."""
    lines = text.splitlines(keepends=True)
    for start in _find_headers(lines, id_):
        for end in range(start + 1, len(lines) + 1):
            if end < len(lines) and not _HEADER.match(lines[end]):
                continue
            # Comments right above the next header belong to that one.
            kept = end
            while kept > start + 1 and _BLANK_OR_COMMENT.fullmatch(lines[kept - 1].rstrip("\n")):
                kept -= 1
            before, rest = "".join(lines[:start]), "".join(lines[kept:])
            if not before.strip() or before.endswith("\n\n"):
                rest = rest.lstrip("\n")
            yield before + rest if rest.strip() else f"{before.rstrip()}\n".lstrip("\n")


def _with_line(text: str, id_: str, line: str) -> Iterator[str]:
    """Yield the text with a line added below the last one of the topic's table."""
    lines = text.splitlines(keepends=True)
    for start in _find_headers(lines, id_):
        for place in range(len(lines), start, -1):
            previous = lines[place - 1]
            if _BLANK_OR_COMMENT.fullmatch(previous.rstrip("\n")):
                continue
            end = "" if previous.endswith("\n") else "\n"
            yield "".join([*lines[:place], end, f"{line}\n", *lines[place:]])


def _find_headers(lines: Sequence[str], id_: str) -> list[int]:
    name = re.escape(id_)
    header = re.compile(
        rf"""\s*\[\s*kb\s*\.\s*topic\s*\.\s*("{name}"|'{name}'|{name})\s*\]\s*(\#.*)?\n?"""
    )
    return [number for number, line in enumerate(lines) if header.fullmatch(line)]


def _quote(value: str | list[str]) -> str:
    # JSON strings are TOML strings, except that TOML also escapes DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_MARK = b"\xef\xbb\xbf"


def edit_config(
    source: LayerSource,
    decide: Callable[[dict[str, Any]], Change],
    check: Callable[[LayerConfig], None] = lambda _: None,
) -> None:
    """Make one change to a configuration file, which is created if necessary.

    `decide` and `check` are called while the file is locked. Raises KbError, as `prepare_edit`.
    """
    file = resolve_links(source.path)
    with locked(file.with_name(f".{file.name}.lock")):
        replace_file(source.path, prepare_edit(source, decide, check))


def prepare_edit(
    source: LayerSource,
    decide: Callable[[dict[str, Any]], Change],
    check: Callable[[LayerConfig], None] = lambda _: None,
) -> bytes:
    """Return the content of a configuration file after a change, which `decide` returns.

    `decide` gets the document, and may raise. Raises ConfigError if the new text is not a valid
    layer or `check` raises it, KbError if other parts would change.
    """
    path = source.path
    data = read_bytes(path, owned_below=source.owned_below) if os.path.lexists(path) else b""
    document = decode_bytes(data, path)
    parse_layer(document, source)
    change = decide(copy.deepcopy(document))
    text = apply_change(change, data.decode("utf-8-sig"), path)
    try:
        check(parse_layer(decode_toml(text), source))
    except ConfigError as error:
        raise ConfigError(f"{path}, left as it is", error.problems) from error
    return (_MARK if data.startswith(_MARK) else b"") + text.encode()


def apply_change(change: Change, text: str, path: Path) -> str:
    """Return the text after a change. Raises KbError if other parts would change."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    expected = decode_toml(text)
    change.apply(expected)
    _prune(expected)
    for candidate in _propose(text, change):
        if _reads_as(candidate, expected):
            return candidate.replace("\n", newline)
    key = ".".join(change.key)
    raise KbError(
        f"cannot change {key} in {str(path)!r} without touching other parts; edit it by hand"
    )


def _reads_as(text: str, expected: dict[str, Any]) -> bool:
    try:
        document = decode_toml(text)
    except TomlError:
        return False
    _prune(document)
    return document == expected


def _prune(document: dict[str, Any]) -> None:
    """Remove empty tables, which make no difference."""
    kb = document.get("kb")
    if kb and kb.get("topic") == {}:
        del kb["topic"]
    if kb == {}:
        del document["kb"]
