"""`search_knowledge`: one search over the topics of a request, offered beside `learn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm_kb.api import DEFAULT_LIMIT, KnowledgeBase
from llm_kb.host.terminal import draw_progress
from llm_kb.host.tool_text import (
    FILTERS,
    ToolText,
    check_arguments,
    integer,
    make_signature,
    object_schema,
    read_filters,
    string,
)
from llm_kb.rendering.passages import render_passages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import llm

MOST_PASSAGES = 20
"""How many passages a model may ask for; the bound on their length holds besides."""

RECHECK_SECONDS = 2.0
"""For how long a process does not compare files with their index again, from call to call."""

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
        limit=integer(f"The most passages to return, {DEFAULT_LIMIT} unless given."),
        **FILTERS,
    ),
)


def make_search_tool(kb: KnowledgeBase) -> llm.Tool:
    """Return the tool over the topics of a request; a bar shows an index being made."""
    import llm  # noqa: PLC0415 - commands and the MCP server do without the host

    progress = draw_progress("indexing")

    def search_knowledge(**arguments: Any) -> str:
        given = check_arguments(SEARCH_KNOWLEDGE, arguments)
        return answer_search(kb, SEARCH_KNOWLEDGE, given, progress)

    # Shown by `llm tools`; a call with other arguments still gets an answer.
    search_knowledge.__signature__ = make_signature(SEARCH_KNOWLEDGE.schema)  # type: ignore[attr-defined]
    topics = ", ".join(kb.menu_ids)
    return llm.Tool(
        name=SEARCH_KNOWLEDGE.name,
        description=f"{SEARCH_KNOWLEDGE.description} Available topics: {topics}.",
        input_schema=SEARCH_KNOWLEDGE.schema,
        implementation=search_knowledge,
    )


def answer_search(
    kb: KnowledgeBase,
    tool: ToolText,
    given: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the passages that a call of a tool asks for, as a model reads them. Raises KbError."""
    topic = given.get("topic")
    found = kb.find_passages(
        given[tool.schema["required"][0]],
        [topic] if topic else [],
        min(given.get("limit") or DEFAULT_LIMIT, MOST_PASSAGES),
        **read_filters(tool, given),
        progress=progress,
        max_age=RECHECK_SECONDS,
    )
    return render_passages(found)
