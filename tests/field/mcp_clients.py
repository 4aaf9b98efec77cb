"""Asks `llm-kb mcp` with the protocol's own tools, in both of its eras.

    python -m tests.field.mcp_clients

These are the public conformance suite, through a bridge to HTTP, the Inspector, Claude Code with a
model of our own, and the clients of two Python libraries. Needs the group `field` of
pyproject.toml, and for the first three node 22 with npx, which gets the newest versions; without it
they are left out. `make field` runs this. Ends with status 1 if a check fails.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import click

from tests.field.fake_models import FakeModel

SERVER = Path(sys.executable).with_name("llm-kb")
TEXT = "Two people read each change before it lands."
FILES = {
    "llm-kb.toml": '[kb.topic.project]\nsubjects = "kb"\nproposals = true\n',
    "kb/review.md": f"# Review\n\n{TEXT}\n",
}
CALL = {"topic": "project", "subjects": ["review"]}

LEGACY, STATELESS = "2025-11-25", "2026-07-28"
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2"
CLAUDE_CODE = "@anthropic-ai/claude-code@2"

SCENARIOS: Mapping[tuple[str, str], frozenset[str]] = {
    (LEGACY, "server-initialize"): frozenset(),
    (LEGACY, "ping"): frozenset(),
    (LEGACY, "tools-list"): frozenset(),
    (STATELESS, "tools-list"): frozenset(),
    # There are no prompts and no resources.
    (STATELESS, "caching"): frozenset(
        {
            "sep-2549-prompts-list-caching-hints",
            "sep-2549-resources-list-caching-hints",
            "sep-2549-resources-templates-list-caching-hints",
        }
    ),
    (STATELESS, "server-stateless"): frozenset(
        {
            # What has no version in its `_meta`, and `initialize`, is of the versions before.
            "sep-2575-request-meta-invalid-missing-meta",
            "sep-2575-request-meta-invalid-missing-protocol-version",
            "sep-2575-http-server-meta-invalid-400",
            "sep-2575-http-server-method-not-found-404-initialize",
            # Headers are the bridge's.
            "sep-2575-http-server-header-mismatch-400",
            # It asks for a tool of the suite's own.
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
        }
    ),
}
"""The scenarios that need no tool of the suite's own, by version, with the checks that fail."""

_FAILED = re.compile(r"\[([\w-]+) *\] *(?:\x1b\[\d+m)*FAILURE")


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """Answer a message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status, kind, data = self.server.answer(self.path, body)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    """A server on loopback, whose answers a function makes of a path and a body."""

    def __init__(self, answer: Callable[[str, bytes], tuple[int, str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer


@contextmanager
def serve(answer: Callable[[str, bytes], tuple[int, str, bytes]]) -> Iterator[str]:
    """Yield the address at which a function answers."""
    with _Server(answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def bridge(directory: Path) -> Iterator[str]:
    """Yield the address over HTTP of a server over standard input and output."""
    process = subprocess.Popen(
        [SERVER, "mcp"], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    lock = threading.Lock()

    def answer(_path: str, body: bytes) -> tuple[int, str, bytes]:
        message = json.loads(body)
        with lock:
            source, sink = process.stdout, process.stdin
            assert source
            assert sink
            sink.write(json.dumps(message).encode() + b"\n")
            sink.flush()
            data = source.readline() if "id" in message else b""
        error = json.loads(data).get("error", {}).get("code") if data else None
        status = {None: 200 if data else 202, -32601: 404}.get(error, 400)
        return status, "application/json", data

    try:
        with serve(answer) as address:
            yield f"{address}/mcp"
    finally:
        process.terminate()


def run_node(*command: str, directory: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a package of npm, which is fetched if it is not there."""
    env = {**os.environ, "NO_COLOR": "1", **env}
    given = ["npx", "-y", *command]
    return subprocess.run(
        given, check=False, cwd=directory, env=env, capture_output=True, text=True, timeout=300
    )


def check_conformance(directory: Path) -> Iterator[str]:
    """Yield what the public suite finds besides what is known."""
    with bridge(directory) as url:
        for (version, scenario), known in SCENARIOS.items():
            options = ("--url", url, "--scenario", scenario, "--spec-version", version)
            result = run_node(CONFORMANCE, "server", *options, directory=directory)
            if "Passed: " not in result.stdout:
                yield f"{version} {scenario}: {(result.stderr or result.stdout).strip()[-300:]}"
            for name in sorted(known ^ set(_FAILED.findall(result.stdout))):
                state = "fails" if name not in known else "passes, but is listed as failing"
                yield f"{version} {scenario}: {name} {state}"


