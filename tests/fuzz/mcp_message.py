"""Any message of an MCP client is answered, or refused with a ProtocolError."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from functools import cache, partial
from typing import Any

from llm_kb.host.mcp.server import (
    Discover,
    ProtocolError,
    Server,
    is_response,
    parse_line,
    render_message,
)
from llm_kb.knowledge_base.api import KnowledgeBase
from tests.console import SAMPLE

METHODS = ("initialize", "ping", "tools/list", "tools/call", "server/discover")

NAMES = (
    *("name", "arguments", "context", "protocolVersion"),
    *("topic", "subjects", "question", "limit", "type", "value", "_meta"),
)


def fuzz(data: bytes) -> None:
    """Take the data for a message, and its lines for the parameters of a request."""
    lines = data[1:].decode("utf-8", "replace").split("\n")
    params = {
        NAMES[(len(line) + place) % len(NAMES)]: _read(line) for place, line in enumerate(lines)
    }
    method = METHODS[data[0] % len(METHODS)] if data else "ping"
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    for message in (data, json.dumps(request).encode()):
        with suppress(ProtocolError):
            for parsed in parse_line(message):
                if "id" in parsed and not is_response(parsed) and not _writes(parsed):
                    answered = Server(_discover()).answer(parsed, lambda *_: None)
                    render_message({"id": 1, "result": answered})


def _read(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return {NAMES[len(text) % len(NAMES)]: text}


def _writes(request: dict[str, Any]) -> bool:
    """Tell whether a call would fetch something, or write into the repository."""
    params = request.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name in ("reference_topic_create", "emit_knowledge")


@cache
def _discover() -> Discover:
    os.environ.setdefault("LLM_USER_PATH", tempfile.mkdtemp())  # where a search keeps its index
    return partial(KnowledgeBase.discover, SAMPLE)
