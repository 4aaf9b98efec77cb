"""Reads the output of git while it runs, and stops it after enough output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from llm_kb.git.run import CHUNK, MAX_MESSAGE, GitError, PipeReader, start_git

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

_IDS_AT_ONCE = 50
# So many ids fit into the smallest pipe, of 4096 bytes. With more, git could wait for us to
# read its answers while we wait for git to read the ids.


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """An object of a repository: its full id, its type and its bytes."""

    id: str
    type: str
    data: bytes


def read_git(*args: str, cwd: Path, limit: int) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of git's output, and whether there was more.

    git is stopped at the limit, so its output may have any size.
    """
    with _Reader(*args, cwd=cwd) as reader:
        data = reader.stdout.read(limit + 1)
        if len(data) > limit:
            return data[:limit], True
        reader.check()
    return data, False


class _Reader:
    """A local git process, read while it runs and stopped at the end of the block."""

    def __init__(self, *args: str, cwd: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = cwd
        self._args = args
        self._process = start_git(*args, cwd=cwd, settings=settings or {})
        # Read all the time: a repository can cause thousands of warnings, and git stops when
        # the pipe is full.
        self._messages = PipeReader(self._process.stderr, -MAX_MESSAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # git has nothing to finish, and might wait for us to read its answer.
        self._process.kill()
        self._messages.join()
        with self._process:  # closes the pipes and waits for its end
            pass

    @property
    def stdout(self) -> IO[bytes]:
        """The output of git."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout

    def check(self) -> None:
        """Wait for git to end; raise GitError if it failed."""
        failure = self._end()
        if failure.code:
            raise failure

    def _end(self) -> GitError:
        """Wait for git to end, and return its result as an error."""
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        while self.stdout.read(CHUNK):
            pass  # git ends only after its output was read
        code = self._process.wait()
        self._messages.join()
        return GitError(self._args, code, self._messages.data.decode(errors="replace"))


class ObjectReader(_Reader):
    """Reads the objects of one repository through a single git process."""

    def __init__(self, cwd: Path) -> None:
        # A name that is both an id and a branch needs no warning: most names are ids.
        super().__init__(
            "cat-file", "--batch", cwd=cwd, settings={"core.warnAmbiguousRefs": "false"}
        )

    def read(self, name: str) -> GitObject | None:
        """Return the object of a name in any notation of git; None without one."""
        if "\n" in name:
            return None  # git would read it as two names
        self._ask([name])
        return self._receive()

    def read_ids(self, ids: Sequence[str]) -> Iterator[GitObject | None]:
        """Yield the object of every id, requested many at a time."""
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
            raise self._end() from None  # git's message says more than the broken pipe

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