def check_inspector(directory: Path) -> Iterator[str]:
    """Yield what the Inspector complains of: the schemas of the tools, and an answer."""
    call = ("--tool-name", "learn", "--tool-arg", "topic=project", 'subjects=["review"]')
    for era in ("legacy", "modern"):
        target = (INSPECTOR, "--cli", str(SERVER), "mcp", "--protocol-era", era, "--method")
        listed = run_node(*target, "tools/list", "--strict", directory=directory)
        if listed.returncode or '"learn"' not in listed.stdout:
            yield f"{era}: tools/list: {listed.stderr.strip()[-300:]}"
        answered = run_node(*target, "tools/call", *call, directory=directory)
        if TEXT not in answered.stdout:
            yield f"{era}: tools/call: {(answered.stderr or answered.stdout).strip()[-300:]}"


def check_claude_code(directory: Path) -> Iterator[str]:
    """Yield where a model in Claude Code cannot propose a page that a person then keeps."""
    new = "# Moor\n\n    twice --north\n"
    page = {"topic": "project", "subject": "moor", "reason": "the user", "new": new}
    fake = FakeModel()
    fake.reset([("mcp__llm-kb__propose_subject", page)], "done")
    for command in (["trust", "-y"], ["connect", "claude", "--mcp", "-y"]):
        subprocess.run([SERVER, *command], check=True, cwd=directory, capture_output=True)
    allowed = ("--mcp-config", ".mcp.json", "--allowedTools", "mcp__llm-kb__propose_subject")
    with serve(fake.answer) as address:
        env = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        ended = run_node(CLAUDE_CODE, "-p", "Note it", *allowed, directory=directory, **env)
    found = re.search(r"\bproposed (\w+):", fake.seen[-1].text if fake.seen else "")
    if found is None:
        yield f"no answer: {(ended.stderr or ended.stdout).strip()[-300:]}"
        return
    keep = [SERVER, "review", "--yes", found[1]]
    kept = subprocess.run(keep, check=False, cwd=directory, capture_output=True, text=True)
    if kept.returncode or (directory / "kb" / "moor.md").read_text(encoding="utf-8") != new:
        yield f"not kept: {(kept.stderr or kept.stdout).strip()[-300:]}"


def check_sdk(directory: Path) -> Iterator[str]:
    """Yield the modes of the SDK's client in which it gets no answer."""
    # Imported here: each is slow, and needs the group.
    from mcp import StdioServerParameters  # noqa: PLC0415
    from mcp.client import Client  # noqa: PLC0415

    async def ask(mode: str) -> str:
        server = StdioServerParameters(command=str(SERVER), args=["mcp"], cwd=directory)
        async with Client(server, mode=mode) as client:
            await client.list_tools()
            return str(await client.call_tool("learn", CALL))

    for mode in ("auto", "legacy", STATELESS):
        if TEXT not in asyncio.run(ask(mode)):
            yield f"{mode}: no text"


def check_fastmcp(directory: Path) -> Iterator[str]:
    """Yield whether the client of fastmcp gets no answer."""
    from fastmcp import Client  # noqa: PLC0415 - as above
    from fastmcp.client.transports import StdioTransport  # noqa: PLC0415

    async def ask() -> str:
        transport = StdioTransport(command=str(SERVER), args=["mcp"], cwd=str(directory))
        async with Client(transport) as client:
            await client.list_tools()
            return str(await client.call_tool("learn", CALL))

    if TEXT not in asyncio.run(ask()):
        yield "no text"


class Check(NamedTuple):
    """A client, and whether it needs node."""

    run: Callable[[Path], Iterator[str]]
    needs_node: bool = False


CHECKS: Mapping[str, Check] = {
    "the conformance suite": Check(check_conformance, needs_node=True),
    "Inspector": Check(check_inspector, needs_node=True),
    "Claude Code": Check(check_claude_code, needs_node=True),
    "the SDK's client": Check(check_sdk),
    "fastmcp's client": Check(check_fastmcp),
}


def has_node() -> bool:
    """Tell whether there is a node that runs all of them."""
    if not shutil.which("npx"):
        return False
    found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    return int(found.stdout.lstrip("v").partition(".")[0]) >= 22


def main() -> int:
    """Run the checks; return the exit status."""
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        os.environ["HOME"] = place
        for name, text in FILES.items():
            path = Path(place, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, check in CHECKS.items():
            if check.needs_node and not has_node():
                click.echo(f"{name}: left out, since it needs node 22 with npx")
                continue
            problems = list(check.run(Path(place)))
            failed += len(problems)
            click.echo(f"{name}: {'as expected' if not problems else '; '.join(problems)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
