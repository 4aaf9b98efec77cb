"""Standard input and output: messages, cancellation and progress of calls."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_kb.host.mcp.server import LARGEST, VERSIONS
from tests.preloaded import LLM_KB, Process

SLOW = f"""
import sys, time
from llm_kb.host.mcp import server, tools

def slow(kb, given, report):
    print("works", file=sys.stderr, flush=True)
    if given["question"] == "defect":
        raise ZeroDivisionError
    for _ in range(given.get("limit", 0)):
        time.sleep(0.1)
        report(1, 2)
    return "done"

tools.ANSWERS["search_knowledge"] = slow
server.PROGRESS_SECONDS = 0.15
{LLM_KB}
"""

FOR_EVER = 10_000


class Client:
    """Speaks to a server in a process of its own, in bytes."""

    def __init__(self, directory: Path, program: str = LLM_KB) -> None:
        self.process = Process(
            ["mcp"], program=program, cwd=directory, stdin=subprocess.PIPE, text=False
        )

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, id_: object = None, **params: Any) -> None:
        """Send a request, or a notification if it has no id."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message | ({"id": id_} if id_ is not None else {})).encode() + b"\n")

    def search(self, id_: object, question: str, **more: Any) -> None:
        """Call the tool `search_knowledge`."""
        arguments = {"question": question, "limit": more.pop("limit", 0)}
        self.send("tools/call", id_, name="search_knowledge", arguments=arguments, **more)

    def receive(self) -> dict[str, Any]:
        """Wait for a message."""
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request, or its error."""
        self.send(method, 1, **params)
        reply = self.receive()
        assert reply.pop("id") == 1
        (answer,) = reply.values()
        return dict(answer)

    def end(self) -> int:
        """Close the input and wait for the end."""
        with self.process.stdin, self.process.stdout, self.process.stderr:
            self.process.stdin.close()
            return self.process.wait(timeout=30)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace of one topic."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n')
    return tmp_path


@pytest.fixture
def client(workspace: Path) -> Iterator[Client]:
    """A client of the server, not yet greeted."""
    client = Client(workspace)
    yield client
    client.end()


@pytest.fixture
def slow(workspace: Path) -> Iterator[Client]:
    """A client of a server whose search takes as long as it is told to, and reports progress."""
    client = Client(workspace, SLOW)
    yield client
    client.end()


def text_of(reply: dict[str, Any]) -> str:
    """Return the text of a call's result."""
    return str(reply["result"]["content"][0]["text"])


def test_a_client_is_greeted_before_anything_heavy_is_imported(workspace: Path) -> None:
    """See also bench/starting.py."""
    program = "import sys, llm_kb.commands.mcp; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=workspace,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    heavy = {"asyncio", "httpx2", "llm", "mcp", "numpy", "pydantic", "sqlite3", "yaml"}
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("asked", [*VERSIONS, "2026-07-28", "1999-01-01", ""])
def test_the_version_is_the_clients_or_else_the_newest(client: Client, asked: str) -> None:
    greeting = client.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo={})
    assert greeting["protocolVersion"] == (asked if asked in VERSIONS else VERSIONS[-1])
    assert greeting["serverInfo"]["name"] == "llm-kb"
    assert client.ask("ping") == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(b"no JSON", -32700, id="no JSON"),
        pytest.param(b"[" * 200_000, -32700, id="nesting"),
        pytest.param(b"\xff\xfe", -32700, id="no text"),
        pytest.param(b"[]", -32600, id="empty batch"),
        pytest.param(b"[[]]", -32600, id="batch in a batch"),
        pytest.param(b"3", -32600, id="number"),
        pytest.param(b'{"id": 1, "method": "ping"}', -32600, id="not 2.0"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 1}', -32600, id="no method"),
        pytest.param(b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, id="null id"),
        pytest.param(b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', -32600, id="list as id"),
        pytest.param(b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, id="true as id"),
        pytest.param(b'"' + b"x" * LARGEST + b'"', -32600, id="too long"),
    ],
)
def test_what_is_no_message_is_an_error_without_id(client: Client, line: bytes, code: int) -> None:
    client.write(line + b"\n")
    reply = client.receive()
    assert (reply["id"], reply["error"]["code"]) == (None, code)
    assert client.ask("ping") == {}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nope", {}, -32601),
        ("tools/call", {"name": 3}, -32602),
        ("tools/call", {"name": "learn", "arguments": [1]}, -32602),
        ("tools/call", {"name": "learn", "arguments": "[1]"}, -32602),
        ("tools/call", {"name": "learn", "arguments": "topic"}, -32602),
        ("resources/list", {}, -32601),
        ("prompts/get", {"name": "nope"}, -32601),
        ("completion/complete", {"ref": 3}, -32601),
        ("initialize", {"protocolVersion": 1}, -32602),
    ],
)
def test_wrong_parameters_are_errors(
    client: Client, method: str, params: dict[str, Any], code: int
) -> None:
    assert client.ask(method, **params)["code"] == code
    client.write(b'{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": [1]}\n')
    assert client.receive()["error"]["code"] == -32602


