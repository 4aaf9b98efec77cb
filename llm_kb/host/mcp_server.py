"""The knowledge base as an MCP server: tools to learn, search and capture for any MCP client.

Needs the extra `mcp`. The configuration is read again for every call, so that a
client that stays connected sees what is on disk now.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from llm_kb import __version__
from llm_kb.api import LEARN_SCHEMA, KnowledgeBase
from llm_kb.capture.emission import EMIT_DESCRIPTION, EMIT_NAME, EMIT_SCHEMA
from llm_kb.capture.errors import NotARepositoryError
from llm_kb.capture.git.repository import Repository, find_repository
from llm_kb.errors import KbError
from llm_kb.host.capture_schemas import SCHEMAS
from llm_kb.host.capture_tools import answer_annotation, answer_emission
from llm_kb.host.search_tool import SEARCH_KNOWLEDGE, answer_search
from llm_kb.host.tool_text import ToolText, check_arguments, integer, object_schema, string

SEARCH = ToolText(
    "search",
    SEARCH_KNOWLEDGE.description,
    object_schema(
        ["query"],
        query=string("What the passages should answer, in the words they would use."),
        topic={
            "type": ["string", "null"],
            "description": "The topic ID or title to search. Omit to search all.",
        },
        limit=integer("The most passages to return."),
    ),
)

OpenKnowledgeBase = Callable[[], KnowledgeBase]

_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool as clients see it, and what answers a call of it."""

    schema: dict[str, Any]
    describe: Callable[[KnowledgeBase], str]
    answer: Callable[[KnowledgeBase, Mapping[str, Any]], str]
    writes: bool = False
    """Whether it writes to the repository, and is there in one alone."""


class UnknownToolError(KbError):
    """A tool this server does not have."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown tool {name!r}; tools: {', '.join(TOOLS)}")


def run(open_kb: OpenKnowledgeBase) -> None:
    """Serve one client on standard input and output until it goes, or until Ctrl-C."""
    # The thread that waits for standard input cannot be interrupted, and Python would wait
    # for it. There is nothing to lose: what is written takes a ref over at once or not at all.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        asyncio.run(serve(open_kb))
    except BaseException as error:
        if not _is_client_gone(error):
            raise
        # What is left in the buffer has no reader, and closing it would say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_client_gone(error: BaseException) -> bool:
    """Tell whether an error, or each of a group of them, is a closed pipe."""
    members = getattr(error, "exceptions", None)
    if members:
        return all(map(_is_client_gone, members))
    return isinstance(error, BrokenPipeError | ConnectionError | anyio.BrokenResourceError)


async def serve(open_kb: OpenKnowledgeBase) -> None:
    """Serve one client on standard input and output until it goes."""
    server = make_server(open_kb)
    lines: Any = _iter_lines()
    async with stdio_server(stdin=lines) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def _iter_lines() -> AsyncIterator[str]:
    """Yield the messages of the client.

    Half a surrogate pair is replaced: the SDK would drop the message, and the client would
    wait for its answer.
    """
    stdin = os.fdopen(0, encoding="utf-8", errors="replace", closefd=False)
    async for line in anyio.wrap_file(stdin):
        yield _replace_surrogates(line) if _LONE_SURROGATE.search(line) else line


def _replace_surrogates(line: str) -> str:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").decode()


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
            name=name,
            description=tool.describe(kb),
            input_schema=tool.schema,
            annotations=types.ToolAnnotations(
                read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
            ),
        )
        for name, tool in TOOLS.items()
        if not tool.writes or _find_repository(kb)
    ]


def _find_repository(kb: KnowledgeBase) -> Repository | None:
    return find_repository(kb.directory, bare=False) if kb.directory else None


def _call(
    open_kb: OpenKnowledgeBase, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    """Answer a call; an error is a result the model can read and correct."""
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
    return TOOLS[name].answer(open_kb(), arguments)


def _learn(kb: KnowledgeBase, arguments: Mapping[str, Any]) -> str:
    return kb.answer_call(**arguments)


def _search(kb: KnowledgeBase, arguments: Mapping[str, Any]) -> str:
    given = check_arguments(SEARCH, arguments)
    return answer_search(kb, given["query"], given.get("topic"), given.get("limit"))


def _require_root(kb: KnowledgeBase) -> Path:
    repository = _find_repository(kb)
    if repository is None:
        raise NotARepositoryError(kb.directory or Path("/"))
    return repository.root


ANNOTATE_DESCRIPTION = (
    "Annotate a commit you have just made: why it was done so, what was tried and failed (wisdom),"
    " and conventions, boundaries or anti-patterns it taught (knowledge). Written to git notes."
)

TOOLS = {
    "learn": ServedTool(schema=LEARN_SCHEMA, describe=KnowledgeBase.describe_learn, answer=_learn),
    SEARCH.name: ServedTool(
        schema=SEARCH.schema, describe=lambda _: SEARCH.description, answer=_search
    ),
    EMIT_NAME: ServedTool(
        schema=EMIT_SCHEMA,
        describe=lambda _: EMIT_DESCRIPTION,
        answer=lambda kb, arguments: answer_emission(_require_root(kb), arguments),
        writes=True,
    ),
    "annotate": ServedTool(
        schema=SCHEMAS["live-input"],
        describe=lambda _: ANNOTATE_DESCRIPTION,
        answer=lambda kb, arguments: answer_annotation(_require_root(kb), arguments),
        writes=True,
    ),
}
"""Every tool this server has, by name. None of them fetches anything.

Those that write add notes to the repository, as `git notes` would.
"""
