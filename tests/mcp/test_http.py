"""The server over streamable HTTP, in a process of its own, and its access rules."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from llm_kb.errors import KbError
from llm_kb.mcp.http import (
    Address,
    Guard,
    find_token,
    parse_address,
)
from tests.capture.repositories import make_repo
from tests.mcp_client import call, read, talk
from tests.preloaded import LLM_KB, Process

TOKEN = "a-token-of-a-team"


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8765", Address("127.0.0.1", 8765), True),
        ("127.1.2.3:1", Address("127.1.2.3", 1), True),
        ("localhost:0", Address("localhost", 0), True),
        ("[::1]:80", Address("::1", 80), True),
        ("0.0.0.0:80", Address("0.0.0.0", 80), False),
        ("[::]:80", Address("::", 80), False),
        ("kb.corp:80", Address("kb.corp", 80), False),
        ("localhost.evil.com:80", Address("localhost.evil.com", 80), False),
    ],
)
def test_addresses(text: str, address: Address, is_loopback: bool) -> None:
    assert parse_address(text) == address
    assert parse_address(text).is_loopback is is_loopback


@pytest.mark.parametrize(
    "text",
    ["", "8765", "localhost", ":80", "host:99999", "a:b@host:80", "h:80/x", "[::1:80", "::1"],
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(KbError, match="HOST:PORT"):
        parse_address(text)


LOCAL = {"host": "127.0.0.1:80"}
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("address", "token", "headers", "status"),
    [
        pytest.param("127.0.0.1", None, LOCAL, None, id="local"),
        pytest.param("127.0.0.1", None, {"host": "LOCALHOST:9"}, None, id="local name"),
        pytest.param("127.0.0.1", None, {"host": "[::1]:80"}, None, id="local, IPv6"),
        pytest.param("127.0.0.1", None, {}, 421, id="no host"),
        pytest.param("127.0.0.1", None, {"host": "evil.com"}, 421, id="rebound name"),
        pytest.param("127.0.0.1", None, {"host": "localhost.evil.com"}, 421, id="name like it"),
        pytest.param("127.0.0.1", None, {"host": "10.0.0.7:80"}, 421, id="other address"),
        pytest.param("127.0.0.1", None, {"host": "[::1"}, 421, id="broken host"),
        pytest.param("127.0.0.1", None, {"host": "kb.corp"}, None, id="allowed name"),
        pytest.param(
            "127.0.0.1", None, LOCAL | {"origin": "http://localhost:6274"}, None, id="local page"
        ),
        pytest.param(
            "127.0.0.1", None, LOCAL | {"origin": "https://evil.com"}, 403, id="other page"
        ),
        pytest.param("127.0.0.1", None, LOCAL | {"origin": "null"}, 403, id="page without origin"),
        pytest.param(
            "127.0.0.1", None, LOCAL | {"origin": "http://evil.com@127.0.0.1"}, 403, id="user"
        ),
        pytest.param(
            "127.0.0.1",
            None,
            LOCAL | {"origin": "https://evil.com, http://localhost"},
            403,
            id="two origins",
        ),
        pytest.param(
            "127.0.0.1", None, LOCAL | {"origin": "file://127.0.0.1"}, 403, id="page of a file"
        ),
        pytest.param("127.0.0.1", TOKEN, LOCAL, 401, id="no token"),
        pytest.param("127.0.0.1", TOKEN, LOCAL | BEARER, None, id="token"),
        pytest.param(
            "127.0.0.1", TOKEN, LOCAL | {"authorization": f"Basic {TOKEN}"}, 401, id="other scheme"
        ),
        pytest.param(
            "127.0.0.1", TOKEN, LOCAL | {"authorization": f"Bearer {TOKEN}x"}, 401, id="longer"
        ),
        pytest.param(
            "127.0.0.1", TOKEN, LOCAL | {"authorization": "Bearer \xe9\xff"}, 401, id="odd bytes"
        ),
        pytest.param("0.0.0.0", TOKEN, BEARER | {"host": "10.0.0.7:80"}, None, id="by address"),
        pytest.param("0.0.0.0", TOKEN, BEARER | {"host": "evil.com"}, 421, id="by another name"),
        pytest.param("0.0.0.0", TOKEN, {"host": "10.0.0.7:80"}, 401, id="beyond, no token"),
    ],
)
def test_the_guard(
    address: str, token: str | None, headers: dict[str, str], status: int | None
) -> None:
    guard = Guard(address=Address(address, 80), token=token, names=["kb.corp"])
    refused = guard.refuse(headers)
    assert (refused[0] if refused else None) == status


def test_a_token_is_made_where_it_is_required() -> None:
    assert find_token(None, is_required=False) is None
    made = {find_token(None, is_required=True) for _ in range(3)}
    assert len(made) == 3
    assert all(len(token or "") >= 40 for token in made)
    assert find_token(TOKEN, is_required=False) == TOKEN
    with pytest.raises(KbError, match="the token has"):
        find_token("short", is_required=False)


class Served:
    """A server in a process, from when it listens."""

    def __init__(
        self, directory: Path, *options: str, host: str = "127.0.0.1", program: str = LLM_KB
    ) -> None:
        arguments = ["mcp", "--http", f"{host}:0", *options]
        self.process = Process(arguments, program=program, cwd=directory, stdout=subprocess.DEVNULL)
        self.said = ""
        self.url = ""
        for line in self.process.stderr:
            self.said += line
            if found := re.search(r"http://\S+/mcp", line):
                self.url = found[0]
                return
        pytest.fail(self.said)

    @contextlib.asynccontextmanager
    async def connect(self, token: str | None = None) -> AsyncIterator[Any]:
        """Yield what a client of the SDK connects to."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            streamable_http_client(self.url, http_client=web) as streams,
        ):
            yield streams

    def post(self, body: bytes = b"{}", **headers: str) -> int:
        """Return the status of a request that no client of the SDK would make."""
        host, _, port = self.url.removeprefix("http://").removesuffix("/mcp").partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        with contextlib.closing(connection):
            accept = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", "/mcp", body, accept | headers)
            return connection.getresponse().status

    def connect_raw(self, data: bytes) -> socket.socket:
        """Return a connection on which these bytes were sent."""
        host, _, port = self.url.removeprefix("http://").removesuffix("/mcp").partition(":")
        connection = socket.create_connection((host, int(port)), timeout=30)
        connection.sendall(data)
        return connection

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        with contextlib.closing(self.connect_raw(request(body.encode()))) as connection:
            return dict(json.loads(read_response(connection)[1]))

    def search(self, question: str) -> dict[str, Any]:
        """Call the tool `search`."""
        return self.ask("tools/call", name="search", arguments={"question": question})

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what was said since it listened."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[1]
        return self.process.wait(), said


