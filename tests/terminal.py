"""Runs `llm` on a terminal of its own, as a person would."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Callable, Sequence

import pytest

from tests.preloaded import LLM, Process

TIMEOUT = 60.0

ASKS = "[y/N]: "
"""How every question of ours ends."""

_PIPE = "import os; ends = os.pipe(); os.write(ends[1], {}); os.close(ends[1]); os.dup2(ends[0], 0)"


def run_on_terminal(
    args: Sequence[str],
    typed: str = "",
    *,
    question: str = ASKS,
    ahead: str = "",
    piped: str | None = None,
    then: str | Sequence[str] = "",
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[str, int]:
    """Run `llm ARGS…` on a new terminal; return what it showed and its exit code.

    `typed` is typed once it has asked the question, each of `then` once it has asked again, and
    `ahead` before it starts; `meanwhile` is called before `typed`. `piped` comes through a pipe as
    standard input. Skips the test where there are no pseudo-terminals.
    """
    pty = pytest.importorskip("pty")
    fcntl = pytest.importorskip("fcntl")
    termios = pytest.importorskip("termios")
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("4H", 40, 500, 0, 0))
    os.write(terminal, ahead.encode())
    program = LLM if piped is None else f"{_PIPE.format(piped.encode())}; {LLM}"
    run = Process(args, program=program, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    typed_each = [typed, *([then] if isinstance(then, str) else then)]
    keys = [each.encode() for each in typed_each if each]
    shown = _read_until_closed(terminal, question.encode(), keys, meanwhile)
    return shown.replace("\r\n", "\n"), run.wait()


def _read_until_closed(
    terminal: int, question: bytes, typed: list[bytes], meanwhile: Callable[[], object]
) -> str:
    deadline = time.monotonic() + TIMEOUT
    shown = b""
    asked = 1
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not data:
            break
        shown += data
        if typed and shown.count(question) == asked:
            # A Ctrl-C between Python's prompt and its wait for input would be seen at the next key.
            time.sleep(0.1)
            if asked == 1:
                meanwhile()
            os.write(terminal, typed.pop(0))
            asked += 1
    os.close(terminal)
    return shown.decode(errors="replace")
