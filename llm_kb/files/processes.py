"""Runs programs without a shell, with bounded output; all that they started ends with us."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

_CHUNK = 65_536
_PAUSE = 0.2
"""Seconds between two looks at the time."""


def absolute_path() -> str:
    """Return PATH without its relative entries: a clone may contain a `git`, an `ssh`, an `rm`."""
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))


class EndedError(Exception):
    """A program that was ended; `data` are the first bytes of its output."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        super().__init__(f"it was ended after {len(data):,} bytes of output")


class TimedOutError(EndedError):
    """A program that was ended after its time."""


class TooMuchOutputError(EndedError):
    """A program that was ended after its first bytes of output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What is left of a program: its exit code, its output, and the end of its messages."""

    code: int
    output: bytes
    messages: bytes


def run_program(  # noqa: PLR0913 - the arguments of a process
    command: Sequence[str],
    *,
    max_output: int,
    max_messages: int = 4096,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    watch: Callable[[], None] = lambda: None,
    guarded: bool = True,
) -> Ended:
    """Run a program to its end; it is killed if that takes too long or `watch` raises.

    `watch` is called a few times a second. Of the messages the last ones are kept, which hold the
    reason. With `guarded` the processes that it started are killed with it, also when this
    process is. Raises TimedOutError, TooMuchOutputError, and OSError if it does not start.
    """
    with _start(command, stdin, cwd, env, guarded) as process:
        deadline = time.monotonic() + timeout if timeout is not None else inf
        output, messages = bytearray(), bytearray()
        watched = 0.0
        for now in _read(process, output, messages, deadline):
            del messages[:-max_messages]
            if len(output) > max_output:
                raise TooMuchOutputError(bytes(output[:max_output]))
            if now > watched + _PAUSE:
                watched = now
                watch()
        try:
            process.wait(None if timeout is None else max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimedOutError(bytes(output)) from error
        return Ended(code=process.returncode, output=bytes(output), messages=bytes(messages))


def _read(
    process: subprocess.Popen[bytes], output: bytearray, messages: bytearray, deadline: float
) -> Iterator[float]:
    """Read both pipes of a process to their ends, and yield the time between two chunks.

    Both are read all the time: a program stops when one is full.
    """
    assert process.stdout and process.stderr  # noqa: S101, PT018 - pipes were asked for
    with selectors.DefaultSelector() as pipes:
        pipes.register(process.stdout, selectors.EVENT_READ, output)
        pipes.register(process.stderr, selectors.EVENT_READ, messages)
        while pipes.get_map() and (now := time.monotonic()) <= deadline:
            for pipe, _ in pipes.select(_PAUSE):
                if chunk := os.read(pipe.fd, _CHUNK):
                    pipe.data.extend(chunk)
                else:
                    pipes.unregister(pipe.fileobj)
            yield now
        if pipes.get_map():  # the process may have ended just now, but its output was not read
            raise TimedOutError(bytes(output))


@contextmanager
def _start(
    command: Sequence[str],
    stdin: bytes,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    guarded: bool,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with two pipes to read; it has ended after the block.

    Helpers such as git-remote-https outlive git itself otherwise, and go on fetching.
    """
    with tempfile.TemporaryFile() as given:
        # A file, since a command need not read all of it.
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            command,
            cwd=cwd,
            env=env,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=guarded,
        )
    guard = start_guard('kill -s KILL -- "-$0"', str(process.pid)) if guarded else None
    try:
        yield process
        if guard:
            guard.kill()
    except BaseException:
        process.kill()
        raise
    finally:
        if guard:
            guard.communicate()  # unless it was killed, it kills the others now
        with suppress(OSError), process:  # closes the pipes and waits for its end
            pass


def start_guard(script: str, argument: str) -> subprocess.Popen[bytes]:
    """Start a shell that waits for the end of this process, or of its input, and runs a script.

    The script has the argument in `$0`.
    """
    return subprocess.Popen(  # noqa: S603 - a list; the script is ours
        ["/bin/sh", "-c", f"read -r _; {script}", argument],
        stdin=subprocess.PIPE,  # only this process has the other end
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PATH": absolute_path()},
    )