def test_notifications_are_not_answered(client: Client) -> None:
    client.send("notifications/initialized")
    client.send("notifications/nope")
    client.send("notifications/cancelled", requestId=17)
    assert client.ask("ping") == {}


def test_it_serves_without_a_standard_error(workspace: Path) -> None:
    client = Client(workspace, f"import os, sys; os.close(2); sys.stderr = None; {LLM_KB}")
    assert client.ask("ping") == {}
    assert client.ask("tools/list")["tools"][0]["name"] == "learn"
    assert client.end() == 0


def test_a_line_without_an_end_takes_no_memory(client: Client) -> None:
    assert client.ask("ping") == {}
    status = Path(f"/proc/{client.process.pid}/status")
    if not status.exists():
        pytest.skip("the memory of a process is read from /proc")
    for _ in range(300):
        client.write(b"x" * 1_000_000)
    client.write(b"\n")
    assert client.receive()["error"]["code"] == -32600
    (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 200_000


def test_progress_is_sent_to_a_client_that_gave_a_token(slow: Client) -> None:
    slow.search(1, "x", limit=6, _meta={"progressToken": "t"})
    told = []
    while (reply := slow.receive()).get("method") == "notifications/progress":
        told.append(reply["params"])
    assert (reply["id"], text_of(reply)) == (1, "done")
    assert {params["progressToken"] for params in told} == {"t"}
    values = [params["progress"] for params in told]
    assert values == sorted({*values})
    assert 1 <= len(values) <= 6


@pytest.mark.parametrize("meta", [{}, {"progressToken": None}, {"progressToken": []}, [], 3])
def test_no_progress_is_sent_unasked(slow: Client, meta: Any) -> None:
    slow.search(1, "x", limit=3, _meta=meta)
    assert text_of(slow.receive()) == "done"


def test_a_call_that_is_cancelled_ends_and_is_not_answered(slow: Client) -> None:
    for id_ in (1, 2, 3):
        slow.search(id_, "x", limit=FOR_EVER)
    slow.search("1", "nothing")
    assert slow.process.stderr.readline() == b"works\n"  # the first one
    for id_ in (3, 2, 1):
        slow.send("notifications/cancelled", requestId=id_)
    reply = slow.receive()
    assert (reply["id"], text_of(reply)) == ("1", "done")


def test_a_cancellation_that_comes_late_ends_no_other_call(slow: Client) -> None:
    for id_ in range(20):
        slow.search(id_, "nothing")
        slow.send("notifications/cancelled", requestId=id_)
        slow.search(f"other {id_}", "nothing")
    replies = [slow.receive() for _ in range(20)]
    others = [reply for reply in replies if isinstance(reply["id"], str)]
    assert {text_of(reply) for reply in others} == {"done"}


def test_a_defect_is_an_error_and_the_server_goes_on(slow: Client) -> None:
    slow.search(1, "defect")
    assert slow.receive()["error"]["code"] == -32603
    assert slow.ask("ping") == {}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\n", id="empty"),
        pytest.param(b" \t\r\n", id="blank"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7, "result": {}}\n', id="response"),
        pytest.param(b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1}}\n', id="error"),
    ],
)
def test_what_needs_no_answer_gets_none(client: Client, line: bytes) -> None:
    client.write(line * 3)
    assert client.ask("ping") == {}


