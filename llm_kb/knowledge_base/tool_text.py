"""A tool as models see it, and the check of a call's arguments against its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from inspect import Parameter, Signature
from operator import or_
from typing import Any, NamedTuple

from llm_kb.errors import KbError
from llm_kb.files.fields import Fields
from llm_kb.files.values import BadValueError, describe, read_count, read_flag
from llm_kb.search.roles import ROLES, Role, Scope


class ToolText(NamedTuple):
    """The name, description and schema of one tool."""

    name: str
    description: str
    schema: dict[str, Any]


class ArgumentsError(KbError):
    """Arguments of a call that do not fit the tool's schema."""

    def __init__(self, tool: str, problems: Sequence[str], allowed: Sequence[str] = ()) -> None:
        message = f"{tool}: {'; '.join(problems)}"
        if allowed:
            message += f"; its arguments are {', '.join(allowed)}"
        super().__init__(message)


def check_arguments(tool: ToolText, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value. Raises ArgumentsError with every problem.

    Names and types are checked here, contents where they are used. Null counts as an
    omitted argument, since many models write it.
    """
    properties: Mapping[str, Any] = tool.schema["properties"]
    required = tool.schema["required"]
    fields = Fields(arguments)
    for name in arguments:
        if name not in properties:
            fields.report(name, "unknown argument")
    given = {}
    for name, schema in properties.items():
        if name in required and not fields.has(name):
            fields.report(name, "missing")
        read = _READERS[_kind(schema)]
        if "minimum" in schema:
            read = partial(read_count, least=schema["minimum"])
        given[name] = fields.get(name, read)
    allowed = [f"{name} (required)" if name in required else name for name in properties]
    fields.raise_problems(lambda problems: ArgumentsError(tool.name, problems, allowed))
    return {name: value for name, value in given.items() if value is not None}


def make_signature(schema: Mapping[str, Any], returns: Any = Signature.empty) -> Signature:
    """Return the Python signature of a schema, for `llm tools` to show."""
    required = schema["required"]
    return Signature(
        [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                annotation=_annotate(field) if name in required else _annotate(field) | None,
                default=Parameter.empty if name in required else None,
            )
            # Parameters without a default come first in Python, whatever the schema's order.
            for name, field in sorted(
                schema["properties"].items(), key=lambda item: item[0] not in required
            )
        ],
        return_annotation=returns,
    )


def object_schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def string(description: str) -> dict[str, Any]:
    """Return the schema of a string."""
    return {"type": "string", "description": description}


def strings(description: str) -> dict[str, Any]:
    """Return the schema of a list of strings."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def integer(description: str, least: int = 0) -> dict[str, Any]:
    """Return the schema of a whole number from `least` on."""
    return {"type": "integer", "minimum": least, "description": description}


FILTERS = {
    "role": {
        "type": ["string", "null"],
        "enum": [*ROLES, None],
        "description": "Only this kind of file. Omit for all: documentation comes first anyway.",
    },
    "paths": strings("Only files in these directories (docs/) or that match (**/*.py)."),
    "tags": strings("Only topics with one of these tags."),
}
"""The arguments that narrow a search."""


def read_filters(tool: ToolText, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `scope` and `tags` of a search from the arguments of a call. Raises ArgumentsError."""
    role = given.get("role")
    if role and role not in ROLES:
        raise ArgumentsError(
            tool.name, [f"role: found {describe(role)}; allowed: {', '.join(sorted(ROLES))}"]
        )
    paths, tags = (
        [_read_string(each) for each in given.get(name) or ()] for name in ("paths", "tags")
    )
    scope = Scope(roles=[Role(role)] if role else (), paths=paths)
    return {"scope": scope if role or paths else None, "tags": tags}


def _annotate(schema: Mapping[str, Any]) -> Any:
    """Return the Python type of a field."""
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    strings_only = schema.get("items", {}).get("type") == "string"
    types = {**_TYPES, "array": list[str] if strings_only else list[dict]}  # type: ignore[type-arg]
    return reduce(or_, (types[kind] for kind in kinds))


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of an argument, without an alternative null."""
    kind = schema["type"]
    return kind if isinstance(kind, str) else next(each for each in kind if each != "null")


def _read_string(value: object) -> str:
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    return value


def _read_list(value: object) -> Sequence[object]:
    if isinstance(value, str):
        # Many models write a list as JSON inside a string, or a list of one as that one.
        is_json = value.lstrip().startswith(("[", "{"))
        with suppress(ValueError, RecursionError):
            value = json.loads(value) if is_json else [value]
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list | tuple):
        raise BadValueError(describe(value), "a list")
    return value


_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "boolean": bool, "null": None}

_READERS: Mapping[str, Callable[[object], Any]] = {
    "string": _read_string,
    "integer": read_count,
    "boolean": read_flag,
    "array": _read_list,
}
