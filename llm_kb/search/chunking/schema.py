"""The outline of an OpenAPI description or a JSON Schema: its operations and types. Pure.

Only the positions of keys on the outer levels are read. Nothing is parsed into objects, so that
hostile references and aliases cannot make it run for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from llm_kb.search.chunking.documents import Mark, Outline, shorten_label

MAX_INDENT = 200

DEEPEST = 5
"""Deepest level of keys that is read."""

_RECOGNISED = re.compile(
    r"""["']?(?:openapi|swagger|asyncapi)["']?\s*:\s*["']?[1-9]|["']?\$schema["']?\s*:\s*["']?https?://json-schema"""
)
_LOOKED_AT = 20_000
"""Characters at the beginning in which the type of a description is looked for."""

_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})
_TYPES = frozenset({"definitions", "$defs", "properties"})

# A string that is not closed ends with the text, so that each character is read once.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\],:]', re.DOTALL)
_VALUE = re.compile(r'[ \t\r\n]*("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))', re.DOTALL)
_KEY = re.compile(
    r"^([ ]*)(?!- |-$|#)(\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s\"'#:][^:\n]{0,200}|/[^\s]{0,200}):"
    r"(?=\s|$)[ ]*(.*)$",
    re.MULTILINE,
)


class _Key(NamedTuple):
    """A key of a mapping: its offset, its path including itself, and its text if it has one."""

    offset: int
    path: tuple[str, ...]
    value: str


def is_schema(text: str) -> bool:
    """Tell whether a text is an OpenAPI description or a JSON Schema."""
    return bool(_RECOGNISED.search(text[:_LOOKED_AT]))


def outline_schema(text: str) -> Outline:
    """Return a mark for each operation and type of a description; other texts have none."""
    if not is_schema(text):
        return Outline()
    keys = list(_scan_json(text) if text.lstrip()[:1] == "{" else _scan_yaml(text))
    said = {key.path: key.value for key in keys if key.value}
    outer = {key.path[0] for key in keys if len(key.path) == 2}
    title = said.get(("info", "title")) or said.get(("title",))
    marks = [Mark(0, 1, shorten_label(title))] if title else []
    for key in keys:
        label = _find_label(key.path)
        if label and (len(key.path) > 1 or label in outer):
            about = said.get((*key.path, "summary")) or said.get((*key.path, "operationId"), "")
            label = f"{label}: {about}" if about else label
            depth = 3 if len(key.path) > 1 else 2
            marks.append(Mark(key.offset, depth, shorten_label(label)))
    return Outline(marks=marks)


def _find_label(path: tuple[str, ...]) -> str:
    """Return the label of the section that a key begins; empty if it begins none."""
    if len(path) == 1:
        return path[0]
    if path[0] in {"paths", "webhooks"} and len(path) == 3 and path[2] in _METHODS:
        return f"{path[2].upper()} {path[1]}"
    if path[0] == "components" and len(path) == 3:
        return path[2]
    is_type = len(path) == 2 and path[0] in {*_TYPES, "channels", "operations"}
    return path[1] if is_type else ""


def _scan_json(text: str) -> Iterator[_Key]:
    """Yield the keys of JSON down to `DEEPEST`, in order."""
    path: list[str] = []
    depth = 0
    in_list: list[bool] = []
    last: re.Match[str] | None = None
    is_value = False
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "{[":
            depth += 1
            in_list.append(sign == "[")
            is_value = False
        elif sign in "}]":
            depth -= 1
            del in_list[-1:], path[max(depth, 0) :]
        elif sign == ":" and last and 0 < depth <= DEEPEST and not any(in_list):
            path[depth - 1 :] = [last[0][1:-1]]
            value = _VALUE.match(text, token.end())
            said = value[1][1:-1] if value else ""
            yield _Key(_start_of_line(text, last.start()), tuple(path), said)
            is_value = True
        elif sign == ",":
            is_value = False
        last = token if sign[0] == '"' and not is_value else None


def _start_of_line(text: str, at: int) -> int:
    """Return the start of a key's line if the line begins with the key, else the key's offset."""
    start = text.rfind("\n", max(0, at - MAX_INDENT), at) + 1
    return start if start and not text[start:at].strip() else at


def _scan_yaml(text: str) -> Iterator[_Key]:
    """Yield the keys of YAML in block style down to `DEEPEST`, in order."""
    open_: list[tuple[int, str]] = []
    for line in _KEY.finditer(text):
        indent = len(line[1])
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        open_.append((indent, line[2].strip("\"' ")))
        if len(open_) <= DEEPEST:
            value = line[3].strip().strip("\"'")
            yield _Key(
                line.start(),
                tuple(name for _, name in open_),
                "" if value[:1] in "|>&{[" else value,
            )
