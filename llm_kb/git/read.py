"""Read what git prints while it runs, and stop it when enough was read."""

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
# They fit into a pipe of 4096 bytes, the smallest there is. With more, git could wait for
# its answers to be read while we wait for it to read on.


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
    """A local git that is read from while it runs, and stopped when we are done."""

    def __init__(self, *args: str, cwd: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = cwd
        self._args = args
        self._process = start_git(*args, cwd=cwd, settings=settings or {})
        # Read all the while: anyone can publish what git warns of a thousand times, and a pipe
        # that is full would stop it.
        self._messages = PipeReader(self._process.stderr, -MAX_MESSAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # It has nothing to finish, and might wait for the reader of half an answer.
        self._process.kill()
        self._messages.join()
        with self._process:  # closes the pipes and waits for its end
            pass

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
        """Wait for git to end, and return how it did."""
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        while self.stdout.read(CHUNK):
            pass  # it cannot end before somebody has read what it prints
        code = self._process.wait()
        self._messages.join()
        return GitError(self._args, code, self._messages.data.decode(errors="replace"))


class ObjectReader(_Reader):
    """Reads the objects of one repository through a single git process."""

    def __init__(self, cwd: Path) -> None:
        # A name that is both an id and a branch needs no warning: most are read for us.
        super().__init__(
            "cat-file", "--batch", cwd=cwd, settings={"core.warnAmbiguousRefs": "false"}
        )

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
