"""The configuration files of MCP clients: puts in the entry of this server, and takes it out."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from llm_kb.errors import KbError, show_place
from llm_kb.files.atomic import read_below
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import describe
from llm_kb.rendering.marks import append_block, cut_block
from llm_kb.upkeep.agent_files import Change

NAME = "llm-kb"
"""The name of the server in a client."""


CLIENTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    # https://code.claude.com/docs/en/mcp
    "claude": (".mcp.json", "mcpServers", {"alwaysLoad": True}),
    # https://developers.openai.com/codex/mcp; one of a project counts in trusted ones alone
    "codex": (
        "~/.codex/config.toml",
        "mcp_servers",
        {
            "required": True,
            "omit_tools_from": ["deferred"],
            "env_vars": ["LLM_USER_PATH", "XDG_CONFIG_HOME", "LLM_KB_CONFIG"],
        },
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
entry has besides the command, where a person's values stay."""

ASKS = {
    "claude": "Claude Code asks you to approve the server when you start it here, and before each"
    " call. To allow those that only read:\n"
    "claude --allowedTools mcp__llm-kb__learn,mcp__llm-kb__search_knowledge",
    "codex": "Codex has the server in every project. It asks before no call that only reads.",
    "gemini": "Gemini CLI asks before each call. To allow those that only read:\n"
    "gemini --allowed-tools mcp_llm-kb_learn,mcp_llm-kb_search_knowledge",
    "opencode": "opencode asks before no call.",
    "qwen": 'Qwen Code asks before each call, unless the entry has "trust": true. It starts the'
    " server once you approve it:\nqwen mcp approve llm-kb",
}
"""What clients ask a person, and the command that allows more."""


def plan_entry(client: str, root: Path, options: Sequence[str], *, undo: bool = False) -> Change:
    """Return the change that puts the server into a client's file, or takes it out. Raises KbError.

    Keys of an entry that is there stay, and its command too unless there are options. So does the
    text around it, comments and all; where that cannot be, the error says what to write.
    """
    file = _find_file(client)
    before = read_below(*((file.parent, file.name) if file.is_absolute() else (root, file)))
    text = before or ""
    command = _find_command(client, options)
    started: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if client == "opencode":
        started = {"command": command}
    entry = {**CLIENTS[client][2], **started}
    try:
        there = _read(client, text)[2]
        entry = {**entry, **there, **(started if options else {})}
        changed: str | None = text
        if there and (undo or (client != "codex" and entry != there)):
            changed = _drop(client, text, there)
        if not undo and entry != there:
            changed = _put(client, changed or "", entry)
        _check(client, text, changed or "", {} if undo else entry)
    except (ValueError, RecursionError, TOMLKitError) as error:
        raise KbError(
            f"{show_place(file)} cannot be changed: {error}\n"
            f"{'Take this out of' if undo else 'Write this into'} it yourself:\n"
            f"{_put(client, '', entry)}"
        ) from error
    return Change(str(file), before, before if changed == text else changed)


def _find_file(client: str) -> Path:
    """Return the file of a client, below the project, or of a user's own the whole path."""
    file = Path(CLIENTS[client][0])
    if client == "codex" and (home := os.environ.get("CODEX_HOME")):
        file = Path(home).absolute() / file.name
    return file if str(file)[0] not in "~/" else resolve_links(file.expanduser())


def _find_command(client: str, options: Sequence[str]) -> list[str]:
    """Return a command that starts this server.

    It is a name if it is on PATH, so that others can use the same file. `llm` takes a second
    longer to start, so a user's own file has the path of the script.
    """
    # These may start servers elsewhere, and replace the variable with the project.
    if client in {"cursor", "vscode"} and "--directory" not in options:
        options = ["--directory", "${workspaceFolder}", *options]
    script = Path(sys.executable).with_name("llm-kb")
    if shutil.which("llm-kb"):
        return ["llm-kb", "mcp", *options]
    if shutil.which("llm") and not (client == "codex" and script.exists()):
        return ["llm", "kb", "mcp", *options]
    return [str(script), "mcp", *options]


