"""Keep tests away from the developer's own files.

Two barriers: an environment in which nothing points to the real home, and an
audit hook that stops what reaches for it by another way (`pwd`, a path that was
computed at import).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def use_memory(place: str = "/dev/shm") -> None:
    """Keep temporary files in memory where there is room and a program may run from there.

    A test makes and removes directories, repositories and databases: on a disk, most of the
    suite's time is spent waiting for it. A `TMPDIR` that is set is kept.
    """
    try:
        flags = os.statvfs(place).f_flag
        free = shutil.disk_usage(place).free
    except (AttributeError, OSError):  # of another system
        return
    if "TMPDIR" in os.environ or free < 2 * 10**9 or not os.access(place, os.W_OK):
        return
    if flags & os.ST_NOEXEC:
        return
    os.environ["TMPDIR"] = place
    tempfile.tempdir = None  # pytest has asked before, and the answer is kept


use_memory()

REAL_HOME = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - before HOME is changed

_ALLOWED = tuple(
    str(Path(place).resolve())
    for place in (
        Path(__file__).parent.parent,  # coverage, hypothesis and bytecode live in the checkout
        tempfile.gettempdir(),
        sys.prefix,
        sys.base_prefix,
    )
)
_CHANGES = {
    "os.chmod": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "sqlite3.connect": (0,),
}
"""Audit events that change files, and which of their arguments are paths."""

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

writes_to_home: list[str] = []
"""Every attempt since the last test; emptied by the fixture that reports them."""


class HomeWriteError(AssertionError):
    """A test tried to change a file of the developer's home directory."""


def guard_home(event: str, args: tuple[object, ...]) -> None:
    """Refuse a change below the real home; an audit hook."""
    if event == "open":
        if not isinstance(args[2], int) or not args[2] & _WRITE_FLAGS:
            return
        paths: tuple[object, ...] = args[:1]
    elif event in _CHANGES:
        paths = tuple(args[place] for place in _CHANGES[event])
    else:
        return
    for path in paths:
        if isinstance(path, (str, bytes, os.PathLike)) and is_forbidden(os.fsdecode(path)):
            writes_to_home.append(f"{event} {os.fsdecode(path)}")
            raise HomeWriteError(writes_to_home[-1])


def is_forbidden(path: str) -> bool:
    """Tell whether a path is below the real home and none of the tests' own places."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - called on every write; no links to resolve
    if not _is_below(absolute, str(REAL_HOME)) or "__pycache__" in absolute:
        return False
    return not any(_is_below(absolute, place) for place in _ALLOWED)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def isolated_environment(home: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose every per-user place is below `home`."""
    dropped = (
        "GIT_",
        "LLM_",
        "OPENAI_",
        "XDG_",
        "SSL_CERT_",
        "PYTEST_ADDOPTS",
        "GH_",
        "GITHUB_TOKEN",
    )
    kept = {key: value for key, value in inherited.items() if not key.startswith(dropped)}
    for name in ("EDITOR", "VISUAL", "PAGER", "NO_COLOR", "FORCE_COLOR"):
        kept.pop(name, None)
    return kept | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LLM_USER_PATH": str(home / "llm"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "COLUMNS": "80",
        # Nothing here talks TLS to strangers; reading the system's certificates takes 0.1 s.
        "SSL_CERT_DIR": str(home),
    }


@contextmanager
def environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Have exactly this environment, and afterwards the one there was."""
    before = dict(os.environ)
    _set_environment(changed)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file be written, as on a full disk: not a byte fits the largest one."""
    import resource  # noqa: PLC0415 - not on every system

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def make_home(home: Path) -> None:
    """Write what a home needs: an llm user directory and a git identity."""
    (home / "llm").mkdir(parents=True)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Test Author\n\temail = author@example.com\n"
        "[init]\n\tdefaultBranch = main\n"
        "[commit]\n\tgpgSign = false\n",
        encoding="utf-8",
    )
