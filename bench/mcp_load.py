"""An hour of a team at one HTTP server: 200 clients, each with a call a minute, in one go.

Each client keeps its connection and sends one call after another: it lists a topic, loads a
subject, searches, and connects again now and then. Printed are the calls in a second, the
errors, the longest wait, and the memory of the server with its workers after each sixth of
the calls, which must stay flat.

    python bench/mcp_load.py [CLIENTS [CALLS_OF_EACH]]
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

SERVER = [str(Path(sys.executable).parent / "llm-kb"), "mcp", "--http", "127.0.0.1:0"]
SAMPLE = Path(__file__).parent.parent / "sample_kb"

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "learn", "arguments": {"topic": "project"}}),
    ("tools/call", {"name": "learn", "arguments": {"topic": "project", "subjects": ["budgets"]}}),
    ("tools/call", {"name": "search", "arguments": {"question": "hostile data"}}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
    ("tools/list", {}),
]


class Load:
    """The clients, and what they saw."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.done = 0
        self.waits: list[float] = []
        self.errors: Counter[str] = Counter()

    async def use(self, calls: int) -> None:
        """Make calls as one client."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for number in range(calls):
            method, params = CALLS[number % len(CALLS)]
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            started = time.perf_counter()
            try:
                answer = await self._post(reader, writer, json.dumps(request).encode())
                if answer.get("id") != number or answer["result"].get("isError"):
                    self.errors[json.dumps(answer)[:80]] += 1
            except (OSError, EOFError, ValueError, KeyError) as error:
                self.errors[repr(error)] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.waits.append(time.perf_counter() - started)
            self.done += 1
        writer.close()

    async def _post(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> dict[str, Any]:
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", answer)
        text = await reader.readexactly(int(length[1]) if length else 0)
        if not answer.startswith("http/1.1 200"):
            raise ValueError(answer.partition("\r")[0])
        return dict(json.loads(text))


def find_memory(pid: int) -> str:
    """Return the memory of a process and of its children, in MB."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = []
    for each in (str(pid), *children):
        status = Path(f"/proc/{each}/status").read_text()
        rss = re.search(r"VmRSS:\s+(\d+)", status)
        found.append(int(rss[1]) // 1000 if rss else 0)
    return f"{found[0]} + {len(children)} x {sum(found[1:]) // max(1, len(children))} MB"


async def watch(load: Load, pid: int, total: int) -> None:
    """Print the memory after each sixth of the calls."""
    for part in range(1, 7):
        while load.done < total * part // 6:  # noqa: ASYNC110 - a poll costs the clients less
            await asyncio.sleep(0.1)
        print(f"{load.done:6,} calls: {find_memory(pid)}", flush=True)


async def run(port: int, pid: int, clients: int, calls: int) -> None:
    load = Load(port)
    started = time.perf_counter()
    await asyncio.gather(
        watch(load, pid, clients * calls), *(load.use(calls) for _ in range(clients))
    )
    seconds, waits = time.perf_counter() - started, sorted(load.waits)
    print(f"{len(waits):,} calls of {clients} clients in {seconds:.0f} s", end=", ")
    print(f"{len(waits) / seconds:.0f} a second; {load.errors.total()} errors")
    print(f"waits: median {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s")
    for error, number in load.errors.most_common(5):
        print(f"{number} x {error}")


def main() -> None:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "LLM_USER_PATH": directory}
        with subprocess.Popen(
            SERVER, cwd=SAMPLE, env=environment, stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stderr
            port = re.search(r":(\d+)/mcp", server.stderr.readline())
            assert port
            asyncio.run(run(int(port[1]), server.pid, clients, calls))
            started = time.perf_counter()
            server.terminate()
            print(f"ended with {server.wait()} {time.perf_counter() - started:.2f} s after SIGTERM")


if __name__ == "__main__":
    main()
