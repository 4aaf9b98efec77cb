"""Finds and reads the configuration files of a directory.

Every `llm prompt` imports this module, so it parses nothing and imports little.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from llm_kb.errors import MAX_PATH_SHOWN, ConfigError, quote
from llm_kb.files.containment import open_regular, read_open

USER_FILE = "kb.toml"
WORKSPACE_FILE = "llm-kb.toml"
VARIABLE = "LLM_KB_CONFIG"


def user_config_path(user_dir: Path) -> Path:
    """Return the path of the user layer's file, which need not exist."""
    return user_dir / USER_FILE


def find_cwd() -> Path | None:
    """Return the current directory; None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def find_workspace(cwd: Path | None, environ: Mapping[str, str], *, user_dir: Path) -> Path | None:
    """Return the path of the workspace layer's file: the one in the environment, else the nearest.

    The user layer's own file is never a workspace's.
    """
    named = environ.get(VARIABLE)
    if named is not None and not named.strip():
        return None
    if named is not None:
        path = Path(os.path.normpath((cwd or Path("/")) / expand_home(named)))
        if os.path.lexists(path):
            return path
        found = f"found {quote(named, MAX_PATH_SHOWN)}"
        raise ConfigError(VARIABLE, [f"{found}, but there is no such file"])
    for directory in (cwd, *cwd.parents) if cwd else ():
        path = directory / WORKSPACE_FILE
        if os.path.lexists(path) and not _is_same(path, user_config_path(user_dir)):
            return path
    return None


def expand_home(path: str) -> str:
    """Return a path with the home directory for `~`; that of another user is not looked up."""
    is_home = path == "~" or path.startswith("~/")
    return os.path.expanduser(path) if is_home else path  # noqa: PTH111 - it never raises


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def mentions_auto(cwd: Path | None, user_dir: Path, environ: Mapping[str, str]) -> bool:
    """Tell whether `auto` may be set, without parsing and without raising errors.

    A file that cannot be read does not count; one of another user does.
    """
    if may_set_auto(user_config_path(user_dir)):
        return True
    try:
        file = find_workspace(cwd, environ, user_dir=user_dir)
    except ConfigError:
        return False
    return file is not None and may_set_auto(file)


def may_set_auto(path: Path) -> bool:
    """Tell whether a line of a configuration file that is not a comment mentions `auto`."""
    try:
        lines = read_bytes(path).splitlines()
    except ConfigError:
        return False  # a request that did not ask for knowledge must not fail
    return any(b"auto" in line and not line.lstrip().startswith(b"#") for line in lines)


MAX_BYTES = 1_000_000
"""The most bytes of a configuration file, which are decoded within two seconds."""

_MAX_LINKS = 40
"""The most links followed on the way to a file, the same number as on Linux."""


def read_bytes(path: Path, *, owned_below: Path | None = None) -> bytes:
    """Read a configuration file. Raises ConfigError.

    With `owned_below`, the workspace's root, the file, its directory and every link on
    the way from there must belong to the user or to root, so that text of other users does
    not get into a prompt.
    """
    try:
        expected = None
        place = path
        if owned_below is not None:
            place, expected = _require_owned(path, owned_below)
        descriptor, status = open_regular(place, follow_link=owned_below is None)
        try:
            if expected is not None and not os.path.samestat(status, expected):
                raise ConfigError(str(path), ["was replaced while it was read; try again"])
            data = read_open(descriptor, status.st_size, MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(str(path), [f"is larger than {MAX_BYTES:,} bytes, the most allowed"])
    return data


def decode_bytes(data: bytes, path: Path) -> dict[str, object]:
    """Decode a TOML document. Raises ConfigError."""
    # Imported here: most requests only search a file for `auto`.
    from llm_kb.files.fields import TomlError, decode_toml  # noqa: PLC0415

    try:
        # TOML 1.1 allows a byte order mark, and editors on Windows write it.
        return decode_toml(data.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [f"is not UTF-8 (line {line}); save it as UTF-8"]) from error
    except TomlError as error:
        raise ConfigError(str(path), [f"is not valid TOML: {error}"]) from error


def _require_owned(path: Path, root: Path) -> tuple[Path, os.stat_result]:
    """Return the path of a file with links resolved, and its status.

    Raises ConfigError if another user owns a part of the path, OSError for a missing file.
    """
    place, status = root, root.lstat()
    for place, status in _follow(path, root):
        if is_foreign(status):
            raise ConfigError(
                str(path),
                [
                    f"is refused: {_describe_owner(place, path, status)}; look at it, then run"
                    " 'llm kb trust' to use it, or set LLM_KB_CONFIG to an empty value to work"
                    " without a workspace"
                ],
            )
    return place, status


def describe_foreign(path: Path, root: Path) -> str | None:
    """Return which part of a path, from a root on, belongs to another user; None if none does."""
    with suppress(OSError):
        for place, status in _follow(path, root):
            if is_foreign(status):
                return _describe_owner(place, path, status)
    return None


def _follow(path: Path, root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the root of a path, each component below it, and of the links on the way."""
    here = root if path.is_relative_to(root) else path.parent
    if here == root:
        yield root, root.stat()
    pending = list(reversed(path.relative_to(here).parts))
    links = 0
    while pending:
        name = pending.pop()
        if name == "..":  # from a link of the user; directories above the root may belong to others
            here = here.parent
            continue
        place = here / name
        status = place.lstat()
        yield place, status
        if not stat.S_ISLNK(status.st_mode):
            here = place
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = place.readlink()
        if target.is_absolute():
            here = Path(target.anchor)
        pending += reversed(target.relative_to(target.anchor).parts)


def is_foreign(status: os.stat_result) -> bool:
    """Tell whether a file belongs to neither the user nor root."""
    return status.st_uid not in {0, os.geteuid()}


def find_foreign_owner(path: Path) -> int | None:
    """Return the user id of a file's owner if that is neither the user nor root."""
    try:
        status = path.stat()
    except OSError:
        return None  # reading it will fail, too
    return status.st_uid if is_foreign(status) else None


def _describe_owner(place: Path, path: Path, status: os.stat_result) -> str:
    what = "it" if place == path else str(place)
    return f"{what} belongs to another user (uid {status.st_uid})"
