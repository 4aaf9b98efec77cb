"""Runs git without a shell, in a cleaned environment and with bounded output.

A repository may be a stranger's: no command starts a program that the repository's
configuration names, and without `server` none fetches anything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from llm_kb.errors import KbError, show_place
from llm_kb.files.processes import (
    TimedOutError,
    TooMuchOutputError,
    absolute_path,
    run_program,
    start_guard,
)
from llm_kb.files.repository import find_repository

MAX_OUTPUT = 100_000_000
"""The most bytes of output of a command."""

TIMED_OUT = 124
TOO_LARGE = 125
NOT_STARTED = 126
"""The codes of a GitError for a command that did not run to its end."""

MOST_SECONDS = 20
"""How long a command may take that no other time is given for: the files of a repository may name
pipes, and git waits for these."""

_FILES = (
    *("HEAD", "index", "config", "config.worktree", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
)
"""What git reads of a repository before anything else."""

MAX_OBJECT = 4_000_000
"""The most bytes of the objects that are read at once."""

SPARE_MEMORY = 2_000_000_000
"""Bytes of memory that a process with `max_file` may have besides two such files."""

_KEPT = frozenset(
    """
    GIT_ALLOW_PROTOCOL GIT_ASKPASS GIT_AUTHOR_EMAIL GIT_AUTHOR_NAME GIT_CEILING_DIRECTORIES
    GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM
    GIT_CONFIG_SYSTEM GIT_EXEC_PATH GIT_HTTP_PROXY_AUTHMETHOD GIT_NO_LAZY_FETCH
    GIT_PROTOCOL_FROM_USER GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_SSL_CAINFO GIT_SSL_NO_VERIFY
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
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
    # It waits for a message on a descriptor of this process.
    ("protocol.fd.allow", "never"),
)
"""Settings that keep git from starting programs that a repository names."""

_SETTINGS = (
    *NO_PROGRAMS,
    # A clone can carry a bare repository among its files, with a configuration of its own.
    ("safe.bareRepository", "explicit"),
)

# Missing objects of a partial clone are not fetched; git before 2.45 is stopped by the protocols.
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}

Settings = Iterable[tuple[str, str]]


class GitError(KbError):
    """A git command that failed, with git's own message.

    `data` is what it had printed, if it was ended.
    """

    def __init__(self, command: Sequence[str], code: int, stderr: str, data: bytes = b"") -> None:
        self.command = tuple(command)
        self.code = code
        self.stderr = stderr
        self.data = data
        reason = stderr.strip() or f"exit code {code}"
        super().__init__(f"git {command[0] if command else ''} failed: {reason}")


