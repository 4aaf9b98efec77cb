"""The tools that read topics, as models see them, and the reader of a call's arguments.

Providers of models publish different subsets of JSON Schema. The schemas here have one `type`
each and nothing else that some of them refuse; an optional argument is one that is not required.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from llm_kb.errors import KbError
from llm_kb.files.fields import BadValueError, Fields, describe, read_count, read_flag
from llm_kb.search.roles import ROLES, Role, Scope
from llm_kb.texts.safe import defuse

DEFAULT_LIMIT = 4
"""Default number of passages that a search returns."""


class ToolText(NamedTuple):
    """The name, description and schema of one tool."""

    name: str
    description: str
    schema: dict[str, Any]
    is_read_only: bool = True
    """Whether a call writes nothing."""
    reaches_out: bool = False
    """Whether a call may ask other machines."""

    def bind(self, answer: Callable[..., Any]) -> dict[str, Any]:
        """Return the fields of `llm.Tool` for a tool whose calls are answered by `answer`.

        The function has the tool's name, signature and docstring, from which some plugins derive
        a schema of their own. A call passes on what the model wrote.
        """

        def call(**arguments: Any) -> Any:
            try:
                return answer(**arguments)
            except KbError as error:
                error.args = (defuse(str(error)),)  # it quotes what others wrote
                raise

        required = self.schema["required"]
        # The required arguments come first, as Python needs them.
        fields = sorted(
            self.schema["properties"].items(), key=lambda field: field[0] not in required
        )
        lines = [f"    {name}: {field['description']}" for name, field in fields]
        signature = Signature([_make_parameter(name, field, required) for name, field in fields])
        call.__name__ = call.__qualname__ = self.name
        call.__doc__ = "\n".join([self.description, "", "Args:", *lines])
        call.__signature__ = signature  # type: ignore[attr-defined]  # see `inspect.signature`
        call.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.schema,
            "implementation": call,
        }


def _make_parameter(name: str, schema: Mapping[str, Any], required: Sequence[str]) -> Parameter:
    """Return an argument of a function; None if it is omitted."""
    parameter = Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=_annotate(schema))
    if name in required:
        return parameter
    return parameter.replace(annotation=parameter.annotation | None, default=None)


def _annotate(schema: Mapping[str, Any]) -> Any:
    """Return the Python type of a field."""
    if schema["type"] == "array":
        return list[str] if schema["items"]["type"] == "string" else list[dict]  # type: ignore[type-arg]
    return {"string": str, "integer": int, "boolean": bool}[schema["type"]]


def read_arguments(tool: ToolText, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value. Raises KbError with every problem.

    Accepts what models write in place of the schema's types: a list as its JSON, as its only
    item, or as names between commas; a number for a text, and the reverse; null or nothing for an
    omitted argument; one letter s too many or too few at the end of a name; `query` for a
    question. Unknown arguments
    are ignored. Contents are checked where they are used.
    """
    properties: Mapping[str, Any] = tool.schema["properties"]
    required = tool.schema["required"]
    fields = Fields({name: _find_value(arguments, name, tool.schema) for name in properties})
    given = {name: fields.get(name, partial(_read, schema)) for name, schema in properties.items()}
    for name in required:
        if not fields.has(name):
            fields.report(name, "missing")
    if fields.problems:
        allowed = [f"{name} (required)" if name in required else name for name in properties]
        problems = f"{tool.name}: {'; '.join(fields.problems)}"
        raise KbError(f"{problems}; its arguments are {', '.join(allowed)}")
    return {name: value for name, value in given.items() if value not in _EMPTY}


_EMPTY: Sequence[object] = (None, "", [])
"""The values with which models fill an argument that they do not use."""


def object_schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def string(description: str, choices: Collection[str] = ()) -> dict[str, Any]:
    """Return the schema of a string, which may have to be one of the choices."""
    enum = {"enum": list(choices)} if choices else {}
    return {"type": "string", **enum, "description": description}


