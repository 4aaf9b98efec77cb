"""The SDK's own client, and the server it speaks to."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client import Client

from llm_kb.api import KnowledgeBase
from llm_kb.mcp.server import KnowledgeServer
from tests.preloaded import LLM_KB

Conversation = Callable[[Client], Awaitable[Any]]


def talk(conversation: Conversation, server: Any, **options: Any) -> Any:
    """Hold a conversation with a server, or one in a directory, and return what came of it."""
    if isinstance(server, Path):
        directory = server
        server = KnowledgeServer(lambda: KnowledgeBase.discover(directory))

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
