"""Starts git without a shell, in a cleaned environment.

A repository may be a stranger's: no command starts a program that the repository's
configuration names, and local commands fetch nothing.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO, Literal

from llm_kb.errors import KbError

MAX_MESSAGE = 4096
"""The most bytes of git's messages that are kept, the last ones, which hold the reason."""

MAX_OUTPUT = 100_000_000
"""The most bytes of output of a command that contacts a server."""

OUTPUT_TOO_LARGE = 125
"""The code of a GitError for output over its limit."""

CHUNK = 65_536

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

_SETTINGS = {
    "core.fsmonitor": "false",
    # Hooks are for commits and branches; only notes are written here.
    "core.hooksPath": os.devnull,
    "protocol.ext.allow": "never",
    # A clone can carry a bare repository among its files, with a configuration of its own.
    "safe.bareRepository": "explicit",
}


class GitError(KbError):
    """A git command that failed, with git's own message."""

    def __init__(self, command: Sequence[str], code: int, stderr: str) -> None:
        self.command = tuple(command)
        self.code = code
        self.stderr = stderr
        reason = stderr.strip() or f"exit code {code}"
        super().__init__(f"git {command[0] if command else ''} failed: {reason}")


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of git, without an inherited repository and without prompts."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    kept["GIT_TERMINAL_PROMPT"] = "0"
    kept["LC_ALL"] = "C.UTF-8"
    return {**kept, **(extra or {})}


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


def git_command(args: Sequence[str], settings: Mapping[str, str] | None = None) -> list[str]:
    """Return the command that starts git with these settings and the common ones."""
    options = [f"{key}={value}" for key, value in {**_SETTINGS, **(settings or {})}.items()]
    program = find_program("git")
    if program is None:
        raise GitError(args, 127, "git is not installed or not on PATH")
    return [program, *(word for option in options for word in ("-c", option)), *args]


def run_git(
    *args: str,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float | None = None,
    network: bool = False,
) -> bytes:
    """Run git and return its standard output; raise GitError if it fails.

    With `network` it may contact a remote that the user named, and ask the user for a
    passphrase, with the programs of the user's own configuration.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            git_command((*_own_programs(), *args) if network else args),
            cwd=cwd,
            input=stdin,
            # An empty value prevents a proxy that the repository names.
            env=git_environment({"GIT_PROXY_COMMAND": ""}) if network else local_environment(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise _not_started(args, error) from error
    except subprocess.TimeoutExpired as error:
        raise GitError(args, 124, f"timed out after {timeout} s") from error
    if done.returncode:
        raise GitError(args, done.returncode, done.stderr[-MAX_MESSAGE:].decode(errors="replace"))
    return done.stdout


def _own_programs() -> Iterator[str]:
    """Yield options that set the programs for servers to those of the user's configuration.

    The ssh command and credential helper of a repository are not trusted.
    """
    listed = ""
    for place in ("--system", "--global"):
        with suppress(GitError):  # there is no such file
            listed += run_git("config", place, "--includes", "--null", "--list").decode()
    own = [entry.partition("\n") for entry in listed.split("\0")]
    found = {key: value for key, _, value in own if key in {"core.sshcommand", "core.askpass"}}
    ssh = found.get("core.sshcommand") or shlex.quote(os.environ.get("GIT_SSH") or "ssh")
    askpass = found.get("core.askpass") or os.environ.get("SSH_ASKPASS", "")
    yield from ("-c", f"core.sshCommand={ssh}", "-c", f"core.askPass={askpass}")
    yield from ("-c", "credential.helper=")  # resets the list of helpers
    for key, _, value in own:
        if key.startswith("credential."):
            yield from ("-c", f"{key}={value}")


def start_git(*args: str, cwd: Path, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a local git with pipes to write to and to read from; the caller ends it."""
    try:
        return subprocess.Popen(  # noqa: S603 - a list, no shell
            git_command(args, settings),
            cwd=cwd,
            env=local_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise _not_started(args, error) from error


def _not_started(args: Sequence[str], error: OSError) -> GitError:
    """Return the error of a git that could not be started, as in a missing directory."""
    return GitError(args, 126, f"{error.filename}: {error.strerror}")


def run_remote(  # noqa: PLR0913 - the arguments of a process
    program: Literal["git", "gh"],
    *args: str,
    cwd: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    timeout: float,
    watch: Callable[[], None] = lambda: None,
    max_output: int = MAX_OUTPUT,
    max_file: int | None = None,
) -> bytes:
    """Run git or GitHub's gh to contact a server, and return its output.

    The whole family of processes ends at the timeout, when `watch`, called a few times a
    second, raises, and with this process, however that ends: helpers such as
    git-remote-https outlive git itself otherwise, and go on fetching. No file they write is
    larger than `max_file` bytes. Raises GitError, with the code OUTPUT_TOO_LARGE where more
    than `max_output` bytes are printed.
    """
    if program == "git":
        command = git_command(args, settings)
    elif gh := find_program(program):
        command = [gh, *args]
    else:
        raise GitError(args, 127, f"{program} is not installed or not on PATH")
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    try:
        process = subprocess.Popen(  # noqa: S603 - a list
            _limited(command, max_file),
            cwd=cwd,
            env=git_environment(quiet | dict(env or {})),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(args, error) from error
    with _family(process):
        out, messages = (
            PipeReader(process.stdout, max_output),
            PipeReader(process.stderr, -MAX_MESSAGE),
        )
        Thread(target=_feed, args=(process.stdin, stdin), daemon=True).start()
        deadline = time.monotonic() + timeout
        while out.is_alive() or messages.is_alive() or process.poll() is None:
            out.join(0.2)
            messages.join(0 if out.is_alive() else 0.2)
            if out.is_over:
                raise GitError(args, OUTPUT_TOO_LARGE, f"it printed over {max_output:,} bytes")
            if time.monotonic() > deadline:
                raise GitError(args, 124, f"timed out after {timeout:g} s")
            watch()
    if process.returncode:
        raise GitError(args, process.returncode, messages.data.decode(errors="replace"))
    return bytes(out.data)


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
            while chunk := os.read(self._pipe.fileno(), CHUNK):
                self.data += chunk
                if self._most < 0:
                    del self.data[: self._most]
                elif len(self.data) > self._most:
                    self.is_over = True
                    return


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError), pipe:  # a command need not read all of it
        pipe.write(data)


def _limited(command: Sequence[str], max_file: int | None) -> list[str]:
    """Return a command that can only write files up to a size."""
    if max_file is None:
        return list(command)
    blocks = str(max_file // 512 + 1)
    return ["/bin/sh", "-c", 'ulimit -f "$0" 2>/dev/null; exec "$@"', blocks, *command]


@contextmanager
def _family(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a process with its children if the block raises or this process is killed.

    A shell waits for the end of a pipe that only this process has open.
    """
    guard = None
    try:
        guard = subprocess.Popen(  # noqa: S603 - a list; the shell gets a number alone
            ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$0"', str(process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield
    except BaseException:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        raise
    finally:
        if guard:
            guard.kill()
            guard.communicate()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
