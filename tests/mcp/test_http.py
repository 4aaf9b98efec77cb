"""The server over streamable HTTP, in a process of its own, and its access rules."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
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

    def __init__(self, directory: Path, *options: str, host: str = "127.0.0.1") -> None:
        arguments = ["mcp", "--http", f"{host}:0", *options]
        self.process = Process(arguments, program=LLM_KB, cwd=directory, stdout=subprocess.DEVNULL)
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

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what was said since it listened."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[1]
        return self.process.wait(), said


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