def _read(client: str, text: str) -> list[dict[str, Any]]:
    """Return the document, its table of servers and the entry. Raises ValueError."""
    plain = _hide(text) if text.strip() else "{}"
    values = [tomlkit.parse(text).unwrap() if client == "codex" else json.loads(plain)]
    for key in (CLIENTS[client][1], NAME):
        values.append(values[-1].get(key, {}) if isinstance(values[-1], dict) else None)
    if wrong := [value for value in values if not isinstance(value, dict)]:
        raise ValueError(f"found {describe(wrong[0])} where a table belongs")
    return values


def _check(client: str, text: str, changed: str, entry: Mapping[str, Any]) -> None:
    """Raise ValueError unless a changed text has the entry, and is else what it was."""
    table = CLIENTS[client][1]
    values = []
    for each in (text, changed):
        document, servers, _ = _read(client, each)
        others = {name: value for name, value in servers.items() if name != NAME}
        values.append({**document, table: others})
    if values[0] != values[1] or _read(client, changed)[2] != entry:
        raise ValueError("it has a form that is not edited in place")


def _put(client: str, text: str, entry: Mapping[str, Any]) -> str:
    """Return a text with the entry, first in its table, or as the last table of TOML."""
    table = CLIENTS[client][1]
    if client == "codex":
        parsed = tomlkit.parse(text)
        if NAME in parsed.get(table, {}):
            parsed[table][NAME].update(entry)
            return tomlkit.dumps(parsed)  # with the comments that were there
        return append_block(text or None, _render_table(entry))
    document, servers, _ = _read(client, text)
    if text.strip() in {"", "{}"}:
        return json.dumps({table: {NAME: entry}}, indent=2, ensure_ascii=False) + "\n"
    whole, last, member, _, alone, _ = _list_forms(text, table, entry)
    name = rf'"{table}"\s*:\s*' if table in document else ""
    behind = re.compile(rf"{name}\{{").search(_hide(text))
    at = behind.end() if behind else 0
    shown = (member if servers else alone) if table in document else whole if document else last
    return text[:at] + shown + text[at:]


def _drop(client: str, text: str, entry: Mapping[str, Any]) -> str | None:
    """Return a text without an entry, as it was before `_put`; None if nothing else is left.

    Raises ValueError for an entry that is written in another way.
    """
    if text == _put(client, "", entry):
        return None
    if client == "codex":
        table = _render_table(entry).rstrip().replace("\n", "\r\n" if "\r\n" in text else "\n")
        if text.count(table) == 1:
            return cut_block(text, text.index(table), text.index(table) + len(table))
    else:
        for form in _list_forms(text, CLIENTS[client][1], entry):
            if text.count(form) == 1:
                return text.replace(form, "")
    raise ValueError("the entry is not as it was written")


def _render_table(entry: Mapping[str, Any]) -> str:
    return f"[mcp_servers.{NAME}]\n{tomlkit.dumps(entry)}"


def _list_forms(text: str, table: str, entry: Mapping[str, Any]) -> Sequence[str]:
    """Return the entry as a member: with its table, before another one, after one, alone."""
    step = min(re.findall(r"\n([ \t]+)\S", text), key=len, default=None)
    end = "\r\n" if "\r\n" in text else "\n"

    def render(key: str, value: object, depth: int) -> str:
        shown = f'"{key}": {json.dumps(value, indent=step, ensure_ascii=False)}'
        return f"\n{shown}".replace("\n", f"{end}{step * depth}") if step else shown

    alone, member = f'"{NAME}": {json.dumps(entry, ensure_ascii=False)}', render(NAME, entry, 2)
    whole = render(table, {NAME: entry}, 1)
    return f"{whole},", whole, f"{member},", f",{member}", alone, member


_STRING = r'("(?:[^"\\]|\\.)*(?:"|\Z))'


def _hide(text: str) -> str:
    """Return JSON of the same length with blanks for comments and trailing commas."""
    for hidden in (r"//[^\n]*|/\*.*?(?:\*/|\Z)", r",(?=\s*[}\]])"):
        pattern = re.compile(f"{_STRING}|{hidden}", re.DOTALL)
        text = pattern.sub(lambda found: found[1] or " " * len(found[0]), text)
    return text
