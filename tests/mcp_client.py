"""The SDK's own client, and the server it speaks to."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from llm_kb.host.mcp.server import (
    Discover,
    Message,
    ProtocolError,
    Server,
    is_response,
    parse_line,
    render_message,
)
from llm_kb.knowledge_base.api import KnowledgeBase
from tests.preloaded import LLM_KB

Conversation = Callable[[Client], Awaitable[Any]]


@asynccontextmanager
async def connect(discover: Discover) -> AsyncIterator[Any]:
    """Yield the streams of a client whose messages are answered in this process."""
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](100)

    server = Server(discover)

    async def reply() -> None:
        async for sent in from_client:
            (message,) = parse_line(sent.message.model_dump_json(by_alias=True).encode())
            if "id" in message and not is_response(message):
                text = await anyio.to_thread.run_sync(_answer, server, message)
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(text)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reply)
        yield from_server, to_server
        tasks.cancel_scope.cancel()
        for stream in (to_client, from_server, to_server, from_client):
            stream.close()


def _answer(server: Server, message: Message) -> bytes:
    try:
        result = server.answer(message, lambda *_: None)
    except ProtocolError as error:
        return render_message({"id": message["id"], "error": error.error})
    return render_message({"id": message["id"], "result": result})


def talk(
    conversation: Conversation, server: Any, *, added: Collection[str] = (), **options: Any
) -> Any:
    """Hold a conversation with a server, or one in a directory, and return what came of it.

    `added` are names of tools that are served as well.
    """
    if isinstance(server, Path):
        server = partial(KnowledgeBase.discover, server, tools=added)
    if isinstance(server, partial):
        server = connect(server)

    async def run() -> Any:
        async with Client(server, read_timeout_seconds=60, **options) as client:
            return await conversation(client)

    return asyncio.run(run())


def start_process(*arguments: str, cwd: Path) -> StdioServerParameters:
    """Return what starts `llm-kb mcp` in a process of its own."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", LLM_KB, "mcp", *arguments],
        env=dict(os.environ),
        cwd=cwd,
    )


def call(server: Any, name: str, arguments: dict[str, Any], **options: Any) -> tuple[str, bool]:
    """Call a tool; return the text of the result, and whether it is an error."""

    async def conversation(client: Client) -> tuple[str, bool]:
        return read(await client.call_tool(name, arguments))

    result: tuple[str, bool] = talk(conversation, server, **options)
    return result


def read(result: types.CallToolResult) -> tuple[str, bool]:
    """Return the text of a result, and whether it is an error."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text, result.is_error
