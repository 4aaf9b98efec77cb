"""The JSON Schemas that `llm kb knowledge schema` prints. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_kb.capture.annotation import CATEGORIES, MAX_LINE
from llm_kb.capture.annotation import SCHEMA as ANNOTATION_SCHEMA
from llm_kb.capture.entries import KINDS, STABILITIES, Kind
from llm_kb.capture.entries import SCHEMA as STORE_SCHEMA
from llm_kb.knowledge_base.tool_text import object_schema, string

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_DESCRIPTIONS = {
    "id": "Unique in the store, and not used again after removal",
    "scope": "Directory or file the rule applies to, or * for everything",
    "rule": "The rule",
    "stability": "How firm the rule is",
    "module": "Directory of the module",
    "owns": "What the module is responsible for",
    "boundary": "What the module must not do",
    "pattern": "What to avoid",
    "instead": "What to do instead",
    "decided_in": "Commit that decided it, or another reference",
    "learned_from": "Commit that taught it, or another reference",
}


def _text(description: str, **more: object) -> dict[str, Any]:
    return {**string(description), **more}


def _list(items: Mapping[str, object], **more: object) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _field(name: str, **more: object) -> dict[str, Any]:
    choice = {"enum": list(STABILITIES)} if name == "stability" else {}
    return _text(_DESCRIPTIONS[name], **choice, **more)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _stored(kind: Kind) -> dict[str, Any]:
    required = ["id", *kind.settable]
    return _object({name: _field(name) for name in kind.order}, required)


def _handed_over() -> dict[str, Any]:
    """Return the schema of an entry of any kind, without the unions that some models refuse."""
    properties = {"type": _text("What kind of entry it is", enum=[kind.name for kind in KINDS])}
    for kind in KINDS:
        for name in kind.settable:
            of = f"For {kind.name}: {_DESCRIPTIONS[name].lower()}"
            properties[name] = {**_field(name), "description": of}
    return _object(properties, ["type"])


_LINE = {"type": "integer", "minimum": 0, "maximum": MAX_LINE}

_WISDOM = _object(
    {
        "category": _text("What kind of lesson it is", enum=list(CATEGORIES)),
        "content": _text("What was learned, not what the code does", minLength=1),
        "file": _text("File it is about; without one, the whole repository"),
        "lines": _object({"start": _LINE, "end": _LINE}, ["start", "end"]),
    },
    ["category", "content"],
)

LIVE_INPUT = object_schema(
    ["commit", "summary"],
    commit=_text("The commit, in any notation of git's", minLength=1),
    summary=_text("What the commit does and why so", minLength=1),
    wisdom=_list(_WISDOM, description="Lessons of the commit"),
    knowledge=_list(_handed_over(), description="Conventions, boundaries and anti-patterns"),
)
"""The input of an annotation, as the tool `annotate` of the MCP server takes it."""

SCHEMAS: dict[str, dict[str, Any]] = {
    "live-input": {"$schema": _DIALECT, "title": "LiveInput", **LIVE_INPUT},
    "knowledge": {
        "$schema": _DIALECT,
        "title": "KnowledgeStore",
        **_object(
            {
                "schema": {"const": STORE_SCHEMA},
                **{kind.key: _list(_stored(kind)) for kind in KINDS},
            },
            ["schema"],
        ),
    },
    "annotation": {
        "$schema": _DIALECT,
        "title": "Annotation",
        **_object(
            {
                "schema": {"const": ANNOTATION_SCHEMA},
                "commit": _text("Full id of the commit"),
                "timestamp": _text("When it was written", format="date-time"),
                "summary": _text("What the commit does and why so"),
                "wisdom": _list(_WISDOM),
                "provenance": _object(
                    {
                        "source": _text("How it came about; this program writes live"),
                        "author": _text("Who wrote it"),
                    },
                    ["source"],
                ),
            },
            ["schema", "commit", "timestamp", "summary", "provenance"],
        ),
    },
}
"""By the names that `llm kb knowledge schema` takes."""
