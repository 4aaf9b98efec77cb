"""The MCP server: its handlers, and the transport over standard input and output.

It needs the extra `mcp`. The configuration is read again for every call, so that a client
that stays connected sees the current files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from llm_kb import __version__
from llm_kb.api import KnowledgeBase
from llm_kb.errors import KbError
from llm_kb.mcp import subjects
from llm_kb.mcp.calls import describe_error, fit_clients, work, write_instructions
from llm_kb.mcp.tools import Needs, answer_call, find_tools

Context = ServerRequestContext[Any, Any]
OpenKnowledgeBase = Callable[[], KnowledgeBase]
P = TypeVar("P")
R = TypeVar("R")

_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def run(open_kb: OpenKnowledgeBase) -> None:
    """Serve one client on standard input and output until it disconnects, or until Ctrl-C."""
    # The thread that reads standard input cannot be interrupted, and Python would wait for
    # it. Nothing is lost: a ref moves at once or not at all.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        asyncio.run(serve(open_kb))
    except BaseException as error:
        if not _is_client_gone(error):
            raise
        # Closing the buffer, which nobody reads, would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_client_gone(error: BaseException) -> bool:
    """Tell whether an error, or each error of a group, is a closed pipe."""
    members = getattr(error, "exceptions", None)
    if members:
        return all(map(_is_client_gone, members))
    return isinstance(error, BrokenPipeError | ConnectionError | anyio.BrokenResourceError)


async def serve(open_kb: OpenKnowledgeBase) -> None:
    """Serve one client on standard input and output until it disconnects."""
    server = KnowledgeServer(open_kb)
    lines: Any = _iter_lines()
    async with stdio_server(stdin=lines) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def _iter_lines() -> AsyncIterator[str]:
    """Yield the messages of the client.

    Half a surrogate pair is replaced: the SDK would drop the message, and the client would
    wait for an answer.
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


class KnowledgeServer(Server[dict[str, Any]]):
    """The knowledge base for MCP clients; tools that write are served only with `can_write`.

    Raises KbError if the configuration cannot be read.
    """

    def __init__(self, open_kb: OpenKnowledgeBase, *, can_write: bool = True) -> None:
        self._open_kb = open_kb
        self._can_write = can_write
        self._section = write_instructions(self._open())
        super().__init__(
            "llm-kb",
            version=__version__,
            on_list_tools=self._answer(lambda kb, _: _list_tools(kb, can_write=can_write)),
            on_call_tool=self._call_tool,
            on_list_resources=self._answer(subjects.list_resources),
            on_list_resource_templates=_list_templates,
            on_read_resource=self._answer(_read_resource),
            on_completion=self._answer(subjects.complete),
            on_list_prompts=self._answer(subjects.list_prompts),
            on_get_prompt=self._answer(subjects.get_prompt),
        )

    @property
    def instructions(self) -> str | None:
        """The menu and the pre-loaded subjects at the time a client connects."""
        with suppress(KbError, OSError):  # a file that is being edited: the last section stays
            self._section = write_instructions(self._open())
        return self._section

    @instructions.setter
    def instructions(self, _: str | None) -> None:
        """Ignore the value that the constructor sets."""

    def _open(self) -> KnowledgeBase:
        return fit_clients(self._open_kb())

    def _answer(
        self, function: Callable[[KnowledgeBase, P], R]
    ) -> Callable[[Context, P], Awaitable[R]]:
        """Return a handler that calls a function with the knowledge base."""

        async def handle(ctx: Context, params: P) -> R:
            try:
                return await work(ctx, lambda _: function(self._open(), params))
            except (KbError, OSError) as error:
                raise MCPError(types.INVALID_PARAMS, describe_error(error)) from error

        return handle

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Answer a call; the text of an error is a result, too, so that the model can react."""
        name, arguments = params.name, params.arguments or {}
        try:
            answer = await work(
                ctx,
                lambda steps: answer_call(
                    self._open(), name, arguments, steps, can_write=self._can_write
                ),
            )
        except (KbError, OSError) as error:
            return _make_result(describe_error(error), is_error=True)
        return _make_result(answer)


def _list_tools(kb: KnowledgeBase, *, can_write: bool) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.text.name,
                description=tool.describe(kb),
                input_schema=tool.text.schema,
                annotations=types.ToolAnnotations(
                    read_only_hint=not tool.writes,
                    destructive_hint=False,
                    open_world_hint=tool.needs is Needs.WRITING,
                ),
            )
            for tool in find_tools(kb, can_write=can_write)
        ]
    )


def _read_resource(
    kb: KnowledgeBase, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    return subjects.read_resource(kb, params.uri)


async def _list_templates(_: Context, __: object) -> types.ListResourceTemplatesResult:
    return subjects.list_templates()


def _make_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    """Return the result of a call."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
