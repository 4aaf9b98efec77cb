"""Reads the objects of a repository through one git process."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.errors import KbError
from llm_kb.git.run import (
    MAX_MESSAGE,
    GitError,
    PipeReader,
    git_command,
    local_environment,
    start_process,
)

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

MAX_OBJECT = 4_000_000
"""The most bytes of an object that is read."""

_COMMAND = ("cat-file", "--batch")
# A name that is both an id and a branch needs no warning: most names are ids.
_SETTINGS = (("core.warnAmbiguousRefs", "false"),)


class ObjectTooLargeError(KbError):
    """An object with more bytes than are read."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(f"{name} has {size:,} bytes; at most {MAX_OBJECT:,} are read")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """An object of a repository: its full id, its type and its bytes."""

    id: str
    type: str
    data: bytes


class ObjectReader:
    """Reads objects until the end of the block, where its git process is killed."""

    def __init__(self, cwd: Path) -> None:
        self.directory = cwd
        self._stack = ExitStack()
        command = git_command(_COMMAND, _SETTINGS)
        self._process = self._stack.enter_context(
            start_process(command, _COMMAND, cwd, local_environment())
        )
        # A repository can cause thousands of warnings, and git stops when the pipe is full.
        self._messages = PipeReader(self._process.stderr, -MAX_MESSAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # git has nothing to finish, and might wait for us to read its answer.
        self._process.kill()
        self._messages.join()
        self._stack.close()

    def read(self, name: str) -> GitObject | None:
        """Return the object of a name in any notation of git; None without one.

        Raises ObjectTooLargeError, after which nothing more can be read.
        """
        if "\n" in name:
            return None  # git would read it as two names
        self._ask(name)
        return self._receive(name)

    def _ask(self, name: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            stdin.write(f"{name}\n".encode())
            stdin.flush()
        except BrokenPipeError:
            raise self._end() from None  # git's message says more than the broken pipe

    def _receive(self, name: str) -> GitObject | None:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - a pipe was asked for
        header = stdout.readline()
        if not header:
            raise self._end()
        # "<id> <type> <size>", or the name we gave and "missing" or "ambiguous"
        words = header.split()
        if len(words) != 3 or words[2] == b"missing" or not words[2].isdigit():
            return None
        size = int(words[2])
        if size > MAX_OBJECT:
            raise ObjectTooLargeError(name, size)
        data = stdout.read(size)
        stdout.read(1)  # the line's end
        return GitObject(id=words[0].decode(), type=words[1].decode(), data=data)

    def _end(self) -> GitError:
        """Wait for git to end, and return its failure."""
        with suppress(BrokenPipeError):
            if self._process.stdin:
                self._process.stdin.close()
        code = self._process.wait()
        self._messages.join()
        return GitError(_COMMAND, code, self._messages.data.decode(errors="replace"))
