"""The version of the protocol in which each request carries what a handshake said before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import mcp_types._v2026_07_28 as wire
import pytest
from mcp.client import Client

from llm_kb import __version__
from llm_kb.host.mcp.server import ProtocolError, Server
from llm_kb.knowledge_base.api import KnowledgeBase
from tests.mcp_client import read, start_process, talk

META = "io.modelcontextprotocol/"
INFO = {f"{META}serverInfo": {"name": "llm-kb", "version": __version__}}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace of one topic, whose subject is too long for an answer."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n" * 3_000)
    (tmp_path / "llm-kb.toml").write_text(
        '[kb]\nsearch = true\n[kb.topic.t]\ntitle = "Style"\nsubjects = "kb"\n'
    )
    return tmp_path


def ask(directory: Path, method: str, meta: dict[str, Any] | None = None, **params: Any) -> Any:
    """Return the result of a request of this version."""
    server = Server(partial(KnowledgeBase.discover, directory))
    given = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    params["_meta"] = given | (meta or {})
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return server.answer(request, lambda *_: None)


def test_a_client_discovers_the_server(workspace: Path) -> None:
    found = ask(workspace, "server/discover")
    wire.DiscoverResult.model_validate(found)
    instructions = found.pop("instructions")
    assert "<knowledge>\n" in instructions
    assert found == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": INFO,
    }


def test_tools_are_listed_and_called(workspace: Path) -> None:
    listed = ask(workspace, "tools/list")
    wire.ListToolsResult.model_validate(listed)
    assert {"resultType", "ttlMs", "cacheScope", "_meta"} <= listed.keys()
    called = ask(workspace, "tools/call", name="search_knowledge", arguments={"question": "short"})
    wire.CallToolResult.model_validate(called)
    assert (called["resultType"], called["_meta"], called["isError"]) == ("complete", INFO, False)
    assert "ttlMs" not in called


def test_each_request_says_which_client_reads_the_answer(workspace: Path) -> None:
    call: dict[str, Any] = {"name": "learn", "arguments": {"topic": "t", "subjects": ["style#*"]}}
    codex = {f"{META}clientInfo": {"name": "codex-mcp-client", "version": "1"}}
    short = ask(workspace, "tools/call", codex, **call)["content"][0]["text"]
    long = ask(workspace, "tools/call", **call)["content"][0]["text"]
    assert 9_000 < len(short) <= 11_000
    assert 18_000 < len(long) <= 20_000


@pytest.mark.parametrize(
    ("meta", "error"),
    [
        pytest.param(
            {f"{META}protocolVersion": "1999-01-01"},
            {
                "code": -32022,
                "message": "unsupported version of the protocol",
                "data": {"supported": ["2026-07-28"], "requested": "1999-01-01"},
            },
            id="unknown version",
        ),
        pytest.param(
            {f"{META}protocolVersion": 3},
            {"code": -32602, "message": "the version of the protocol is not a string"},
            id="not a version",
        ),
        pytest.param(
            {f"{META}clientCapabilities": None},
            {"code": -32602, "message": f"_meta has no {META}clientCapabilities"},
            id="no capabilities",
        ),
    ],
)
def test_a_wrong_envelope_is_an_error(
    workspace: Path, meta: dict[str, Any], error: dict[str, Any]
) -> None:
    with pytest.raises(ProtocolError) as raised:
        ask(workspace, "tools/list", meta)
    assert raised.value.error == error


def test_each_version_has_its_own_methods(workspace: Path) -> None:
    with pytest.raises(ProtocolError, match="not a method of this version"):
        ask(workspace, "ping")
    server = Server(partial(KnowledgeBase.discover, workspace))
    with pytest.raises(ProtocolError, match="not a method of this version"):
        server.answer({"id": 1, "method": "server/discover"}, lambda *_: None)


def test_a_broken_configuration_is_the_instructions(workspace: Path) -> None:
    (workspace / "llm-kb.toml").write_text("[kb.topic")
    assert "is not valid TOML" in ask(workspace, "server/discover")["instructions"]
    (tool,) = ask(workspace, "tools/list")["tools"]
    assert "is not valid TOML" in tool["description"]


@pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")],
)
def test_the_sdks_client_speaks_to_it_in_every_mode(
    workspace: Path, mode: str, version: str
) -> None:
    async def conversation(client: Client) -> Any:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("learn", {"topic": "t"})
        return client.protocol_version, tools[:2], read(answer)[0]

    found = talk(conversation, start_process(cwd=workspace), mode=mode)
    assert found[:2] == (version, ["learn", "search_knowledge"])
    assert found[2].startswith("# Topic: Style (t)")
