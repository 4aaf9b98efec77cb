"""The one door to git: no shell, a scrubbed environment, bytes in and bytes out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from llm_kb.errors import KbError


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
        if not key.startswith("GIT_")
        or key
        in {
            "GIT_EXEC_PATH",
            "GIT_SSL_CAINFO",
            "GIT_SSL_NO_VERIFY",
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_NOSYSTEM",
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        }
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
    except FileNotFoundError as error:
        raise GitError(args, 127, "git is not installed or not on PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(args, 124, f"timed out after {timeout} s") from error
    if done.returncode:
        raise GitError(args, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout
