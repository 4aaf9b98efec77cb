"""How long an MCP client waits: `initialize` and `tools/list`, compared with a bare Python.

The bare one imports asyncio, json and click, as a small server would. Both run in sample_kb,
in processes of their own that take turns, and are compared pair by pair. Printed are the
medians of the ratios (at most 4): of the time that passes, and of processor time.

    python bench/mcp_start.py [PAIRS]
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BARE = [sys.executable, "-c", "import asyncio, json, click"]
SERVER = [str(Path(sys.executable).parent / "llm-kb"), "mcp"]
SAMPLE = Path(__file__).parent.parent / "sample_kb"

CLIENT = {"capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
REQUESTS = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", **CLIENT}},
    {"id": 2, "method": "tools/list"},
]


def measure(
    command: Sequence[str], requests: Sequence[dict[str, object]], environment: dict[str, str]
) -> tuple[float, float]:
    """Return the seconds until the last answer, or the end, and those of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=SAMPLE, env=environment, stdin=pipe, stdout=pipe) as server:
        assert server.stdin
        assert server.stdout
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            server.stdin.flush()
            assert b"result" in server.stdout.readline()
        if not requests:
            server.wait()
        wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "LLM_USER_PATH": directory}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        measure(SERVER, REQUESTS, environment)  # writes the bytecode, which an installation has
        ratios, seconds = [], []
        for _ in range(pairs):
            bare = measure(BARE, [], environment)
            server = measure(SERVER, REQUESTS, environment)
            ratios.append([ours / theirs for ours, theirs in zip(server, bare, strict=True)])
            seconds.append(server[0])
    wall, processor = map(statistics.median, zip(*ratios, strict=True))
    print(f"greeted and told the tools after {statistics.median(seconds):.2f} s")
    print(f"{wall:.2f} of the time of a bare Python, {processor:.2f} of its processor time")


if __name__ == "__main__":
    main()