def strings(description: str) -> dict[str, Any]:
    """Return the schema of a list of strings."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def integer(description: str, least: int = 0) -> dict[str, Any]:
    """Return the schema of a whole number from `least` on."""
    return {"type": "integer", "minimum": least, "description": description}


FILTERS = {
    "role": string(
        "Only this kind of file. Omit for all: documentation comes first anyway.", ROLES
    ),
    "paths": strings("Only files in these directories (docs/) or that match (**/*.py)."),
    "tags": strings("Only topics with one of these tags."),
}
"""The arguments that narrow a search."""

LEARN = ToolText(
    "learn",
    "Learn about knowledge base topics and subjects.",
    object_schema(
        ["topic"],
        topic=string("The topic ID or title to learn about."),
        subjects=strings(
            "Glob pattern(s) for subjects to load. Use * for current level, ** for"
            " recursive. Omit to list available subjects."
        ),
    ),
)
"""The tool `learn`. Its schema never changes with the configuration: providers cache it."""

QUESTION = string(
    "The answer as the text may have it, in its language: one sentence with the names of options,"
    " commands or functions it would use. Guess if you do not know."
)
"""What a search tool is asked: who asks in the words of the answer finds it first more often."""

SEARCH_KNOWLEDGE = ToolText(
    "search_knowledge",
    "Search knowledge base topics for the passages that answer a question, by its words and what"
    " these mean. Each is headed by its address for `learn`, TOPIC/SUBJECT#PART; where `more:"
    " L10-L20` is said, SUBJECT#L10-L20 returns the lines that follow, or precede, it.",
    object_schema(
        ["question"],
        question=QUESTION,
        topic=string("The topic ID or title to search. Omit to search all."),
        limit=integer(
            "The most passages to quote. Unless given, the best one is, and a sentence of another.",
            1,
        ),
        **FILTERS,
    ),
)


def read_filters(tool: ToolText, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `scope` and `tags` of a search from its arguments. Raises KbError."""
    role, paths = given.get("role"), [each.removeprefix("./") for each in given.get("paths", ())]
    if role and role not in ROLES:
        raise KbError(f"{tool.name}: role: {BadValueError(describe(role), ', '.join(ROLES))}")
    scope = Scope(roles=[Role(role)] if role else (), paths=paths)
    return {"scope": scope if role or paths else None, "tags": given.get("tags", ())}


def _find_value(arguments: Mapping[str, Any], name: str, schema: Mapping[str, Any]) -> Any:
    """Return an argument, also under its name in the singular or plural, or that of other tools."""
    other = name.removesuffix("s") if name.endswith("s") else f"{name}s"
    other = "query" if name == "question" else other
    value = arguments.get(name)
    value = arguments.get(other) if value is None and other not in schema["properties"] else value
    is_omitted = value in _EMPTY or (value == "null" and name not in schema["required"])
    return None if is_omitted else value


_MOST_OBJECTS = 10_000
"""Objects of a list; no argument has use for more."""


def _read(schema: Mapping[str, Any], value: object) -> Any:
    """Return a value in the type of its schema. Raises BadValueError."""
    kind = schema["type"]
    if kind == "array":
        is_text = schema["items"]["type"] == "string"
        items = _read_list(value, is_text=is_text)
        if not is_text and len(items) > _MOST_OBJECTS:
            raise BadValueError(f"{len(items):,} objects", f"at most {_MOST_OBJECTS:,}")
        return [_read(schema["items"], item) for item in items if not _is_blank(item)]
    if kind == "object":
        return _read_object(schema["properties"], value)
    if kind == "string":
        return _read_string(value)
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value.lower())
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return read_flag(value) if kind == "boolean" else read_count(value, schema.get("minimum", 0))


def _is_blank(value: object) -> bool:
    return value in _EMPTY or (isinstance(value, str) and not value.strip())


def _read_object(properties: Mapping[str, Any], value: object) -> object:
    """Return the known fields of an object; wrong ones stay as they are, for its own reader."""
    if not isinstance(value, Mapping):
        return value
    found = {name: item for name, item in value.items() if name in properties}
    for name, item in found.items():
        with suppress(BadValueError):
            found[name] = _read(properties[name], item)
    return {name: item for name, item in found.items() if item not in _EMPTY}


def _read_list(value: object, *, is_text: bool) -> Sequence[object]:
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, str) and is_text:
        return [name.strip() for name in value.split(",")]
    if isinstance(value, Mapping) or (is_text and isinstance(value, int | float)):
        return [value]
    if not isinstance(value, list | tuple):
        raise BadValueError(describe(value), "a list")
    return value


def _read_string(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(ValueError):  # a number of more digits than Python prints
            return str(value)
    if not isinstance(value, str):
        raise BadValueError(describe(value), "a string")
    return value
