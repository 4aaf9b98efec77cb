"""Processes that answer the requests of an HTTP server, one at a time each.

A request that takes too long, or brings its process down, costs no other request anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict

from llm_kb.mcp import stdio
from llm_kb.mcp.messages import (
    INTERNAL_ERROR,
    Message,
    ProtocolError,
    render_error,
    render_message,
)
from llm_kb.mcp.server import Served, Server
from llm_kb.mcp.tools import find_deadline

MOST = 8
"""Maximum number of processes; they are started when they are needed."""

MOST_ASKED = 400
"""Maximum number of requests that are answered or wait; further ones are refused."""

GRACE_SECONDS = 10
"""Seconds beyond its deadline after which a process that does not answer is killed."""

LARGEST_ANSWER = 64_000_000
"""Maximum number of bytes of an answer."""

# The current directory, which may be anybody's, must not be on the path of modules.
_PROGRAM = """
import sys
sys.path = [path for path in sys.path if path]
from llm_kb.mcp.workers import work
work()
"""


class BusyError(Exception):
    """Too many requests wait for a process."""


class Workers:
    """The processes of one knowledge base."""

    def __init__(self, served: Served) -> None:
        self._served = json.dumps(asdict(served))
        self._idle: list[asyncio.subprocess.Process] = []
        self._running: set[asyncio.subprocess.Process] = set()
        self._asked = 0
        self._room = asyncio.Semaphore(MOST)

    async def ask(self, request: Message) -> bytes:
        """Return the line that answers a request. Raises BusyError."""
        if self._asked >= MOST_ASKED:
            raise BusyError
        self._asked += 1
        try:
            async with self._room:
                return await self._ask_one(request)
        finally:
            self._asked -= 1

    async def _ask_one(self, request: Message) -> bytes:
        alive = [worker for worker in self._idle if worker.returncode is None]
        worker = alive.pop() if alive else await self._start()
        self._idle = alive
        self._running.add(worker)
        is_well = False
        try:
            answer = await _converse(worker, request)
            is_well = True
            return answer
        except (asyncio.TimeoutError, OSError, EOFError, ValueError):
            error = ProtocolError(INTERNAL_ERROR, "the call was ended: it did not answer in time")
            return render_error(error, request["id"])
        finally:
            self._running.discard(worker)
            if is_well:
                self._idle.append(worker)
            else:
                _kill(worker)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", _PROGRAM, self._served),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LARGEST_ANSWER,
            start_new_session=True,  # Ctrl-C is for the server, which ends them
        )

    async def close(self, seconds: float) -> None:
        """End the processes; those that answer a request get some seconds."""
        for _ in range(10):
            if self._running:
                await asyncio.sleep(seconds / 10)
        workers = (*self._idle, *self._running)
        for worker in workers:
            _kill(worker)
        await asyncio.wait_for(asyncio.gather(*(each.wait() for each in workers)), seconds)


async def _converse(worker: asyncio.subprocess.Process, request: Message) -> bytes:
    """Return the answer of a process, which must show signs of life until then."""
    assert worker.stdin is not None and worker.stdout is not None  # noqa: S101, PT018 - both are pipes
    params = request.get("params")
    if isinstance(params, dict):  # progress is a sign of life
        request = {**request, "params": {**params, "_meta": {"progressToken": 0}}}
    worker.stdin.write(render_message(request))
    await worker.stdin.drain()
    while True:
        reading = worker.stdout.readline()
        line = await asyncio.wait_for(reading, find_deadline(request) + GRACE_SECONDS)
        if not line:
            raise EOFError
        if not _is_progress(line):
            return line


def _is_progress(line: bytes) -> bool:
    return len(line) < 2_000 and "method" in json.loads(line)


def _kill(worker: asyncio.subprocess.Process) -> None:
    """End a process; `Process.kill` may collect it first, of which asyncio would warn."""
    if worker.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)


def work() -> None:
    """Serve one client, the server that started this process."""
    stdio.run(Server(Served(**json.loads(sys.argv[1]))))
