"""`emit_knowledge` as a tool of llm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.capture import emission
from llm_kb.capture.annotation import CATEGORIES, MAX_LINE
from llm_kb.capture.store import add_to_store, require_repository
from llm_kb.config.workspace import find_cwd
from llm_kb.knowledge_base.tool_text import ToolText, object_schema, read_arguments, string

if TYPE_CHECKING:
    from llm import Tool


EMIT = ToolText(
    emission.EMIT_NAME, emission.EMIT_DESCRIPTION, emission.EMIT_SCHEMA, is_read_only=False
)


def record(
    directory: Path | None, arguments: Mapping[str, object], commit: str = "HEAD"
) -> emission.Addition:
    """Record the entry of a call of `emit_knowledge` in a repository. Raises KbError."""
    entry = emission.parse_emission(read_arguments(EMIT, arguments))
    return add_to_store(require_repository(directory).root, entry, commit=commit, is_checked=True)


def make_emit_tool() -> Tool:
    """Return the tool `emit_knowledge` for the repository of the current directory."""
    from llm import Tool  # noqa: PLC0415 - the MCP server does without the host

    def emit_knowledge(**arguments: object) -> str:
        return emission.render_reply(record(find_cwd(), arguments))

    return Tool(**EMIT.bind(emit_knowledge))


def _list(items: Mapping[str, object], description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


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
    wisdom=_list(_WISDOM, "Lessons of the commit"),
    knowledge=_list(_ENTRY, "Conventions, boundaries and anti-patterns"),
)
"""The input of an annotation, as the tool `annotate` of the MCP server takes it."""
