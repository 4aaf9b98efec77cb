"""Runs git without a shell, in a cleaned environment and with bounded output.

A repository may be a stranger's: no command starts a program that the repository's
configuration names, and without `server` none fetches anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import IO

from llm_kb.errors import KbError

MAX_MESSAGE = 4096
"""The most bytes of git's messages that are kept, the last ones, which hold the reason."""

MAX_OUTPUT = 100_000_000
"""The most bytes of output of a command."""

TIMED_OUT = 124
OUTPUT_TOO_LARGE = 125
NOT_STARTED = 126
NOT_FOUND = 127
"""The codes of a GitError for a command that did not run to its end."""

SPARE_MEMORY = 2_000_000_000
"""Bytes of memory that a process with `max_file` may have besides two such files."""

_CHUNK = 65_536

_KEPT = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
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
        "GIT_NO_LAZY_FETCH",
        "GIT_PROTOCOL_FROM_USER",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_NO_VERIFY",
    }
)
_KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
"""Variables about the user, the access to servers and the setup of git, but not about the
repository: git sets GIT_DIR and others for its hooks, and with them every command here would
run in the repository of the hook. The directory decides instead."""

NO_PROGRAMS = (
    # Asked for the refs of alternates, at each end of a fetch or push. `true` lists none.
    ("core.alternateRefsCommand", "true"),
    ("core.fsmonitor", "false"),
    # Hooks are for commits and branches; only notes are written here.
    ("core.hooksPath", os.devnull),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
)
"""Settings that keep git from starting programs that a repository names."""

_SETTINGS = (
    *NO_PROGRAMS,
    # A clone can carry a bare repository among its files, with a configuration of its own.
    ("safe.bareRepository", "explicit"),
)

Settings = Iterable[tuple[str, str]]


class GitError(KbError):
    """A git command that failed, with git's own message."""

    def __init__(self, command: Sequence[str], code: int, stderr: str) -> None:
        self.command = tuple(command)
        self.code = code
        self.stderr = stderr
        reason = stderr.strip() or f"exit code {code}"
        super().__init__(f"git {command[0] if command else ''} failed: {reason}")


