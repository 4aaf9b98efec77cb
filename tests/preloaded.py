"""Programs in processes of their own, without the second that importing `llm` takes.

A server imports `llm` once, then forks for each run. The fork gets the arguments, the
environment, the directory and the standard streams of its caller, as a program that is
executed would. What Python decides when it starts (such as the encoding of its streams)
is not tested this way.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from tests.isolation import isolated_environment, make_home

LLM = "import llm.cli; llm.cli.cli(prog_name='llm')"
LLM_KB = "from llm_kb.plugin import main; main()"

IMPORTED = (
    "llm.cli",
    "llm_kb.knowledge_base.api",
    "llm_kb.references.commands.fetch",
    "llm_kb.references.commands.fetch",
    "llm_kb.capture.tools",
    "llm_kb.references.fetch.create",
    "llm_kb.search.index.index",
    "llm_kb.host.mcp.server",
)
"""What the server imports before it forks."""

_NAME_BYTES = 512
"""The size of a request: the name of the file that has it, filled up with spaces."""


class Process:
    """A process that runs a program, `llm` unless another is given as source text.

    Its streams are descriptors, `PIPE` or `DEVNULL` as those of `subprocess.Popen`, whose
    methods it has; a terminal as standard input becomes its controlling terminal. It leads
    a process group of its own, and heeds the signals that what started the tests may ignore.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        program: str = LLM,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = True,
    ) -> None:
        request = {
            "program": program,
            "args": list(arguments),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
        }
        with tempfile.NamedTemporaryFile("w", dir=_directory(), delete=False) as file:
            json.dump(request, file)
        self.returncode: int | None = None
        with ExitStack() as theirs:

            def connect(stream: int, mode: str) -> tuple[Any, int]:
                """Return our end of a stream, if there is one, and that of the process."""
                if stream not in {subprocess.PIPE, subprocess.DEVNULL}:
                    return None, stream
                if stream == subprocess.DEVNULL:
                    ours, other = None, os.open(os.devnull, os.O_RDWR)
                else:
                    ends = os.pipe()
                    mine, other = ends if mode == "r" else reversed(ends)
                    kind = mode if text else f"{mode}b"
                    ours = os.fdopen(mine, kind, encoding="utf-8" if text else None)
                theirs.callback(os.close, other)
                return ours, other

            self.stdin, source = connect(stdin, "w")
            self.stdout, output = connect(stdout, "r")
            self.stderr, errors = connect(stderr, "r")
            self._status, status = connect(subprocess.PIPE, "r")
            name = file.name.encode().ljust(_NAME_BYTES)
            socket.send_fds(_server(), [name], [source, output, errors, status])
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise TimeoutError
            with self._status:
                self.returncode = int(self._status.read() or -1)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it was seen to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: str = "", timeout: float | None = None) -> tuple[Any, Any]:
        """Send the input, wait for the end, close the pipes and return what it printed."""
        if self.stdin and not self.stdin.closed:
            with self.stdin:
                self.stdin.write(input)
        read = []
        for stream in (self.stdout, self.stderr):
            if stream:
                with stream:
                    read.append(stream.read())
            else:
                read.append(None)
        self.wait(timeout)
        return read[0], read[1]


@cache
def _directory() -> str:
    directory, owner = tempfile.mkdtemp(prefix="llm-kb-preloaded-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not in a fork of it
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


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
    os.write(status, f"{child}\n".encode())
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
    for ended_by in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(ended_by, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = open(0, encoding="utf-8")
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1 if os.isatty(1) else -1)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.argv = ["llm", *request["args"]]
    code = 1
    try:
        exec(request["program"], {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        sys.excepthook(*sys.exc_info())
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 120
    finally:
        os._exit(code)


if __name__ == "__main__":
    for module in IMPORTED:
        import_module(module)
    gc.freeze()  # a child that collects garbage would copy all memory
    serve(socket.socket(fileno=int(sys.argv[1])))