def git_environment() -> dict[str, str]:
    """Return the environment of git, without an inherited repository and without prompts."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "PATH": absolute_path()}


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH."""
    return shutil.which(name, path=absolute_path())


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
    an OutputTooLargeError. With a `timeout` of its own and no `terminal` all processes that it
    started end with it. No file it writes is larger than `max_file` bytes, and its memory is
    bounded likewise.
    """
    seconds = MOST_SECONDS if timeout is None else timeout
    program = find_program("git")
    if program is None:
        raise GitError(args, NOT_STARTED, "git is not installed or not on PATH")
    if found := _find_pipe(cwd):
        raise GitError(args, NOT_STARTED, f"{show_place(found)} is not a regular file")
    options = [word for key, value in (*_SETTINGS, *settings) for word in ("-c", f"{key}={value}")]
    command = _limited([program, *options, *args], max_file)
    try:
        with _hide_netrc() if server else nullcontext(git_environment() | _OFFLINE) as environment:
            ended = run_program(
                command,
                max_output=max_output,
                stdin=stdin,
                cwd=cwd,
                env=environment | dict(env or {}),
                timeout=seconds,
                watch=watch,
                guarded=timeout is not None and not terminal,
            )
    except OSError as error:
        raise GitError(args, NOT_STARTED, f"{error.filename}: {error.strerror}") from error
    except TimedOutError as error:
        raise GitError(args, TIMED_OUT, f"timed out after {seconds:g} s", error.data) from error
    except TooMuchOutputError as error:
        raise OutputTooLargeError(args, error.data) from error
    if ended.code:
        raise GitError(args, ended.code, ended.messages.decode(errors="replace"))
    return ended.output


def _find_pipe(cwd: Path | None) -> Path | None:
    """Return what stands in place of a file of the repository, and is none: git would wait."""
    found = find_repository(cwd)
    above = [place / ".git" for place in (cwd.absolute(), *cwd.absolute().parents)] if cwd else []
    places: list[Path] = [*above, *((found.git_dir, found.common_dir) if found else ())]
    for path in (place / name for place in places for name in _FILES):
        if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - they never raise
            return path
    return None


@contextmanager
def make_scratch() -> Iterator[Path]:
    """Make a temporary directory, which is deleted also when this process is killed."""
    place = tempfile.mkdtemp(prefix="llm-kb-")
    guard = start_guard('rm -rf -- "$0"', place)
    try:
        yield Path(place)
    finally:
        guard.communicate()


@contextmanager
def _hide_netrc() -> Iterator[dict[str, str]]:
    """Make a home directory without `.netrc`, and yield git's environment with it.

    curl sends what `.netrc` says by `default` to any server that asks. Everything else is linked:
    the user's credential helpers and configuration stay.
    """
    home = Path.home()
    with make_scratch() as place:
        with suppress(OSError):
            for name in os.listdir(home):  # noqa: PTH208 - names are all we need
                if name not in {".netrc", "_netrc"}:
                    (place / name).symlink_to(home / name)
        yield git_environment() | {"HOME": str(place), "NETRC": os.devnull}


def read_git(*args: str, cwd: Path, limit: int) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of git's output, and whether there was more."""
    try:
        return run_git(*args, cwd=cwd, max_output=limit), False
    except OutputTooLargeError as error:
        return error.data, True


@dataclass(frozen=True, slots=True, kw_only=True)
class GitObject:
    """An object of a repository: its full id, its type and its bytes."""

    id: str
    type: str
    data: bytes


def read_objects(cwd: Path, names: Iterable[str]) -> list[GitObject | None]:
    """Return the object of each name, in any notation of git; None for a name without one.

    Raises GitError, also for more than MAX_OBJECT bytes in all.
    """
    # With a line's end in it, git would read two names.
    asked = [name if "\n" not in name else "" for name in names]
    stdin = "".join(f"{name}\n" for name in asked).encode(errors="surrogateescape")
    # A name that is both an id and a branch needs no warning: most names are ids.
    settings = [("core.warnAmbiguousRefs", "false")]
    command = ("cat-file", "--batch")
    try:
        data = run_git(*command, cwd=cwd, stdin=stdin, settings=settings, max_output=MAX_OBJECT)
    except OutputTooLargeError as error:
        message = f"{asked[0]} has too many bytes; at most {MAX_OBJECT:,} are read"
        raise KbError(message) from error
    return list(split_objects(data))


def split_objects(data: bytes) -> Iterator[GitObject | None]:
    """Yield the objects that `git cat-file --batch` printed; None for a name without one."""
    start = 0
    while start < len(data):
        # "<id> <type> <size>", or the name and "missing" or "ambiguous"
        end = data.index(b"\n", start)
        words = data[start:end].split()
        start = end + 1
        if len(words) != 3 or not words[2].isdigit():
            yield None
            continue
        content = data[start : start + int(words[2])]
        yield GitObject(id=words[0].decode(), type=words[1].decode(), data=content)
        start += len(content) + 1  # the line's end


class OutputTooLargeError(GitError):
    """A git command that was ended after its first bytes of output."""

    def __init__(self, command: Sequence[str], data: bytes) -> None:
        super().__init__(command, TOO_LARGE, f"it printed over {len(data):,} bytes", data)


def _limited(command: Sequence[str], max_file: int | None) -> Sequence[str]:
    """Return a command that can only write files up to a size, and has memory in proportion."""
    if max_file is None:
        return command
    blocks, kilobytes = max_file // 512 + 1, (2 * max_file + SPARE_MEMORY) // 1024
    limits = f"ulimit -f {blocks} 2>/dev/null; ulimit -v {kilobytes} 2>/dev/null"
    return ["/bin/sh", "-c", f'{limits}; exec "$0" "$@"', *command]