def request(body: bytes, head: str = "") -> bytes:
    """Return a request of a client."""
    lines = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{lines}{head or f'Content-Length: {len(body)}'}\r\n\r\n".encode() + body


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the next response; 0 if the connection was closed."""
    head = b""
    with contextlib.suppress(ConnectionError):
        while not head.endswith(b"\r\n\r\n") and (byte := connection.recv(1)):
            head += byte
    if not head:
        return 0, b""
    length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return int(head.split()[1]), body


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with one topic."""
    repo = make_repo(tmp_path / "repo")
    (repo.path / "kb").mkdir()
    (repo.path / "kb" / "style.md").write_text("Short lines.\n")
    (repo.path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')
    return repo.path


@pytest.fixture
def served(workspace: Path) -> Iterator[Served]:
    """A server on loopback, read-only."""
    served = Served(workspace)
    yield served
    if served.process.poll() is None:
        served.end()


STYLE = ("Short lines.\n", False)
LEARN = {"topic": "team", "subjects": "style"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_it_serves_what_reads_and_nothing_that_writes(served: Served, mode: str) -> None:
    async def conversation(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        entry = {"entry_type": "convention", "scope": "*", "rule": "r"}
        return (
            names,
            read(await client.call_tool("learn", LEARN)),
            read(await client.call_tool("emit_knowledge", entry)),
            (await client.read_resource("kb://team/style")).contents[0],
        )

    names, learned, refused, resource = talk(conversation, served.connect(), mode=mode)
    assert names == ["learn", "search"]
    assert learned == STYLE
    assert refused == ("unknown tool 'emit_knowledge'; tools: learn, search", True)
    assert resource.text == "Short lines.\n"
    assert served.end() == (0, "")


@pytest.mark.slow
def test_fifty_clients_at_once_one_that_dies_and_a_slow_one(served: Served) -> None:
    async def use(number: int) -> Any:
        mode = "legacy" if number % 2 else "auto"
        async with Client(served.connect(), read_timeout_seconds=120, mode=mode) as client:
            results = [read(await client.call_tool("learn", LEARN)) for _ in range(2)]
            return [*results, (await client.list_resources()).resources[0].uri]

    async def run() -> Any:
        host, port = served.url.removeprefix("http://").removesuffix("/mcp").split(":")
        # One sends half a request and goes on for ever, the other goes in the midst of one.
        _, slow = await asyncio.open_connection(host, int(port))
        slow.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        await slow.drain()
        _, dying = await asyncio.open_connection(host, int(port))
        dying.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        dying.transport.abort()
        results = await asyncio.gather(*map(use, range(50)))
        slow.close()
        await slow.wait_closed()
        return results

    assert asyncio.run(run()) == [[STYLE, STYLE, "kb://team/style"]] * 50
    assert served.end() == (0, "")


def test_writing_needs_a_token_and_pages_of_the_web_stay_out(
    workspace: Path,
) -> None:
    served = Served(workspace, "--write")
    made = re.search(r"Authorization: Bearer (\S+)'", served.said)
    assert made is not None
    assert served.post() == 401
    assert served.post(Authorization="Bearer x" + made[1]) == 401
    place = served.url.removeprefix("http://").removesuffix("/mcp")
    again = Process(["mcp", "--http", place], program=LLM_KB)
    assert (again.communicate()[1].lower(), again.returncode) == (
        f"error: cannot serve at {served.url}: address already in use;"
        " choose another host:port of this machine\n",
        1,
    )
    right = {"Authorization": f"Bearer {made[1]}"}
    assert served.post(b"{}", Host="evil.com", **right) == 421
    assert served.post(b"{}", Origin="https://evil.com", **right) == 403
    assert served.post(json.dumps({"x": "y" * 4_000_000}).encode(), **right) == 413
    entry = {"entry_type": "convention", "scope": "*", "rule": "r"}
    assert call(served.connect(made[1]), "emit_knowledge", entry) == (
        "recorded convention conv-1 (*): r",
        False,
    )
    assert served.end() == (0, "")


def test_a_token_may_be_given_and_is_never_printed(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("LLM_KB_MCP_TOKEN", "another token of a team")
    served = Served(workspace, "--token-file", str(tmp_path / "token"), host="0.0.0.0")
    assert TOKEN not in served.said
    served.url = served.url.replace("0.0.0.0", "127.0.0.1")
    assert served.post() == 401
    assert call(served.connect(TOKEN), "learn", LEARN) == STYLE
    assert served.end() == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--write"], "--write, --token-file and --allow-host go with --http"),
        (["--allow-host", "x"], "--write, --token-file and --allow-host go with --http"),
        (["--http", "nowhere"], "'nowhere' is not HOST:PORT"),
    ],
)
def test_wrong_options_are_errors(
    workspace: Path, run_llm: Any, options: list[str], message: str
) -> None:
    result = run_llm(["kb", "mcp", *options])
    assert result.exit_code in {1, 2}
    assert message in result.stderr


def test_a_short_token_is_an_error(run_llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KB_MCP_TOKEN", "secret")
    result = run_llm(["kb", "mcp", "--http", "127.0.0.1:0"])
    assert result.exit_code == 1
    assert "the token has 6 characters, at least 16 are needed" in result.stderr


PING = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}'
PONG = (200, b'{"jsonrpc":"2.0","id":7,"result":{}}\n')


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(request(PING), 200, id="request"),
        pytest.param(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405, id="GET"),
        pytest.param(b"DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405, id="DELETE"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, id="path"),
        pytest.param(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 415, id="no JSON"),
        pytest.param(b"POST /mcp HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"\x16\x03\x01 hello", 400, id="TLS"),
        pytest.param(b"x" * 100_000, 431, id="endless line"),
        pytest.param(request(PING, "X: " + "x" * 200_000), 431, id="endless header"),
        pytest.param(request(PING, "Content-Length: 45\r\nContent-Length: 46"), 400, id="lengths"),
        pytest.param(request(b"", "Content-Length: 5000000"), 413, id="too long"),
        pytest.param(request(b"x\r\n", "Transfer-Encoding: chunked"), 400, id="chunk"),
        pytest.param(request(b"[]"), 400, id="batch"),
        pytest.param(request(b'{"jsonrpc": "2.0", "method": "notifications/x"}'), 202, id="notice"),
        pytest.param(
            request(PING, f"Content-Length: {len(PING)}\r\nMCP-Protocol-Version: 1"), 400, id="old"
        ),
    ],
)
def test_what_is_no_request_is_refused(served: Served, data: bytes, status: int) -> None:
    with contextlib.closing(served.connect_raw(data)) as connection:
        assert read_response(connection)[0] == status


def test_a_connection_takes_several_requests_in_pieces_or_at_once(served: Served) -> None:
    with contextlib.closing(served.connect_raw(request(PING) + request(PING))) as connection:
        assert [read_response(connection), read_response(connection)] == [PONG, PONG]
        chunked = b"5\r\n" + PING[:5] + b"\r\n" + f"{len(PING) - 5:x}\r\n".encode()
        whole = request(b"", "Transfer-Encoding: chunked") + chunked + PING[5:] + b"\r\n0\r\n\r\n"
        for place in range(0, len(whole), 20):
            connection.sendall(whole[place : place + 20])
        assert read_response(connection) == PONG
        connection.sendall(request(b"", f"Content-Length: {len(PING)}\r\nExpect: 100-continue"))
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(PING)
        assert read_response(connection) == PONG


STUCK = """
import re, signal, time
from llm_kb.mcp import tools

def stuck(kb, given, report):
    if given["question"] == "pattern":
        re.match("(a+)+b", "a" * 60)
    if given["question"] == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    if given["question"] == "dies":
        signal.raise_signal(signal.SIGKILL)
    if given["question"] == "slow":
        for step in range(300):
            time.sleep(0.2)
            report("working", step, 300)
    return "done"

tools.TOOLS["search"] = tools.TOOLS["search"]._replace(answer=stuck)
tools.SECONDS = 1
from llm_kb.mcp.workers import work
work()
"""

LIMITED = f"""
from llm_kb.mcp import http, tools, workers
http.READ_SECONDS, http.IDLE_SECONDS, http.MOST_OF_A_PEER, workers.GRACE_SECONDS = 3, 3, 20, 4
tools.SECONDS = 1
workers._PROGRAM = {STUCK!r}
{LLM_KB}
"""


@pytest.fixture
def limited(workspace: Path) -> Iterator[Served]:
    """A server with small limits, whose `search` may not end by itself."""
    served = Served(workspace, program=LIMITED)
    yield served
    if served.process.poll() is None:
        served.end()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing", marks=pytest.mark.slow),
        pytest.param(b"POST /mcp HTTP/1.1\r\nX-a: ", id="half a header"),
        pytest.param(request(b"{", "Content-Length: 9"), id="half a body", marks=pytest.mark.slow),
    ],
)
def test_connections_that_send_no_request_keep_nobody_out_and_end(
    limited: Served, data: bytes
) -> None:
    with contextlib.ExitStack() as opened:
        silent = [
            opened.enter_context(contextlib.closing(limited.connect_raw(data))) for _ in range(60)
        ]
        assert limited.ask("ping")["result"] == {}
        assert {read_response(connection)[0] for connection in silent} == {0}


