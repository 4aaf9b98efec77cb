"""Which configuration files there are for a directory, and whether they may matter at all.

Every `llm prompt` asks this, so nothing here parses, and nothing heavy is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import ConfigError
from llm_kb.opener import open_regular, read_open

USER_FILE = "kb.toml"
WORKSPACE_FILES = (Path(".llm", "kb.toml"), Path("llm-kb.toml"))
VARIABLE = "LLM_KB_CONFIG"


class WorkspaceFile(NamedTuple):
    """The workspace layer's file and the directory that owns it; both absolute."""

    path: Path
    root: Path


def user_config_path(user_dir: Path) -> Path:
    """Return where the user layer's file is, or would be."""
    return user_dir / USER_FILE


def find_cwd() -> Path | None:
    """Return the current directory; None when it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def find_workspace(
    cwd: Path | None, environ: Mapping[str, str], *, user_dir: Path | None = None
) -> WorkspaceFile | None:
    """Return the workspace layer's file: what the environment names, else the nearest.

    The user layer's own file is never a workspace's, wherever it is.
    """
    named = environ.get(VARIABLE)
    if named is not None:
        return _named_workspace(named, cwd) if named.strip() else None
    if cwd is None:
        return None
    user_file = user_config_path(user_dir) if user_dir is not None else None
    for directory in (cwd, *cwd.parents):
        for name in WORKSPACE_FILES:
            path = directory / name
            if exists(path) and not (user_file and _is_same(path, user_file)):
                return WorkspaceFile(path=path, root=directory)
    return None


def _named_workspace(named: str, cwd: Path | None) -> WorkspaceFile:
    if "\0" in named:
        raise ConfigError(VARIABLE, ["found a NUL byte; allowed: the path of a file"])
    path = Path(os.path.expanduser(named))  # noqa: PTH111 - it never raises
    if not path.is_absolute() and cwd is None:
        raise ConfigError(VARIABLE, [f"found {named!r}, but the current directory is gone"])
    path = Path(os.path.normpath((cwd or Path("/")) / path))
    if not exists(path):
        raise ConfigError(VARIABLE, [f"found {named!r}, but there is no such file"])
    owner = path.parent
    return WorkspaceFile(path=path, root=owner.parent if owner.name == ".llm" else owner)


def exists(path: Path) -> bool:
    """Tell whether something is there, if only a dangling link; False where we may not look."""
    try:
        path.lstat()
    except (OSError, ValueError):
        return False  # also where we may not look: another's directory says nothing to us
    return True


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def mentions_auto(cwd: Path | None, user_dir: Path, environ: Mapping[str, str]) -> bool:
    """Tell cheaply whether `auto` may be set: without parsing, without raising.

    A file that cannot be read, or is refused, mentions nothing.
    """
    paths = [(user_config_path(user_dir), False)]
    try:
        file = find_workspace(cwd, environ, user_dir=user_dir)
    except ConfigError:
        file = None
    if file is not None:
        paths.append((file.path, True))
    return any(_mentions_auto(path, require_owner) for path, require_owner in paths)


def _mentions_auto(path: Path, require_owner: bool) -> bool:
    if not exists(path):
        return False
    try:
        lines = read_bytes(path, require_owner=require_owner).splitlines()
        return any(b"auto" in line and not line.lstrip().startswith(b"#") for line in lines)
    except ConfigError:
        return False  # a request that did not ask for knowledge runs without it


MAX_BYTES = 1_000_000
"""No configuration is larger; a larger file is a mistake or an attack."""


def read_toml(path: Path, *, require_owner: bool = False) -> dict[str, object]:
    """Read and decode a TOML document. Raises ConfigError."""
    return decode_bytes(read_bytes(path, require_owner=require_owner), path)


def read_bytes(path: Path, *, require_owner: bool = False) -> bytes:
    """Read a configuration file. Raises ConfigError.

    With `require_owner`, a file (or a link to it) that belongs to neither the
    user nor root is refused: another's words must not reach a prompt.
    """
    try:
        if require_owner:
            _require_owner(path, path.lstat())
        descriptor, status = open_regular(path, follow_link=True)
        try:
            if require_owner:
                _require_owner(path, status)
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
    # Imported here: most requests only look whether a file mentions `auto`.
    from llm_kb.files.toml import TomlError, decode_toml  # noqa: PLC0415

    if b"\0" in data:
        raise ConfigError(str(path), ["holds a NUL byte; it is not a TOML document"])
    try:
        # TOML 1.1 lets a byte order mark pass, and editors on Windows write it.
        return decode_toml(data.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [f"is not UTF-8 (line {line}); save it as UTF-8"]) from error
    except TomlError as error:
        raise ConfigError(str(path), [f"is not valid TOML: {error}"]) from error


def _require_owner(path: Path, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid") or status.st_uid in {0, os.geteuid()}:
        return
    problem = (
        f"is refused: it belongs to another user (uid {status.st_uid}); make it yours with "
        "chown or a copy, or set LLM_KB_CONFIG to nothing to do without a workspace"
    )
    raise ConfigError(str(path), [problem])
