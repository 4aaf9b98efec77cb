"""The configuration files of MCP clients: adds the entry that starts this server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.errors import KbError, show_place
from llm_kb.files.atomic import find_inside, replace_below, replace_file
from llm_kb.files.containment import read_regular, resolve_links

NAME = "llm-kb"
"""The name of the server in a client."""

CLIENTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # https://code.claude.com/docs/en/mcp
    "claude": (".mcp.json", "mcpServers", {"alwaysLoad": True}),
    # https://developers.openai.com/codex/mcp; one of a project counts in trusted ones alone
    "codex": (
        "~/.codex/config.toml",
        "mcp_servers",
        {"required": True, "omit_tools_from": ["deferred"]},
    ),
    # https://cursor.com/docs/mcp
    "cursor": (".cursor/mcp.json", "mcpServers", {}),
    # https://geminicli.com/docs/tools/mcp-server
    "gemini": (".gemini/settings.json", "mcpServers", {}),
    # https://opencode.ai/docs/mcp-servers
    "opencode": ("opencode.json", "mcp", {"type": "local"}),
    # https://qwenlm.github.io/qwen-code-docs
    "qwen": (".qwen/settings.json", "mcpServers", {"alwaysLoadTools": True}),
    # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
    "vscode": (".vscode/mcp.json", "servers", {"type": "stdio"}),
}
"""The file of a client, below the project or home; its key of the table of servers; and what an
entry has besides the command, where a user's values stay."""

EDITORS = ("cursor", "vscode")
"""They may start servers elsewhere, and replace `${workspaceFolder}` with the project."""


def find_file(client: str, project: Path) -> Path:
    """Return the configuration file of a client, links resolved.

    Raises WriteError if a link of the project leads the file out of it.
    """
    file = Path(CLIENTS[client][0])
    if not _is_users(client):
        return resolve_links(project) / find_inside(project, file)
    if client == "codex" and (home := os.environ.get("CODEX_HOME")):
        file = Path(home) / file.name
    return resolve_links(project / file.expanduser())


def write_file(client: str, project: Path, data: bytes) -> None:
    """Replace the configuration file of a client. Raises WriteError."""
    if _is_users(client):
        replace_file(find_file(client, project), data)
    else:
        replace_below(project, CLIENTS[client][0], data)


def _is_users(client: str) -> bool:
    """Tell whether the file of a client is the user's own, which may be a link to anywhere."""
    return CLIENTS[client][0].startswith("~")


def find_command(client: str, options: Sequence[str]) -> list[str]:
    """Return a command that starts this server.

    It is a name if it is on PATH, so that others can use the same file. `llm` takes a second
    longer to start, so a user's own file has the path of the script.
    """
    if client in EDITORS and "--directory" not in options:
        options = ["--directory", "${workspaceFolder}", *options]
    script = Path(sys.executable).with_name("llm-kb")
    if shutil.which("llm-kb"):
        return ["llm-kb", "mcp", *options]
    if shutil.which("llm") and not (client == "codex" and script.exists()):
        return ["llm", "kb", "mcp", *options]
    return [str(script), "mcp", *options]


def add_server(client: str, file: Path, command: list[str]) -> tuple[str, bytes | None]:
    """Return the entry of this server, and the new content of the file; None if it has the entry.

    Keys of an entry that is there already stay, but for the command. Raises KbError.
    """
    _, key, defaults = CLIENTS[client]
    started: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if client == "opencode":
        started = {"command": command}
    entry = {**defaults, **started}
    try:
        data = read_regular(file, follow_link=True)
    except FileNotFoundError:
        data = b""
    try:
        text = data.decode("utf-8-sig")
        parse = tomlkit.parse if client == "codex" or not text.strip() else json.loads
        document: Any = parse(text)
        servers = document.setdefault(key, {})
        before = dict(servers.get(NAME, {}))
        entry = {**entry, **before, **started}
        servers.setdefault(NAME, {}).update(entry)  # in place, so that comments stay
    except (ValueError, RecursionError, TOMLKitError, AttributeError, TypeError) as error:
        kind = "TOML" if client == "codex" else "plain JSON"  # comments would be lost
        raise KbError(
            f"{show_place(file)} is not {kind} with a table {key!r} of tables ({error});"
            f" write this into it yourself:\n{_render(client, {key: {NAME: entry}})}"
        ) from error
    indent = re.search(r"\n([ \t]+)\S", text)
    written = _render(client, document, indent[1] if indent else 2)
    shown = _render(client, {key: {NAME: entry}})
    return shown, None if entry == before else written.encode("utf-8", "backslashreplace")


def _render(client: str, document: dict[str, Any], indent: str | int = 2) -> str:
    if client == "codex":
        return tomlkit.dumps(document)
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
