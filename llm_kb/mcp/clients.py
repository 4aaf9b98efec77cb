"""Finds the configuration files of MCP clients, and adds the entry for this server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_kb.errors import KbError, show_place
from llm_kb.files.opener import read_regular

NAME = "llm-kb"
"""The name of the server in a client."""


PROJECT = "${workspaceFolder}"
"""Replaced by editors with the directory of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The configuration file of a client."""

    path: str
    """The path of the file, below the project or, for a user's file, below home."""
    key: str
    """The key of the table of servers."""
    typed: bool = False
    """Whether an entry names its transport."""
    starts_elsewhere: bool = False
    """Whether the client may start servers in another directory than the project's."""
    is_users: bool = False


CLIENTS: Mapping[str, Client] = {
    # https://code.claude.com/docs/en/mcp
    "claude": Client(path=".mcp.json", key="mcpServers"),
    # https://cursor.com/docs/mcp
    "cursor": Client(path=".cursor/mcp.json", key="mcpServers", starts_elsewhere=True),
    # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
    "vscode": Client(path=".vscode/mcp.json", key="servers", typed=True, starts_elsewhere=True),
    # https://developers.openai.com/codex/mcp; one of a project counts in trusted ones alone
    "codex": Client(path="config.toml", key="mcp_servers", is_users=True),
}


class ClientFileError(KbError):
    """A client's configuration that cannot be changed."""

    def __init__(self, path: Path, reason: str, entry: str) -> None:
        super().__init__(f"{show_place(path)} {reason}; write this into it yourself:\n{entry}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The change of a client's configuration file."""

    path: Path
    entry: str
    """The entry alone, in the format of the file."""
    data: bytes
    """The new content of the file."""
    is_there: bool
    """Whether the file already has this entry."""
    replaces: bool
    """Whether the file has an entry of this name."""


def find_command(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return a command that starts this server, and its arguments.

    The command is a name if it is on PATH, so that others can use the same file.
    """
    if shutil.which("llm-kb"):
        return "llm-kb", ["mcp", *arguments]
    if shutil.which("llm"):
        return "llm", ["kb", "mcp", *arguments]
    return str(Path(sys.executable).with_name("llm-kb")), ["mcp", *arguments]


def plan_installation(name: str, directory: Path, arguments: Sequence[str]) -> Installation:
    """Return the change for a client, which keeps the rest of its file. Raises KbError."""
    client = CLIENTS[name]
    if client.starts_elsewhere and "--directory" not in arguments:
        arguments = ["--directory", PROJECT, *arguments]
    command, arguments = find_command(arguments)
    entry: dict[str, Any] = {"type": "stdio"} if client.typed else {}
    entry |= {"command": command, "args": list(arguments)}
    path = Path(os.path.realpath(_find_file(client, directory)))  # shown as it is written to
    try:
        text = read_regular(path, follow_link=True).decode("utf-8-sig")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ClientFileError(path, f"cannot be read ({error})", json.dumps(entry)) from error
    change = _change_toml if path.suffix == ".toml" else _change_json
    shown, before, written = change(path, text, client.key, entry)
    return Installation(
        path=path,
        entry=shown,
        data=written.encode("utf-8", "backslashreplace"),
        is_there=before == entry,
        replaces=before is not None,
    )


def _find_file(client: Client, directory: Path) -> Path:
    if client.is_users:
        return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / client.path
    return directory / client.path


def _change_json(path: Path, text: str, key: str, entry: dict[str, Any]) -> tuple[str, object, str]:
    """Return the entry as text, the old entry, and the new text of the file."""
    shown = json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
    try:
        document = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        # Such as JSON with comments, which would be lost.
        raise ClientFileError(path, f"is not plain JSON ({error})", shown) from error
    servers = document.setdefault(key, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ClientFileError(path, f"has no table {key!r}", shown)
    before = servers.get(NAME)
    servers[NAME] = entry
    indent = re.search(r"\n([ \t]+)\S", text)
    written = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    return shown, before, f"{written}\n"


def _change_toml(path: Path, text: str, key: str, entry: dict[str, Any]) -> tuple[str, object, str]:
    # Imported here: only one client uses TOML.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    shown = tomlkit.dumps({key: {NAME: entry}})
    try:
        document = tomlkit.parse(text)
        servers = document.setdefault(key, tomlkit.table(is_super_table=True))
        before = servers[NAME].unwrap() if NAME in servers else None
        if before != entry:
            servers[NAME] = entry
        return shown, before, tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, TypeError, RecursionError) as error:
        raise ClientFileError(path, f"is not TOML with a table {key!r} ({error})", shown) from error
