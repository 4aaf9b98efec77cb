"""The one door to git: no shell, a scrubbed environment, bytes in and bytes out."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from llm_kb.errors import KbError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing itself from Python 3.11 on

_KEPT = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_HTTP_PROXY_AUTHMETHOD",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_NO_VERIFY",
    }
)
_KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
"""Who the user is, how a server is reached, how git is set up. Never which repository:
git exports GIT_DIR and its kin to the hooks it runs, and they would lead every command
here to the repository of the hook, wherever it works. The directory decides."""


class GitError(KbError):
    """A git command that failed, with what git said."""

    def __init__(self, command: Sequence[str], code: int, stderr: str) -> None:
        self.command = tuple(command)
        self.code = code
        self.stderr = stderr
        said = stderr.strip() or f"exit code {code}"
        super().__init__(f"git {command[0] if command else ''} failed: {said}")


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment git runs in: no inherited repository, no prompts."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    kept["GIT_TERMINAL_PROMPT"] = "0"
    kept["LC_ALL"] = "C.UTF-8"
    return {**kept, **(extra or {})}


def run_git(
    *args: str,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> bytes:
    """Run git and return its standard output; raise GitError when it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            ["git", *args],  # noqa: S607 - the user's git
            cwd=cwd,
            input=stdin if stdin is not None else b"",
            env=git_environment(env),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise _not_started(args, error) from error
    except subprocess.TimeoutExpired as error:
        raise GitError(args, 124, f"timed out after {timeout} s") from error
    if done.returncode:
        raise GitError(args, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


def run_remote(  # noqa: PLR0913 - what a process takes
    program: Literal["git", "gh"],
    *args: str,
    cwd: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float,
    watch: Callable[[], None] = lambda: None,
) -> bytes:
    """Run git or GitHub's gh where a server is asked, and return what it prints.

    The whole family of processes ends at the timeout, at an interruption, and when
    `watch`, called a few times a second, raises: helpers such as git-remote-https
    outlive git itself otherwise, and keep its output open. Raises GitError.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            [program, *args],
            cwd=cwd,
            env=git_environment(
                {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"} | dict(env or {})
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(args, 127, f"{program} cannot be run: {error.strerror}") from error
    deadline = time.monotonic() + timeout
    unsent: bytes | None = stdin
    try:
        while True:
            try:
                out, said = process.communicate(unsent, timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                unsent = None  # `communicate` goes on with what it was given first
                if time.monotonic() > deadline:
                    raise GitError(args, 124, f"timed out after {timeout:g} s") from None
                watch()
    except BaseException:
        _kill_family(process)
        raise
    if process.returncode:
        raise GitError(args, process.returncode, said.decode(errors="replace"))
    return out


def _kill_family(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.communicate()


def start_git(
    *args: str, cwd: Path, settings: Sequence[str], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start git with a pipe to write to and one to read from; the caller sees to its end.

    The `settings` are `key=value`. Raises GitError, which names the command without them.
    """
    options = [word for setting in settings for word in ("-c", setting)]
    try:
        return subprocess.Popen(  # noqa: S603 - a list, no shell
            ["git", *options, *args],  # noqa: S607 - the user's git
            cwd=cwd,
            env=git_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    except OSError as error:
        raise _not_started(args, error) from error


def _not_started(args: Sequence[str], error: OSError) -> GitError:
    if isinstance(error, FileNotFoundError) and error.filename == "git":
        return GitError(args, 127, "git is not installed or not on PATH")
    return GitError(args, 126, f"{error.filename}: {error.strerror}")


_MAX_SAID = 4096
"""How much of what git says of its failure is passed on."""

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
