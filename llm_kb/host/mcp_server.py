"""The knowledge base as an MCP server: `learn` and `search` for any MCP client.

Needs the extra `mcp`. The configuration is read again for every call, so that a
client that stays connected sees what is on disk now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from llm_kb import __version__
from llm_kb.api import LEARN_SCHEMA, KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.rendering.plain_text import one_line
from llm_kb.upkeep.content_search import EmptyQueryError, Query, search_subjects

SEARCH_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Words to look for, in any case."},
        "topic": {
            "type": ["string", "null"],
            "description": "The topic ID or title to search. Omit to search all.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}

SEARCH_DESCRIPTION = (
    "Find knowledge base subjects by what they say."
    " Answers with one `topic/subject:line: text` a subject, the best first."
)

OpenKnowledgeBase = Callable[[], KnowledgeBase]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool as clients see it, and what answers a call of it."""

    name: str
    schema: dict[str, Any]
    describe: Callable[[KnowledgeBase], str]
    answer: Callable[[KnowledgeBase, Mapping[str, Any]], str]


class ArgumentsError(KbError):
    """Arguments of a call that do not fit the tool's schema."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = problem
        super().__init__(f"invalid arguments for {tool!r}: {problem}")


class UnknownToolError(KbError):
    """A tool this server does not have."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown tool {name!r}; tools: {', '.join(TOOLS)}")


async def serve(open_kb: OpenKnowledgeBase) -> None:
    """Serve one client on standard input and output until it goes."""
    server = make_server(open_kb)
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def make_server(open_kb: OpenKnowledgeBase) -> Server[dict[str, Any]]:
    """Return the server. Its instructions are the section a prompt would carry."""

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await asyncio.to_thread(_list, open_kb))

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await asyncio.to_thread(_call, open_kb, params.name, params.arguments or {})

    return Server(
        "llm-kb",
        version=__version__,
        instructions=open_kb().section(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _list(open_kb: OpenKnowledgeBase) -> list[types.Tool]:
    kb = open_kb()
    return [
        types.Tool(
            name=tool.name,
            description=tool.describe(kb),
            input_schema=tool.schema,
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )
        for tool in TOOLS.values()
    ]


def _call(
    open_kb: OpenKnowledgeBase, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    """Answer a call; an error is a result the model can read and mend."""
    try:
        text, is_error = answer(open_kb, name, arguments), False
    except KbError as error:
        text, is_error = str(error), True
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )


def answer(open_kb: OpenKnowledgeBase, name: str, arguments: Mapping[str, Any]) -> str:
    """Check a call and answer it from what is on disk now. Raises KbError."""
    if name not in TOOLS:
        raise UnknownToolError(name)
    tool = TOOLS[name]
    problem = best_match(Draft202012Validator(tool.schema).iter_errors(arguments))
    if problem is not None:
        raise ArgumentsError(name, problem.message)
    return tool.answer(open_kb(), arguments)


def _learn(kb: KnowledgeBase, arguments: Mapping[str, Any]) -> str:
    return kb.answer_call(**arguments)


def _search(kb: KnowledgeBase, arguments: Mapping[str, Any]) -> str:
    try:
        query = Query.parse(arguments["query"])
    except EmptyQueryError as error:
        raise ArgumentsError("search", "the query has no word to look for") from error
    topic = arguments.get("topic")
    hits = search_subjects(kb, query, [topic] if topic else [])
    lines = [
        f"{hit.topic}/{hit.subject.name}:{hit.found.line}: {one_line(hit.found.text)}"
        for hit in hits
    ]
    return "\n".join(lines) or "No subject says anything about that."


TOOLS = {
    tool.name: tool
    for tool in (
        ServedTool(
            name="learn",
            schema=LEARN_SCHEMA,
            describe=KnowledgeBase.describe_learn,
            answer=_learn,
        ),
        ServedTool(
            name="search",
            schema=SEARCH_SCHEMA,
            describe=lambda _: SEARCH_DESCRIPTION,
            answer=_search,
        ),
    )
}
"""Every tool this server has. None of them writes, fetches or starts anything."""
