"""A hostile client at the MCP server."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests import mcp_client
from tests.preloaded import LLM_KB, Process

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(name: str, **arguments: object) -> dict[str, Any]:
    """Return the message that calls a tool."""
    return {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one subject, and one of a single line of 2 MB."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n")
    (tmp_path / "kb" / "line.txt").write_text("needle;" + "x" * 2_000_000)
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')
    return tmp_path


class Server:
    """The server in a process of its own, spoken to as bytes."""

    def __init__(self, directory: Path) -> None:
        self.process = Process(
            ["mcp"], program=LLM_KB, cwd=directory, stdin=subprocess.PIPE, text=False
        )
        self.send(INITIALIZE)
        self.receive()
        self.send(INITIALIZED)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; what is no text stands as JSON escapes it."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for a message."""
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def close_pipes(self) -> None:
        """Go away, as a client that was killed."""
        self.process.stdout.close()
        self.process.stdin.close()

    def wait(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was said on standard error."""
        code = self.process.wait(timeout=30)
        said = self.process.stderr.read().decode()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return code, said


def test_a_line_of_2_mb_comes_back_as_the_command_shows_it(workspace: Path) -> None:
    text, _ = mcp_client.call(workspace, "search_knowledge", {"question": "needle"})
    assert text.startswith('<passage "team/line#L1 (line 1)"')
    assert "\nneedle;xxx" in text
    assert len(text) < 6_200


@pytest.mark.slow
def test_the_first_ctrl_c_ends_it(workspace: Path) -> None:
    server = Server(workspace)
    server.process.send_signal(signal.SIGINT)
    assert server.wait() == (-signal.SIGINT, "")


def test_it_ends_when_its_client_closes_its_input(workspace: Path) -> None:
    server = Server(workspace)
    server.process.stdin.close()
    assert server.wait() == (0, "")


@pytest.mark.parametrize("calls", [0, 1, 20])
def test_it_ends_without_a_word_when_its_client_is_gone(workspace: Path, calls: int) -> None:
    server = Server(workspace)
    for _ in range(calls):
        server.send(call("learn", topic="team", subjects="line"))
    if calls:
        time.sleep(0.3)  # it is answering, or waits for someone to read the answer
    server.close_pipes()
    assert server.wait() == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("\ud800", "unknown topic '?'", id="high half"),
        pytest.param("\udfff", "unknown topic '?'", id="low half"),
        pytest.param("a\udc80\ud83d\ude00", "unknown topic 'a?\N{GRINNING FACE}'", id="and a pair"),
        pytest.param("\\ud800", r"unknown topic '\\ud800'", id="spelled out"),
    ],
)
def test_half_a_surrogate_pair_is_answered(workspace: Path, text: str, message: str) -> None:
    server = Server(workspace)
    server.send(call("learn", topic=text))
    result = server.receive()["result"]
    server.close_pipes()
    server.wait()
    assert result["isError"]
    assert result["content"][0]["text"].startswith(message)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("learn", {}, id="none"),
        pytest.param("learn", {"topic": None}, id="null"),
        pytest.param("learn", {"topic": ["team"]}, id="list"),
        pytest.param("learn", {"topic": "team", "subjects": 3}, id="number"),
        pytest.param("learn", {"topic": "team", "subjects": [["style"]]}, id="nested"),
        pytest.param("search_knowledge", {}, id="no query"),
        pytest.param("search_knowledge", {"question": None}, id="null question"),
        pytest.param("search_knowledge", {"question": {"a": "b"}}, id="table"),
        pytest.param("search_knowledge", {"question": "x", "topic": 3}, id="topic"),
        pytest.param("search_knowledge", {"question": "x", "topic": "nope"}, id="unknown topic"),
        pytest.param("", {}, id="no tool"),
        pytest.param("__class__", {}, id="attribute"),
        pytest.param("learn", {"topic": "</topic>"}, id="a tag for a topic"),
        pytest.param("search", {"question": "x", "topic": "</knowledge>"}, id="one in a search"),
        pytest.param("</passage>", {}, id="one for a tool"),
    ],
)
def test_wrong_arguments_are_an_error_that_explains_itself(
    workspace: Path, name: str, arguments: dict[str, object]
) -> None:
    text, is_error = mcp_client.call(workspace, name, arguments)
    assert is_error
    assert 10 < len(text) < 300
    assert "</" not in text


@pytest.mark.parametrize("more", ["self", "more", "__class__"])
def test_an_argument_that_no_tool_has_means_nothing(workspace: Path, more: str) -> None:
    arguments = {"topic": "team"}
    expected = mcp_client.call(workspace, "learn", arguments)
    assert mcp_client.call(workspace, "learn", {**arguments, more: 1}) == expected
