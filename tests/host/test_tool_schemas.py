"""Every tool, in `llm` and over MCP, as the plugins of providers read it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import llm
import pytest

from llm_kb.addons import find_tools
from llm_kb.host.mcp.tools import TOOLS
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.calls import ALL
from tests.console import list_tools

ADDED = [text for each in find_tools().values() for text, _ in each.open(KnowledgeBase.discover())]
SCHEMAS = {text.name: text.schema for text in (*(text for text, _ in TOOLS), *ALL, *ADDED)}
PYTHON = {"string": str, "integer": int, "boolean": bool}
NAMES = sorted(SCHEMAS)


@pytest.fixture(params=NAMES)
def tool(request: pytest.FixtureRequest) -> llm.Tool:
    """Each tool of `llm`."""
    tools = {tool.name: tool for tool in list_tools()}
    assert sorted(tools) == NAMES
    return tools[request.param]


def find_faults(schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield what some published schema of a provider does not have."""
    unknown = schema.keys() - {
        "type", "description", "properties", "required", "items", "enum",
        "minimum", "maximum", "minItems", "minLength",
    }  # fmt: skip
    if not place:
        unknown -= {"additionalProperties"}
    yield from (f"{place}: {key}" for key in sorted(unknown))
    if not isinstance(schema.get("type"), str):
        yield f"{place}: type {schema.get('type')}"
    if not all(isinstance(choice, str) for choice in schema.get("enum", ())):
        yield f"{place}: enum {schema['enum']}"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{place}: no items"
    for name, field in schema.get("properties", {}).items():
        yield from find_faults(field, f"{place}.{name}")
    if "items" in schema:
        yield from find_faults(schema["items"], f"{place}[]")


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": ["string", "null"]}, ".a: type ['string', 'null']"),
        ({"type": "string", "enum": ["a", None]}, ".a: enum ['a', None]"),
        ({"anyOf": [{"type": "string"}]}, ".a: anyOf"),
        ({"type": "object", "additionalProperties": False}, ".a: additionalProperties"),
        ({"type": "array", "items": {"type": "string", "const": "x"}}, ".a[]: const"),
    ],
)
def test_faults_are_found(schema: dict[str, Any], fault: str) -> None:
    assert fault in list(find_faults({"type": "object", "properties": {"a": schema}}))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_of_the_mcp_server_are_what_all_providers_take(name: str) -> None:
    assert list(find_faults(SCHEMAS[name])) == []


def test_the_schema_is_what_all_providers_take(tool: llm.Tool) -> None:
    assert list(find_faults(tool.input_schema)) == []


def test_the_function_agrees_with_the_schema(tool: llm.Tool) -> None:
    function, schema = tool.implementation, tool.input_schema
    assert inspect.isfunction(function)
    assert (function.__name__, function.__qualname__) == (tool.name, tool.name)
    parameters = inspect.signature(function).parameters
    assert parameters.keys() == schema["properties"].keys()
    assert get_type_hints(function) == {n: p.annotation for n, p in parameters.items()}
    for name, parameter in parameters.items():
        field = schema["properties"][name]
        kind = PYTHON.get(field["type"], list)
        is_required = name in schema["required"]
        assert parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert (parameter.default is inspect.Parameter.empty) == is_required
        shown = parameter.annotation if is_required else parameter.annotation.__args__[0]
        assert (getattr(shown, "__origin__", None) or shown) is kind


def test_the_docstring_has_the_description_and_all_arguments(tool: llm.Tool) -> None:
    assert tool.implementation is not None
    text = inspect.getdoc(tool.implementation) or ""
    assert tool.description is not None
    assert text.startswith(tool.description)
    for name, field in tool.input_schema["properties"].items():
        assert f"\n    {name}: {field['description']}" in text
