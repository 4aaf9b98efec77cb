"""`llm` in a process of its own, without the second that importing it takes.

A server imports `llm` once, then forks for each run. The fork gets the arguments, the
environment, the directory and the standard streams of its caller, as a program that is
executed would. What Python decides when it starts (such as the encoding of its streams)
is not tested this way.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import llm.cli

import llm_kb.api
from tests.isolation import isolated_environment, make_home

_NAME_BYTES = 512
"""The size of a request: the name of the file that has it, filled up with spaces."""


class Run:
    """A run that was started."""

    def __init__(self, status: int) -> None:
        self._status = status

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        with os.fdopen(self._status) as status:
            return int(status.read() or -1)


def start_llm(args: Sequence[str], *, stdin: int, stdout: int, stderr: int) -> Run:
    """Start `llm ARGS…` in the current directory, with these descriptors as its streams.

    A terminal as standard input becomes the controlling terminal of the run.
    """
    request = {"args": list(args), "cwd": str(Path.cwd()), "environment": dict(os.environ)}
    with tempfile.NamedTemporaryFile("w", dir=_directory(), delete=False) as file:
        json.dump(request, file)
    status, remote_status = os.pipe()
    name = file.name.encode().ljust(_NAME_BYTES)
    socket.send_fds(_server(), [name], [stdin, stdout, stderr, remote_status])
    os.close(remote_status)
    return Run(status)


@cache
def _directory() -> str:
    directory = tempfile.TemporaryDirectory(prefix="llm-kb-preloaded-")
    atexit.register(directory.cleanup)
    return directory.name


@cache
def _server() -> socket.socket:
    """Start the server of this test process; it ends when this process closes the socket."""
    ours, theirs = socket.socketpair()
    home = Path(_directory(), "home")
    make_home(home)
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, str(theirs.fileno())],
        cwd=Path(__file__).parent.parent,
        env=isolated_environment(home, os.environ),
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # first: what is registered last runs first
    return ours


def serve(requests: socket.socket) -> None:
    """Fork for every request until the process that sends them is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        name, descriptors, _, _ = socket.recv_fds(requests, _NAME_BYTES, 4)
        if not name:
            return
        if os.fork() == 0:
            requests.close()
            _run_and_report(Path(name.decode().rstrip()), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _run_and_report(request: Path, descriptors: Sequence[int]) -> NoReturn:
    """Run in a child, so that its end is reported however it comes about."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = descriptors
    child = os.fork()
    if child == 0:
        os.close(status)
        _run(json.loads(request.read_text()), streams)
    for stream in streams:
        os.close(stream)
    _, ended = os.waitpid(child, 0)
    os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def _run(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.isatty(0):
        os.close(os.open(os.ttyname(0), os.O_RDWR))  # makes it the controlling terminal
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = open(0, encoding="utf-8")
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1 if os.isatty(1) else -1)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.argv = ["llm", *request["args"]]
    code = 1
    try:
        llm.cli.cli(prog_name="llm")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    import llm_kb.api  # noqa: F401 - most runs need it

    serve(socket.socket(fileno=int(sys.argv[1])))
