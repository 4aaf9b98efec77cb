"""The configuration files of MCP clients: adds the entry that starts this server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.errors import KbError, show_place
from llm_kb.files.containment import read_regular

NAME = "llm-kb"
"""The name of the server in a client."""

_IN_PROJECT = ("--directory", "${workspaceFolder}")
"""For editors, which may start servers elsewhere and replace this with the project's directory."""


Entry: TypeAlias = "dict[str, Any]"


class Client(NamedTuple):
    """The configuration file of a client."""

    path: str
    """The path of the file, below the project or, with `~`, below home."""
    key: str
    """The key of the table of servers."""
    entry: Mapping[str, object] = {}
    """What an entry has besides the command; a user's values of these keys stay."""
    options: Sequence[str] = ()
    """Options of the command, unless a directory is given."""


CLIENTS = {
    # https://code.claude.com/docs/en/mcp
    "claude": Client(".mcp.json", "mcpServers", {"alwaysLoad": True}),
    # https://developers.openai.com/codex/mcp; one of a project counts in trusted ones alone
    "codex": Client("~/.codex/config.toml", "mcp_servers", {"required": True}),
    # https://cursor.com/docs/mcp
    "cursor": Client(".cursor/mcp.json", "mcpServers", options=_IN_PROJECT),
    # https://geminicli.com/docs/tools/mcp-server
    "gemini": Client(".gemini/settings.json", "mcpServers"),
    # https://opencode.ai/docs/mcp-servers
    "opencode": Client("opencode.json", "mcp", {"type": "local"}),
    # https://qwenlm.github.io/qwen-code-docs
    "qwen": Client(".qwen/settings.json", "mcpServers", {"alwaysLoadTools": True}),
    # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
    "vscode": Client(".vscode/mcp.json", "servers", {"type": "stdio"}, _IN_PROJECT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of a client's configuration file."""

    path: Path
    entry: str
    """The entry alone, in the format of the file."""
    data: bytes
    """The new content of the file."""
    is_needed: bool
    """Whether the entry differs from the one in the file."""
    command: str
    """The program that the client will start."""


def plan_change(name: str, directory: Path, options: Sequence[str]) -> Change:
    """Return the change that adds the server to a client. Raises KbError.

    Keys of an entry that is there already stay, but for the command and its options.
    """
    client = CLIENTS[name]
    path = Path(os.path.realpath(_find_file(client, directory)))  # shown as it is written to
    if "--directory" not in options:
        options = [*client.options, *options]
    command = [*_find_command(is_users=client.path.startswith("~")), *options]
    started: Entry = {"command": command[0], "args": command[1:]}
    if name == "opencode":
        started = {"command": command}
    entry = {**client.entry, **started}
    try:
        data = read_regular(path, follow_link=True)
    except FileNotFoundError:
        data = b""
    try:
        text = data.decode("utf-8-sig")
        document, servers = _parse(path, text, client.key)
        before = dict(servers.get(NAME, {}))
        entry = {**entry, **before, **started}
        servers.setdefault(NAME, {}).update(entry)  # in place, so that comments stay
    except (ValueError, RecursionError, TOMLKitError, AttributeError, TypeError) as error:
        kind = "TOML" if path.suffix == ".toml" else "plain JSON"  # comments would be lost
        raise KbError(
            f"{show_place(path)} is not {kind} with a table {client.key!r} of tables ({error});"
            f" write this into it yourself:\n{_render(path, {client.key: {NAME: entry}})}"
        ) from error
    indent = re.search(r"\n([ \t]+)\S", text)
    written = _render(path, document, indent[1] if indent else 2)
    return Change(
        path=path,
        entry=_render(path, {client.key: {NAME: entry}}),
        data=written.encode("utf-8", "backslashreplace"),
        is_needed=entry != before,
        command=command[0],
    )


def _parse(path: Path, text: str, key: str) -> tuple[Entry, Entry]:
    """Return the document in a file and its table of servers, which is added if missing."""
    if path.suffix == ".toml":
        toml = tomlkit.parse(text)
        return toml, toml.setdefault(key, tomlkit.table(is_super_table=True))
    document = json.loads(text) if text.strip() else {}
    return document, document.setdefault(key, {})


def _render(path: Path, document: Entry, indent: str | int = 2) -> str:
    if path.suffix == ".toml":
        return tomlkit.dumps(document)
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def _find_file(client: Client, directory: Path) -> Path:
    home = os.environ.get("CODEX_HOME")
    if client is CLIENTS["codex"] and home:
        return Path(home) / "config.toml"
    return directory / Path(client.path).expanduser()


def _find_command(*, is_users: bool) -> list[str]:
    """Return a command that starts this server.

    It is a name if it is on PATH, so that others can use the same file. `llm` takes a second
    longer to start, so a user's own file has the path of the script.
    """
    script = Path(sys.executable).with_name("llm-kb")
    if shutil.which("llm-kb"):
        return ["llm-kb", "mcp"]
    if shutil.which("llm") and not (is_users and script.exists()):
        return ["llm", "kb", "mcp"]
    return [str(script), "mcp"]
