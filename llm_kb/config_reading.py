"""Read one configuration file: whole, never waiting, and only if it may be trusted to be one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from llm_kb.errors import ConfigError

MAX_BYTES = 1_000_000
"""No configuration is larger; a larger file is a mistake or an attack."""

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    # A FIFO in the file's place is then opened at once, and seen for what it is.
    | getattr(os, "O_NONBLOCK", 0)
)


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
        descriptor = os.open(path, _FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(str(path), ["is no regular file; put a TOML file in its place"])
            if require_owner:
                _require_owner(path, status)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(str(path), [f"is larger than {MAX_BYTES:,} bytes; it cannot be right"])
    return data


def decode_bytes(data: bytes, path: Path) -> dict[str, object]:
    """Decode a TOML document. Raises ConfigError."""
    # Imported here: most requests only look whether a file mentions `auto`.
    from llm_kb.toml_text import TomlError, decode_toml  # noqa: PLC0415

    if b"\0" in data:
        raise ConfigError(str(path), ["holds a NUL byte; it is no TOML document"])
    try:
        # TOML 1.1 lets a byte order mark pass, and editors on Windows write it.
        return decode_toml(data.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [f"is not UTF-8 (line {line}); save it as UTF-8"]) from error
    except TomlError as error:
        raise ConfigError(str(path), [f"is no valid TOML: {error}"]) from error


def _require_owner(path: Path, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid") or status.st_uid in {0, os.geteuid()}:
        return
    problem = (
        f"is refused: it belongs to another user (uid {status.st_uid}); make it yours with "
        "chown or a copy, or set LLM_KB_CONFIG to nothing to do without a workspace"
    )
    raise ConfigError(str(path), [problem])
