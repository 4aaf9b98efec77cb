"""Standard input and output: messages, cancellation and deadlines of calls."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_kb.host.mcp.server import LARGEST, VERSIONS
from tests.preloaded import LLM_KB, Process

STUCK = f"""
import re, sys, time
from llm_kb.host.mcp import tools

def stuck(kb, given, report):
    for step in range(given.get("limit", 0)):
        time.sleep(0.3)
        report("working", step + 1, 10)
    print("works", file=sys.stderr, flush=True)
    if given["question"] == "pattern":
        re.match("(a+)+b", "a" * 60)  # holds the interpreter's lock for years: only a timer ends it
    if given["question"] == "swallow":
        try:
            time.sleep(60)
        except BaseException:
            time.sleep(60)
    if given["question"] == "defect":
        raise ZeroDivisionError
    if given["question"] == "sleep":
        time.sleep(60)
    return "done"

tools.ANSWERS["search_knowledge"] = stuck
tools.SECONDS = 1
{LLM_KB}
"""


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
        arguments = {"question": question, **({"limit": more.pop("limit")} if more else {})}
        self.send("tools/call", id_, name="search_knowledge", arguments=arguments)

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
def stuck(workspace: Path) -> Iterator[Client]:
    """A client of a server whose search does not end by itself; its deadline is one second."""
    client = Client(workspace, STUCK)
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
        pytest.param(b"[]", -32600, id="batch"),
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
        ("tools/call", {"name": "learn", "arguments": []}, -32602),
        ("tools/call", {"name": "learn", "arguments": "[]"}, -32602),
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


@pytest.mark.parametrize("question", ["pattern", "sleep", "swallow"])
def test_a_call_ends_at_its_deadline_whatever_it_does(stuck: Client, question: str) -> None:
    started = time.monotonic()
    stuck.search(1, question)
    reply = stuck.receive()
    assert reply["result"]["isError"]
    assert text_of(reply) == "ended after 1 seconds without progress; ask for less at once"
    assert time.monotonic() - started < 20
    stuck.search(2, "nothing")
    assert text_of(stuck.receive()) == "done"


def test_progress_moves_the_deadline(stuck: Client) -> None:
    stuck.search(1, "nothing", limit=5)
    assert text_of(stuck.receive()) == "done"


def test_a_call_that_is_cancelled_ends_at_once_and_is_not_answered(workspace: Path) -> None:
    client = Client(workspace, STUCK.replace("SECONDS = 1", "SECONDS = 600"))
    for id_ in (1, 2, 3):
        client.search(id_, "sleep")
    client.search("1", "nothing")
    assert client.process.stderr.readline() == b"works\n"  # the first one
    started = time.monotonic()
    for id_ in (3, 2, 1):
        client.send("notifications/cancelled", requestId=id_)
    reply = client.receive()
    assert (reply["id"], text_of(reply)) == ("1", "done")
    assert time.monotonic() - started < 60
    assert client.end() == 0


def test_a_cancellation_that_comes_late_ends_no_other_call(stuck: Client) -> None:
    for id_ in range(20):
        stuck.search(id_, "nothing")
        stuck.send("notifications/cancelled", requestId=id_)
        stuck.search(f"other {id_}", "nothing")
    replies = [stuck.receive() for _ in range(20)]
    others = [reply for reply in replies if isinstance(reply["id"], str)]
    assert {text_of(reply) for reply in others} == {"done"}


def test_a_defect_is_an_error_and_the_server_goes_on(stuck: Client) -> None:
    stuck.search(1, "defect")
    assert stuck.receive()["error"]["code"] == -32603
    assert stuck.ask("ping") == {}


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


def test_requests_with_the_same_id_are_each_answered(stuck: Client) -> None:
    for _ in range(3):
        stuck.search(1, "nothing")
    assert [stuck.receive()["id"] for _ in range(3)] == [1, 1, 1]


def test_a_cancellation_behind_many_requests_is_read(workspace: Path) -> None:
    client = Client(workspace, STUCK.replace("SECONDS = 1", "SECONDS = 600"))
    client.search("slow", "sleep")
    assert client.process.stderr.readline() == b"works\n"
    for id_ in range(500):
        client.send("ping", id_)
    client.send("notifications/cancelled", requestId="slow")
    assert [client.receive()["id"] for _ in range(500)] == list(range(500))
    assert client.end() == 0


def test_requests_beyond_the_room_for_them_wait_at_the_client(workspace: Path) -> None:
    limited = f"from llm_kb.host.mcp import server; server.MOST_WAITING = 5_000; {LLM_KB}"
    client = Client(workspace, limited)
    for id_ in range(100):
        client.send("ping", id_)
    assert [client.receive()["id"] for _ in range(100)] == list(range(100))
    assert client.end() == 0


@pytest.mark.parametrize("line", [b"x\n", b"1\n", b'{"jsonrpc":"2.0"}\n'])
def test_errors_beyond_the_room_for_them_wait_at_the_client(workspace: Path, line: bytes) -> None:
    limited = f"from llm_kb.host.mcp import server; server.MOST_WAITING = 5_000; {LLM_KB}"
    client = Client(workspace, limited)
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


@pytest.mark.parametrize("question", ["pattern", "sleep", "swallow"])
def test_the_end_of_the_input_ends_the_work(workspace: Path, question: str) -> None:
    program = STUCK.replace("SECONDS = 1", "SECONDS = 600").replace(
        "tools.ANSWERS",
        "from llm_kb.host.mcp import server; server.LAST_SECONDS = 1; tools.ANSWERS",
    )
    client = Client(workspace, program)
    client.search(1, question)
    client.send("ping", 2)
    assert client.process.stderr.readline() == b"works\n"
    started = time.monotonic()
    client.end()
    assert time.monotonic() - started < 20
