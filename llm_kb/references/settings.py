"""`[kb.references]`: the limits of fetching, as the user's own configuration sets them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.config.layers import Key, read_directory
from llm_kb.files.fields import read_choice, read_count, read_line

if TYPE_CHECKING:
    from llm_kb.config.settings import Config

TABLE = "kb.references"


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The settings of a library."""

    allow_hosts: tuple[str, ...] = ()
    allow_protocols: tuple[str, ...] = ()
    dir: Path | None = None
    max_bytes: int = 500_000_000
    max_files: int = 50_000
    timeout: int = 60


def list_settings() -> list[tuple[str, Key]]:
    """Return the keys, all of which are the user's own."""
    limits = {
        name: Key(partial(read_count, least=1), user_only=True, default=getattr(References(), name))
        for name in ("max_bytes", "max_files", "timeout")
    }
    keys = {
        "allow_hosts": Key(read_line, is_list=True, user_only=True),
        "allow_protocols": Key(
            partial(read_choice, choices=("file", "ssh")), is_list=True, user_only=True
        ),
        "dir": Key(read_directory, user_only=True, is_place=True, default=""),
        **limits,
    }
    return [(f"{TABLE}.{name}", key) for name, key in keys.items()]


def read_settings(config: Config) -> References:
    """Return the settings in effect."""
    prefix = f"{TABLE}."
    found = {
        key.removeprefix(prefix): setting.value
        for key, setting in config.settings.items()
        if key.startswith(prefix)
    }
    if "dir" in found:
        found["dir"] = Path(str(found["dir"]))  # type: ignore[assignment]
    return References(**found)  # type: ignore[arg-type]
