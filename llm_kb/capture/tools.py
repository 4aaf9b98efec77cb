"""`emit_knowledge` as a tool, and the input of an annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.capture import emission
from llm_kb.capture.annotation import CATEGORIES, MAX_LINE
from llm_kb.capture.store import add_to_store, require_repository
from llm_kb.hookspecs import Answer, Report
from llm_kb.knowledge_base.tool_text import ToolText, object_schema, read_arguments, string

if TYPE_CHECKING:
    from llm_kb.knowledge_base.api import KnowledgeBase

EMIT = ToolText(
    emission.EMIT_NAME, emission.EMIT_DESCRIPTION, emission.EMIT_SCHEMA, is_read_only=False
)


def record(
    directory: Path | None, arguments: Mapping[str, object], commit: str = "HEAD"
) -> emission.Addition:
    """Record the entry of a call of `emit_knowledge` in a repository. Raises KbError."""
    entry = emission.parse_emission(read_arguments(EMIT, arguments))
    return add_to_store(require_repository(directory).root, entry, commit=commit, is_checked=True)


def open_tool(kb: KnowledgeBase) -> Sequence[tuple[ToolText, Answer]]:
    """Return the tool `emit_knowledge` for the repository of a knowledge base."""

    def emit(arguments: Mapping[str, object], report: Report) -> str:  # noqa: ARG001
        return emission.render_reply(record(kb.directory, arguments))

    return [(EMIT, emit)]


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_LINE = {"type": "integer", "minimum": 0, "maximum": MAX_LINE}

_WISDOM = _object(
    {
        "category": {**string("What kind of lesson it is"), "enum": list(CATEGORIES)},
        "content": {**string("What was learned, not what the code does"), "minLength": 1},
        "file": string("File it is about; without one, the whole repository"),
        "lines": _object({"start": _LINE, "end": _LINE}, ["start", "end"]),
    },
    ["category", "content"],
)

_FIELDS = EMIT.schema["properties"]
_ENTRY = _object(
    {"type": _FIELDS["entry_type"], **{n: f for n, f in _FIELDS.items() if n != "entry_type"}},
    ["type"],
)

LIVE_INPUT = object_schema(
    ["commit", "summary"],
    commit={**string("The commit, in any notation of git's"), "minLength": 1},
    summary={**string("What the commit does and why so"), "minLength": 1},
    wisdom={"type": "array", "items": _WISDOM, "description": "Lessons of the commit"},
    knowledge={
        "type": "array",
        "items": _ENTRY,
        "description": "Conventions, boundaries and anti-patterns",
    },
)
"""The input of an annotation, as the tool `annotate` of the MCP server takes it."""