def test_arguments_may_be_json_in_a_string(client: Client) -> None:
    arguments = json.dumps({"topic": "t", "subjects": ["style"]})
    answer = client.ask("tools/call", name="learn", arguments=arguments)
    assert answer["content"][0]["text"] == "Short lines.\n"


def test_requests_with_the_same_id_are_each_answered(slow: Client) -> None:
    for _ in range(3):
        slow.search(1, "nothing")
    assert [slow.receive()["id"] for _ in range(3)] == [1, 1, 1]


def test_a_cancellation_behind_many_requests_is_read(slow: Client) -> None:
    slow.search("slow", "x", limit=FOR_EVER)
    assert slow.process.stderr.readline() == b"works\n"
    for id_ in range(500):
        slow.send("ping", id_)
    slow.send("notifications/cancelled", requestId="slow")
    assert [slow.receive()["id"] for _ in range(500)] == list(range(500))


def test_a_batch_is_answered_one_by_one(client: Client) -> None:
    messages = [{"jsonrpc": "2.0", "id": id_, "method": "ping"} for id_ in (1, 2)]
    notification = {"jsonrpc": "2.0", "method": "notifications/nope"}
    client.write(json.dumps([*messages, notification]).encode() + b"\n")
    assert [client.receive()["id"] for _ in messages] == [1, 2]
    assert client.ask("ping") == {}


def test_a_byte_order_mark_is_no_part_of_a_message(client: Client) -> None:
    client.write(b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    assert client.receive() == {"id": 1, "result": {}}


def test_an_empty_list_is_taken_for_no_parameters(client: Client) -> None:
    client.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}\n')
    assert client.receive()["result"]["tools"][0]["name"] == "learn"
    assert "topic: missing" in text_of(
        {"result": client.ask("tools/call", name="learn", arguments=[])}
    )


def test_requests_beyond_the_room_for_them_wait_at_the_client(workspace: Path) -> None:
    limited = f"from llm_kb.host.mcp import server; server.MOST_AHEAD = 5_000; {LLM_KB}"
    client = Client(workspace, limited)
    for id_ in range(100):
        client.send("ping", id_)
    assert [client.receive()["id"] for _ in range(100)] == list(range(100))
    assert client.end() == 0


@pytest.mark.parametrize("line", [b"x\n", b"1\n", b'{"jsonrpc":"2.0"}\n'])
def test_errors_beyond_the_room_for_them_wait_at_the_client(workspace: Path, line: bytes) -> None:
    client = Client(workspace)
    pipe, sent, much = client.process.stdin.fileno(), 0, 400_000
    os.set_blocking(pipe, False)
    while sent < much and select.select([], [pipe], [], 0.5)[1]:
        sent += os.write(pipe, line * (4096 // len(line)))
    client.process.kill()
    client.process.wait()
    for each in (client.process.stdin, client.process.stdout, client.process.stderr):
        each.close()
    assert sent < much


def test_what_was_asked_before_the_input_ends_is_answered(workspace: Path) -> None:
    client = Client(workspace)
    for id_ in range(50):
        client.send("tools/list" if id_ % 10 == 0 else "ping", id_)
    client.process.stdin.close()
    assert [client.receive()["id"] for _ in range(50)] == list(range(50))
    assert client.process.wait(timeout=30) == 0
    client.process.stdout.close()
    client.process.stderr.close()
