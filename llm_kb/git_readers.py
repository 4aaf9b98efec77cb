"""What git prints, read while it runs: to a limit, object by object, field by field."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from llm_kb.git import GitError, start_git

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

_MAX_SAID = 4096
"""How much of what git says of its failure is passed on."""

_IDS_AT_ONCE = 50
# They fit into a pipe of 4096 bytes, the smallest there is. With more, git could wait for
# its answers to be read while we wait for it to read on.

_CHUNK = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """An object of a repository: its full id, its type and its bytes."""

    id: str
    type: str
    data: bytes


def read_git(*args: str, cwd: Path, limit: int) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of what git prints, and whether there was more.

    git is stopped as soon as the limit is reached, so its output may be of any size.
    """
    with _Reader(*args, cwd=cwd) as reader:
        data = reader.stdout.read(limit + 1)
        if len(data) > limit:
            return data[:limit], True
        reader.check()
    return data, False


class _Reader:
    """A git that is read from while it runs, and stopped when we are done.

    What it says besides goes into a file. Nobody reads it before the end, and a pipe
    would stop git once it is full: anyone can publish what git warns of a thousand times.
    """

    def __init__(self, *args: str, cwd: Path, settings: Sequence[str] = ()) -> None:
        self.directory = cwd
        self._args = args
        self._said = _open_said(args)
        try:
            self._process = start_git(*args, cwd=cwd, settings=settings, stderr=self._said)
        except GitError:
            self._said.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._said, self._process:  # closes the pipes and waits for its end
            # It has nothing to finish, and might wait for the reader of half an answer.
            self._process.kill()

    @property
    def stdout(self) -> IO[bytes]:
        """What git prints."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout

    def check(self) -> None:
        """Wait for git to end; raise GitError when it failed."""
        failure = self._end()
        if failure.code:
            raise failure

    def _end(self) -> GitError:
        self._process.communicate()
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _MAX_SAID))  # why it gave up is said last
        said = self._said.read().decode(errors="replace")
        return GitError(self._args, self._process.returncode, said)


def _open_said(args: Sequence[str]) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError as error:
        raise GitError(args, 126, f"no temporary file can be made: {error.strerror}") from error


class ObjectReader(_Reader):
    """Reads the objects of one repository through a single git process."""

    def __init__(self, cwd: Path) -> None:
        # A name that is both an id and a branch needs no warning: most are read for us.
        super().__init__("cat-file", "--batch", cwd=cwd, settings=["core.warnAmbiguousRefs=false"])

    def read(self, name: str) -> GitObject | None:
        """Return the object of this name, in any notation of git's; None without one."""
        if "\n" in name:
            return None  # no name, and it would pass for two
        self._ask([name])
        return self._receive()

    def read_ids(self, ids: Sequence[str]) -> Iterator[GitObject | None]:
        """Yield the object of every id, asking for many before the first has come."""
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[start : start + _IDS_AT_ONCE]
            self._ask(some)
            yield from [self._receive() for _ in some]

    def _ask(self, names: Sequence[str]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            stdin.write("".join(f"{name}\n" for name in names).encode())
            stdin.flush()
        except BrokenPipeError:
            raise self._end() from None  # what git printed says more than the pipe

    def _receive(self) -> GitObject | None:
        stdout = self.stdout
        header = stdout.readline()
        if not header:
            raise self._end()
        # "<id> <type> <size>", or the name we gave and "missing" or "ambiguous"
        words = header.split()
        if len(words) != 3 or words[2] == b"missing" or not words[2].isdigit():
            return None
        data = stdout.read(int(words[2]))
        stdout.read(1)  # the line's end
        return GitObject(id=words[0].decode(), type=words[1].decode(), data=data)


class FieldReader(_Reader):
    """Reads what git prints, `-z`, while git goes on; it is stopped when we are done.

    git is ahead by what a pipe holds, so a history of any length costs what is read of it.
    """

    def read_fields(self) -> Iterator[bytes]:
        """Yield what stands before each NUL; raise GitError when git failed."""
        stdout = self.stdout.fileno()
        begun = b""
        while chunk := os.read(stdout, _CHUNK):
            *fields, begun = (begun + chunk).split(b"\0")
            yield from fields
        self.check()
