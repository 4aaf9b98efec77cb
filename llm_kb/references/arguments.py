"""Check what a model passes to a tool against what it was told of the tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_kb.references.errors import ArgumentsError
from llm_kb.references.tool_texts import ToolText

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list, tuple),
}


def check_arguments(tool: ToolText, arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentsError, naming all that is wrong and all that is allowed.

    Names and types are checked here, what is in them where it is used. Null stands
    for an argument that is left out, since many models write it so.
    """
    properties: Mapping[str, Any] = tool.schema["properties"]
    required = tool.schema["required"]
    problems = [f"unknown argument {name!r}" for name in arguments if name not in properties]
    problems += [f"missing argument {n!r}" for n in required if arguments.get(n) is None]
    for name, schema in properties.items():
        value = arguments.get(name)
        if value is not None and not _is_a(value, schema["type"]):
            problems.append(f"{name} must be of type {schema['type']}")
    if problems:
        allowed = [f"{name} (required)" if name in required else name for name in properties]
        raise ArgumentsError(tool.name, problems, allowed)


def _is_a(value: object, kind: str) -> bool:
    # To Python a bool is an int.
    return isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")
