"""The one door to git: no shell, a scrubbed environment, bytes in and bytes out."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from llm_kb.errors import KbError

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