@pytest.mark.slow
def test_an_idle_connection_ends(limited: Served) -> None:
    with contextlib.closing(limited.connect_raw(request(PING))) as connection:
        assert [read_response(connection), read_response(connection)] == [PONG, (0, b"")]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        pytest.param("pattern", "ended after 1 seconds without progress", id="deadline"),
        pytest.param("deaf", "did not answer in time", id="killed", marks=pytest.mark.slow),
        pytest.param("dies", "did not answer in time", id="dead"),
    ],
)
def test_a_call_that_does_not_end_costs_no_other_one_anything(
    limited: Served, question: str, answer: str
) -> None:
    with ThreadPoolExecutor(4) as threads:
        stuck = [threads.submit(limited.search, question) for _ in range(3)]
        assert limited.search("x")["result"]["content"][0]["text"] == "done"
        assert limited.ask("ping")["result"] == {}
        assert [answer in json.dumps(each.result()) for each in stuck] == [True] * 3
    assert limited.search("x")["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_it_ends_soon_while_a_call_runs(limited: Served, number: int) -> None:
    params = {"name": "search", "arguments": {"question": "slow"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with contextlib.closing(limited.connect_raw(request(json.dumps(call).encode()))) as connection:
        limited.ask("ping")
        started = time.monotonic()
        limited.process.send_signal(number)
        assert limited.process.communicate(timeout=30)[1] == ""
        assert limited.process.returncode == 0
        assert time.monotonic() - started < 10
        assert b'"error"' in read_response(connection)[1]
