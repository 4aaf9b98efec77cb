"""The configuration files of MCP clients: adds the entry for this server, and takes it out."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.errors import KbError, show_place
from llm_kb.files.containment import read_regular

NAME = "llm-kb"
"""The name of the server in a client."""

_IN_PROJECT = ("--directory", "${workspaceFolder}")
"""For editors, which may start servers elsewhere and replace this with the project's directory."""

SLOW = (
    "llm-kb is not on your PATH, so the entry starts llm with all its plugins, which takes seconds:"
    " `uv tool install llm --with-executables-from llm-kb` or"
    " `pipx inject --include-apps llm llm-kb`, and --install again, makes it start at once"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The configuration file of a client."""

    path: str
    """The path of the file, below the project or, for a user's file, below home."""
    key: str = "mcpServers"
    """The key of the table of servers."""
    entry: Mapping[str, object] = field(default_factory=dict)
    """What an entry has besides the command; a user's values of these keys stay."""
    options: tuple[str, ...] = ()
    """Options of the command, unless a directory is given."""
    is_one_list: bool = False
    """Whether the command and its arguments are one list."""
    is_users: bool = False
    note: str = ""
    """What the user has to do after an installation."""


CLIENTS: Mapping[str, Client] = {
    # https://code.claude.com/docs/en/mcp
    "claude": Client(
        path=".mcp.json",
        entry={"alwaysLoad": True},
        note="Claude Code asks you to approve the server when you start it in this project",
    ),
    # https://developers.openai.com/codex/mcp; one of a project counts in trusted ones alone
    "codex": Client(
        path=".codex/config.toml", key="mcp_servers", entry={"required": True}, is_users=True
    ),
    # https://cursor.com/docs/mcp
    "cursor": Client(path=".cursor/mcp.json", options=_IN_PROJECT),
    # https://geminicli.com/docs/tools/mcp-server
    "gemini": Client(path=".gemini/settings.json"),
    # https://opencode.ai/docs/mcp-servers
    "opencode": Client(path="opencode.json", key="mcp", entry={"type": "local"}, is_one_list=True),
    # https://qwenlm.github.io/qwen-code-docs
    "qwen": Client(path=".qwen/settings.json", entry={"alwaysLoadTools": True}),
    # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
    "vscode": Client(
        path=".vscode/mcp.json", key="servers", entry={"type": "stdio"}, options=_IN_PROJECT
    ),
}


class ClientFileError(KbError):
    """A client's configuration that cannot be changed."""

    def __init__(self, path: Path, reason: str, entry: str) -> None:
        super().__init__(f"{show_place(path)} {reason}; write this into it yourself:\n{entry}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of a client's configuration file."""

    path: Path
    entry: str
    """The entry alone, in the format of the file; when it is taken out, the one that was there."""
    data: bytes
    """The new content of the file."""
    is_needed: bool
    """Whether the entry differs from the one in the file."""
    replaces: bool
    """Whether the file has an entry of this name."""
    notes: Sequence[str]
    """What the user has to do, or should know."""


Entry = dict[str, Any]
Edit = Callable[["Entry | None"], "Entry | None"]
"""Returns the new entry for the old one; None stands for no entry."""


def plan_change(name: str, directory: Path, options: Sequence[str] | None) -> Change:
    """Return the change that adds the server to a client, or without options takes it out.

    Keys of an entry that is there already stay; without any option, its options too.
    Raises ClientFileError.
    """
    client = CLIENTS[name]

    def add(before: Entry | None) -> Entry:
        wanted = list(options or ())
        kept = None if wanted else _find_options(client, before or {})
        if kept is not None:
            wanted = kept
        elif "--directory" not in wanted:
            wanted = [*client.options, *wanted]
        command = _find_command(client, wanted)
        return {**client.entry, **(before or {}), **_make_command(client, command)}

    return _plan(client, directory, add if options is not None else lambda _: None)


def _find_command(client: Client, options: Sequence[str]) -> list[str]:
    """Return a command that starts this server.

    It is a name if it is on PATH, so that others can use the same file. `llm` takes a second
    longer to start, so a user's own file has the path of the script.
    """
    script = Path(sys.executable).with_name("llm-kb")
    if shutil.which("llm-kb"):
        return ["llm-kb", "mcp", *options]
    if shutil.which("llm") and not (client.is_users and script.exists()):
        return ["llm", "kb", "mcp", *options]
    return [str(script), "mcp", *options]


def _list_notes(client: Client, entry: Entry) -> list[str]:
    notes = [client.note] if client.note else []
    words = entry["command"]
    return [*notes, SLOW] if "llm" in (words, words[0]) else notes


def _make_command(client: Client, command: Sequence[str]) -> Entry:
    if client.is_one_list:
        return {"command": list(command)}
    return {"command": command[0], "args": list(command[1:])}


def _find_options(client: Client, entry: Mapping[str, Any]) -> list[str] | None:
    """Return the options in an entry of this server; None if it has another command."""
    words = entry.get("command" if client.is_one_list else "args")
    if not isinstance(words, list) or "mcp" not in words:
        return None
    return list(map(str, words[words.index("mcp") + 1 :]))


def _plan(client: Client, directory: Path, edit: Edit) -> Change:
    path = Path(os.path.realpath(_find_file(client, directory)))  # shown as it is written to
    try:
        text = read_regular(path, follow_link=True).decode("utf-8-sig")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ClientFileError(path, f"cannot be read ({error})", json.dumps(edit(None))) from error
    change = _change_toml if path.suffix == ".toml" else _change_json
    before, after, written = change(path, text, client.key, edit)
    shown = before if after is None else after
    return Change(
        path=path,
        entry=_show(path, client.key, shown),
        data=written.encode("utf-8", "backslashreplace"),
        is_needed=before != after,
        replaces=before is not None,
        notes=_list_notes(client, after) if after is not None else (),
    )


def _find_file(client: Client, directory: Path) -> Path:
    home = os.environ.get("CODEX_HOME")
    if client.is_users:
        return Path(home) / "config.toml" if home else Path.home() / client.path
    return directory / client.path


def _change_json(
    path: Path, text: str, key: str, edit: Edit
) -> tuple[Entry | None, Entry | None, str]:
    """Return the old entry, the new one, and the new text of the file."""
    shown = _show(path, key, edit(None))
    try:
        document = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        # Such as JSON with comments, which would be lost.
        raise ClientFileError(path, f"is not plain JSON ({error})", shown) from error
    servers = document.setdefault(key, {}) if isinstance(document, dict) else None
    before = servers.get(NAME) if isinstance(servers, dict) else []
    if not isinstance(before, dict | None):
        raise ClientFileError(path, f"has no table {key!r} of tables", shown)
    after = edit(before)
    _set(servers, after)
    indent = re.search(r"\n([ \t]+)\S", text)
    written = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    return before, after, f"{written}\n"


def _change_toml(
    path: Path, text: str, key: str, edit: Edit
) -> tuple[Entry | None, Entry | None, str]:
    try:
        document = tomlkit.parse(text)
        servers = document.setdefault(key, tomlkit.table(is_super_table=True))
        before = dict(servers[NAME].unwrap()) if NAME in servers else None
        after = edit(before)
        if after is not None and before is not None:
            servers[NAME].update(after)  # in place, so that comments stay
        else:
            _set(servers, after)
        return before, after, tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, TypeError, ValueError, RecursionError) as error:
        shown = _show(path, key, edit(None))
        raise ClientFileError(path, f"is not TOML with a table {key!r} ({error})", shown) from error


def _set(servers: Any, entry: Entry | None) -> None:
    if entry is not None:
        servers[NAME] = entry
    elif NAME in servers:
        del servers[NAME]


def _show(path: Path, key: str, entry: Entry | None) -> str:
    """Return an entry as it stands in a file that has no other."""
    if path.suffix != ".toml":
        return json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
    return tomlkit.dumps({key: {NAME: entry or {}}})
