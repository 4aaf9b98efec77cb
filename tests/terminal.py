"""Run a command on a terminal of its own, as a person would."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

TIMEOUT = 60.0


def run_on_terminal(args: Sequence[str], typed: str) -> tuple[str, int]:
    """Run a command on a new terminal, type into it; return what it showed and its exit code.

    Skips the test where there are no pseudo-terminals.
    """
    pty = pytest.importorskip("pty")
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - the other process
        program = str(Path(sys.executable).with_name(args[0]))
        os.execv(program, [program, *args[1:]])
    os.write(terminal, typed.encode())
    shown = _read_until_closed(terminal)
    _, status = os.waitpid(child, 0)
    return shown.replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


def _read_until_closed(terminal: int) -> str:
    deadline = time.monotonic() + TIMEOUT
    shown = b""
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
    os.close(terminal)
    return shown.decode(errors="replace")