def git_environment() -> dict[str, str]:
    """Return the environment of git, without an inherited repository and without prompts."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def local_environment() -> dict[str, str]:
    """Return the environment of commands that fetch nothing.

    Missing objects of a partial clone are fetched only if the user sets GIT_NO_LAZY_FETCH=0.
    """
    environment = git_environment()
    if environment.get("GIT_NO_LAZY_FETCH", "1").lower() in {"0", "false", "no", "off"}:
        return environment
    # git before 2.45 is stopped by the list of protocols.
    return environment | {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH.

    Relative entries are ignored: a clone may contain a `git`.
    """
    for directory in filter(os.path.isabs, os.get_exec_path()):
        path = Path(directory, name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def git_command(args: Sequence[str], settings: Settings = ()) -> list[str]:
    """Return the command that starts git with these settings and the common ones."""
    program = find_program("git")
    if program is None:
        raise GitError(args, NOT_FOUND, "git is not installed or not on PATH")
    options = (("-c", f"{key}={value}") for key, value in (*_SETTINGS, *settings))
    return [program, *(word for option in options for word in option), *args]


def run_git(  # noqa: PLR0913 - the arguments of a process
    *args: str,
    cwd: Path | None = None,
    stdin: bytes = b"",
    server: bool = False,
    terminal: bool = False,
    env: Mapping[str, str] | None = None,
    settings: Settings = (),
    timeout: float | None = None,
    watch: Callable[[], None] = lambda: None,
    max_output: int = MAX_OUTPUT,
    max_file: int | None = None,
) -> bytes:
    """Run git and return its output; raise GitError if it fails.

    Only with `server` it may contact one, without passwords of `.netrc`, and only with
    `terminal` ask for a passphrase there. It is ended after `timeout` seconds, when
    `watch`, called a few times a second, raises, and after `max_output` bytes, then with
    an OutputTooLargeError. With a `timeout` and no `terminal` all processes that it
    started end with it. No file it writes is larger than `max_file` bytes, and its memory is
    bounded likewise.
    """
    command = _limited(git_command(args, settings), max_file)
    is_guarded = timeout is not None and not terminal
    with _hide_netrc() if server else nullcontext(local_environment()) as environment:
        environment |= env or {}
        with start_process(command, args, cwd, environment, is_guarded=is_guarded) as process:
            return _communicate(process, args, stdin, timeout, watch, max_output)


@contextmanager
def _hide_netrc() -> Iterator[dict[str, str]]:
    """Make a home directory without `.netrc`, and yield git's environment with it.

    curl sends what `.netrc` says by `default` to any server that asks. Everything else is linked:
    the user's credential helpers and configuration stay.
    """
    home = Path.home()
    with tempfile.TemporaryDirectory(prefix="llm-kb-") as place:
        with suppress(OSError):
            for name in os.listdir(home):  # noqa: PTH208 - names are all we need
                if name not in {".netrc", "_netrc"}:
                    Path(place, name).symlink_to(home / name)
        yield git_environment() | {"HOME": place, "NETRC": os.devnull}


def run_gh(*args: str, timeout: float) -> bytes:
    """Run GitHub's gh and return its output; raise GitError if it fails."""
    program = find_program("gh")
    if program is None:
        raise GitError(args, NOT_FOUND, "gh is not installed or not on PATH")
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    environment = git_environment() | quiet
    with start_process([program, *args], args, None, environment, is_guarded=True) as process:
        return _communicate(process, args, b"", timeout, lambda: None, MAX_OUTPUT)


def read_git(*args: str, cwd: Path, limit: int) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of git's output, and whether there was more."""
    try:
        return run_git(*args, cwd=cwd, max_output=limit), False
    except OutputTooLargeError as error:
        return error.data, True


class OutputTooLargeError(GitError):
    """A git command that was ended after its first bytes of output."""

    def __init__(self, command: Sequence[str], data: bytes) -> None:
        self.data = data
        super().__init__(command, OUTPUT_TOO_LARGE, f"it printed over {len(data):,} bytes")


def _communicate(  # noqa: PLR0913, PLR0917 - the arguments of a process
    process: subprocess.Popen[bytes],
    args: Sequence[str],
    stdin: bytes,
    timeout: float | None,
    watch: Callable[[], None],
    max_output: int,
) -> bytes:
    """Write to a process, return its output, and raise GitError if it fails."""
    deadline = None if timeout is None else time.monotonic() + timeout
    # Both pipes are read all the time: git stops when one is full.
    out = PipeReader(process.stdout, max_output)
    messages = PipeReader(process.stderr, -MAX_MESSAGE)
    Thread(target=_feed, args=(process.stdin, stdin), daemon=True).start()
    while not _has_ended(process, out, messages):
        if deadline is not None and time.monotonic() > deadline:
            raise GitError(args, TIMED_OUT, f"timed out after {timeout:g} s")
        watch()
    if out.is_over:
        raise OutputTooLargeError(args, bytes(out.data[:max_output]))
    if process.returncode:
        raise GitError(args, process.returncode, messages.data.decode(errors="replace"))
    return bytes(out.data)


def _has_ended(process: subprocess.Popen[bytes], out: PipeReader, messages: PipeReader) -> bool:
    """Wait a moment; tell whether a process and its output have ended, or were cut."""
    out.join(0.2)
    if out.is_over:
        return True
    if not out.is_alive():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            messages.join(0.2)
    return process.returncode is not None and not out.is_alive() and not messages.is_alive()


class PipeReader(Thread):
    """Reads a pipe, and keeps its first bytes, or its last ones if `most` is negative."""

    def __init__(self, pipe: IO[bytes] | None, most: int) -> None:
        super().__init__(daemon=True)
        assert pipe is not None  # noqa: S101 - a pipe was asked for
        self._pipe = pipe
        self._most = most
        self.data = bytearray()
        self.is_over = False
        self.start()

    def run(self) -> None:
        """Read to the end, or until there is more than may be kept."""
        with suppress(OSError, ValueError):  # the process has ended
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                self.data += chunk
                if self._most < 0:
                    del self.data[: self._most]
                elif len(self.data) > self._most:
                    self.is_over = True
                    return


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError), pipe:  # a command need not read all of it
        pipe.write(data)


def _limited(command: Sequence[str], max_file: int | None) -> Sequence[str]:
    """Return a command that can only write files up to a size, and has memory in proportion."""
    if max_file is None:
        return command
    blocks, kilobytes = max_file // 512 + 1, (2 * max_file + SPARE_MEMORY) // 1024
    limits = f"ulimit -f {blocks} 2>/dev/null; ulimit -v {kilobytes} 2>/dev/null"
    return ["/bin/sh", "-c", f'{limits}; exec "$0" "$@"', *command]


@contextmanager
def start_process(
    command: Sequence[str],
    args: Sequence[str],
    cwd: Path | None,
    env: Mapping[str, str],
    *,
    is_guarded: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with three pipes; it has ended after the block.

    It is killed if the block raises. With `is_guarded` so are all processes that it started,
    also when this process is killed: helpers such as git-remote-https outlive git itself
    otherwise, and go on fetching.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=is_guarded,
        )
    except OSError as error:
        raise GitError(args, NOT_STARTED, f"{error.filename}: {error.strerror}") from error
    guard = _start_guard(process.pid) if is_guarded else None
    try:
        yield process
    except BaseException:
        if guard:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        raise
    finally:
        if guard:
            guard.kill()
            guard.communicate()
        with suppress(OSError), process:  # closes the pipes and waits for its end
            pass


def _start_guard(group: int) -> subprocess.Popen[bytes]:
    """Start a shell that waits for the end of this process and then kills a process group."""
    return subprocess.Popen(  # noqa: S603 - a list; the shell gets a number alone
        ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$0"', str(group)],
        stdin=subprocess.PIPE,  # only this process has the other end
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
