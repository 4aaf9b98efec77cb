"""Changes the text of a configuration file as a person would: comments and order stay.

Each change takes a text and returns the new one, after checking that nothing else changed in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.config.layers import LayerSource, parse_layer, topic_key
from llm_kb.config.workspace import decode_bytes, read_bytes
from llm_kb.errors import ConfigError, KbError, UnknownTopicError
from llm_kb.files.atomic import find_inside, locked, replace_below, replace_file
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import TomlError, decode_toml

_HEADER = re.compile(r"\s*\[")
_BLANK_OR_COMMENT = re.compile(r"\s*(#.*)?")


def edit_config(source: LayerSource, change: Callable[[str], str]) -> None:
    """Change the text of a configuration file, which is created if necessary.

    `change` is called while the file is locked. Raises ConfigError if the file or the new text is
    not a valid layer, and what `change` raises.
    """
    path, root = source.path, source.bounds
    # A file of a workspace stays in it; a user's own may be a link into a directory of dotfiles.
    file = resolve_links(root) / find_inside(root, path) if root else resolve_links(path)
    with locked(file.with_name(f".{file.name}.lock")):
        data = read_bytes(path, owned_below=source.owned_below) if os.path.lexists(path) else b""
        parse_layer(decode_bytes(data, path), source)
        text = data.decode("utf-8-sig")
        newline = "\r\n" if "\r\n" in text else "\n"
        changed = change(text.replace("\r\n", "\n"))
        try:
            parse_layer(decode_toml(changed), source)
        except ConfigError as error:
            raise ConfigError(f"{path}, left as it is", error.problems) from error
        written = changed.replace("\n", newline).encode()
        if root:
            replace_below(root, path, written)
        else:
            replace_file(path, written)


def define_topic(text: str, id_: str, fields: Mapping[str, Any]) -> str:
    """Return the text with a new topic's table at its end. Raises KbError for one that exists."""
    topics, rest = _read(text)
    if id_ in topics:
        raise KbError(
            f"topic {id_!r} exists already; 'llm kb new {id_}/SLUG' writes a subject of it"
        )
    start = text.rstrip("\n") + "\n\n" if text.strip() else ""
    header = id_ if re.fullmatch(r"[A-Za-z0-9_-]+", id_) else _quote(id_)
    lines = "".join(f"{name} = {_quote(value)}\n" for name, value in fields.items())
    expected = {**topics, id_: dict(fields)}
    return _checked(f"{start}[kb.topic.{header}]\n{lines}", expected, rest)


def drop_topic(text: str, id_: str) -> str:
    """Return the text without a topic's table, with the comments around it.

    Raises UnknownTopicError.
    """
    topics, rest = _read(text)
    if id_ not in topics:
        raise UnknownTopicError(id_, sorted(topics))
    lines = text.splitlines(keepends=True)
    start, end = _find_table(lines, id_)
    before, after = "".join(lines[:start]), "".join(lines[end:])
    if not before.strip() or before.endswith("\n\n"):
        after = after.lstrip("\n")
    changed = before + after if after.strip() else f"{before.rstrip()}\n".lstrip("\n")
    del topics[id_]
    return _checked(changed, topics, rest)


def edit_patterns(
    text: str, id_: str, name: str, patterns: Sequence[str], *, remove: bool = False
) -> str:
    """Return the text with patterns added to a topic's list, each only once, or removed from it.

    Raises KbError for one to remove that is not there.
    """
    topics, rest = _read(text)
    there: list[str] = topics.get(id_, {}).get(name, [])
    for pattern in patterns:
        if remove and pattern not in there:
            holds = ", ".join(there) or "nothing"
            raise KbError(f"{pattern!r} is not in {topic_key(id_, name)}; it holds: {holds}")
    # A list that a person wrote may have one twice.
    wanted = [each for each in there if not (remove and each in patterns)]
    wanted += [each for each in dict.fromkeys(patterns) if not (remove or each in there)]
    if id_ not in topics:
        return define_topic(text, id_, {name: wanted})
    expected = {**topics, id_: {**topics[id_], name: wanted}}
    if name in topics[id_]:
        return _checked(_edit_array(text, id_, name, wanted), expected, rest)
    lines = text.splitlines(keepends=True)
    _, end = _find_table(lines, id_)
    before = "".join(lines[:end])
    newline = "" if before.endswith("\n") else "\n"
    line = f"{name} = {_quote(wanted)}\n"
    return _checked("".join([before, newline, line, *lines[end:]]), expected, rest)


def _edit_array(text: str, id_: str, name: str, patterns: Sequence[str]) -> str:
    """Return the text with another content of an array, with the comments of what stays."""
    try:
        document: Any = tomlkit.parse(text)
        array = document["kb"]["topic"][id_][name]
        for place in reversed(range(len(array))):
            if array[place] not in patterns:
                del array[place]
        for pattern in patterns[len(array) :]:
            array.append(pattern)
        return tomlkit.dumps(document)
    except (TOMLKitError, LookupError, TypeError, ValueError):
        return text  # which is then refused


def _find_table(lines: Sequence[str], id_: str) -> tuple[int, int]:
    """Return the line of a topic's header, and that after the last key of its table.

    Comments right above the next header belong to that one. Raises KbError for a topic that is
    written in another way.
    """
    name = re.escape(id_)
    header = re.compile(rf"""\s*\[\s*kb\s*\.\s*topic\s*\.\s*("{name}"|'{name}'|{name})\s*\]""")
    start = next((number for number, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        raise _refuse(topic_key(id_, "*"))
    end = start + 1
    while end < len(lines) and not _HEADER.match(lines[end]):
        end += 1
    while _BLANK_OR_COMMENT.fullmatch(lines[end - 1].rstrip("\n")):
        end -= 1
    return start, end


def _read(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the topics of a text, and its other settings."""
    rest: dict[str, Any] = dict(decode_toml(text).get("kb", {}))  # type: ignore[call-overload]
    topics: dict[str, Any] = rest.pop("topic", {})
    return topics, rest


def _checked(text: str, topics: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    """Return a text that has these topics and other settings. Raises KbError for another."""
    try:
        is_expected = _read(text) == (topics, rest)
    except TomlError:
        is_expected = False
    if not is_expected:
        raise _refuse("kb.topic")
    return text


def _refuse(key: str) -> KbError:
    return KbError(f"cannot change {key} without touching other parts; edit the file by hand")


def _quote(value: object) -> str:
    # JSON strings are TOML strings, except that TOML also escapes DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
