"""The names, descriptions and schemas of the tools that read topics."""

from __future__ import annotations

from llm_kb.knowledge_base.tool_text import FILTERS, ToolText, integer, object_schema, string

DEFAULT_LIMIT = 4
"""Default number of passages that a search returns."""

LEARN_SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {
            "type": "string",
            "description": "The topic ID or title to learn about.",
        },
        "subjects": {
            "type": ["string", "array", "null"],
            "description": (
                "Glob pattern(s) for subjects to load. Use * for current level, ** for"
                " recursive. Omit to list available subjects."
            ),
            "items": {"type": "string"},
        },
    },
    "required": ["topic"],
    "additionalProperties": False,
}
"""The schema of `learn`. It never changes with the configuration: providers cache it."""

SEARCH_KNOWLEDGE = ToolText(
    "search_knowledge",
    "Search knowledge base topics for the passages that answer a question, by its words (and by"
    " meaning, where there is an embedding model). Each is headed by its address; where that says"
    " `lines 5-9 of 2-40`, `learn` returns the rest of the part.",
    object_schema(
        ["question"],
        question=string("What the passages should answer, in the words they would use."),
        topic={
            "type": ["string", "null"],
            "description": "The topic ID or title to search. Omit to search all.",
        },
        limit=integer(
            "The most passages to return. Unless given, three are quoted and a fourth is named.",
            1,
        ),
        **FILTERS,
    ),
)
