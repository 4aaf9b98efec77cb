"""`llm kb mcp --install` writes the entry for each client, and keeps the rest of the file."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tests.conftest import RunLlm
from tests.repositories import make_repo

PATHS = {
    "claude": ".mcp.json",
    "codex": "home/.codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
    "qwen": ".qwen/settings.json",
    "vscode": ".vscode/mcp.json",
}

STARTED = {"command": "llm-kb", "args": ["mcp"]}
IN_EDITOR = {"command": "llm-kb", "args": ["mcp", "--directory", "${workspaceFolder}"]}

ENTRIES = {
    "claude": ("mcpServers", {"alwaysLoad": True, **STARTED}),
    "codex": ("mcp_servers", {"required": True, "omit_tools_from": ["deferred"], **STARTED}),
    "cursor": ("mcpServers", IN_EDITOR),
    "gemini": ("mcpServers", STARTED),
    "opencode": ("mcp", {"type": "local", "command": ["llm-kb", "mcp"]}),
    "qwen": ("mcpServers", {"alwaysLoadTools": True, **STARTED}),
    "vscode": ("servers", {"type": "stdio", **IN_EDITOR}),
}

JSON = [client for client in PATHS if client != "codex"]


def put_on_path(monkeypatch: pytest.MonkeyPatch, directory: Path, *programs: str) -> None:
    """Let a shell find these programs, git and no others."""
    directory.mkdir()
    (directory / "git").symlink_to(str(shutil.which("git")))
    for name in programs:
        (directory / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(directory))


@pytest.fixture(autouse=True)
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has `llm-kb` on its path, and where Codex keeps its file in this directory."""
    put_on_path(monkeypatch, tmp_path / "bin", "llm-kb", "llm")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home/.codex"))


@pytest.fixture
def topic(user_dir: Path, tmp_path: Path) -> None:
    """A topic of the user, which can be pre-loaded from."""
    (tmp_path / "kb").mkdir()
    for name in ("a", "b", "b c"):
        (tmp_path / "kb" / f"{name}.md").write_text(name)
    (user_dir / "kb.toml").write_text(f'[kb.topic.project]\nsubjects = "{tmp_path}/kb"\n')


def read(client: str) -> str:
    return Path(PATHS[client]).read_text(encoding="utf-8")


def entry_of(client: str) -> dict[str, Any]:
    """Return the entry in a client's file."""
    key, _ = ENTRIES[client]
    loads = tomlkit.parse if client == "codex" else json.loads
    return dict(loads(read(client))[key]["llm-kb"])


def written(client: str) -> str:
    """Return a file that has nothing but the entry."""
    key, entry = ENTRIES[client]
    document = {key: {"llm-kb": entry}}
    if client == "codex":
        return tomlkit.dumps(document)
    return json.dumps(document, indent=2) + "\n"


@pytest.mark.parametrize("client", PATHS)
def test_a_new_file_has_the_entry_alone_and_is_written_once(run_llm: RunLlm, client: str) -> None:
    result = run_llm(["kb", "mcp", "--install", client, "-y"])
    assert (result.exit_code, read(client)) == (0, written(client))
    assert result.stdout.strip() == written(client).strip()
    before = Path(PATHS[client]).stat()
    again = run_llm(["kb", "mcp", "--install", client])
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr.endswith("already has this server\n")
    assert Path(PATHS[client]).stat() == before


@pytest.mark.parametrize("client", JSON)
def test_the_rest_of_a_json_file_is_kept(run_llm: RunLlm, client: str) -> None:
    key, entry = ENTRIES[client]
    before = {"inputs": ["ü", 1.5], key: {"other": {"command": "x", "args": []}}, "z": None}
    path = Path(PATHS[client])
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(before, indent="\t"), encoding="utf-8")
    path.chmod(0o640)
    assert run_llm(["kb", "mcp", "--install", client, "-y"]).exit_code == 0
    text = read(client)
    after = json.loads(text)
    assert after[key].pop("llm-kb") == entry
    assert after == before
    assert list(after) == list(before)
    assert '\n\t"inputs"' in text
    assert "ü" in text
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_rest_of_a_toml_file_is_kept_with_its_comments(run_llm: RunLlm) -> None:
    before = (
        '# mine\nmodel = "m"\n\n[mcp_servers.other] # that\ncommand = "x"\n\n'
        '[profiles.p]\nmodel = "n"\n'
    )
    path = Path(PATHS["codex"])
    path.parent.mkdir(parents=True)
    path.write_text(before)
    assert run_llm(["kb", "mcp", "--install", "codex", "-y"]).exit_code == 0
    assert [line for line in before.splitlines() if line not in read("codex")] == []
    assert (
        '[mcp_servers.llm-kb]\nrequired = true\nomit_tools_from = ["deferred"]\n'
        'command = "llm-kb"\nargs = ["mcp"]\n'
    ) in read("codex")
    assert run_llm(["kb", "mcp", "--install", "codex"]).stderr.endswith("already has this server\n")


@pytest.mark.usefixtures("topic")
def test_options_are_written_and_replace_those_of_before(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    run_llm(["kb", "mcp", "--install", "claude", "-y"])
    options = "-d sub -k project/a -k 'project/b c' --kb-cfg kb.menu_budget=50"
    result = run_llm(["kb", "mcp", *shlex.split(options), "--install", "claude", "-y"])
    assert result.exit_code == 0
    assert json.loads(read("claude"))["mcpServers"]["llm-kb"]["args"] == [
        *("mcp", "--directory", str(tmp_path / "sub")),
        *("-k", "project/a", "-k", "project/b c", "--kb-cfg", "kb.menu_budget=50"),
    ]


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("client", PATHS)
def test_what_the_user_added_to_the_entry_is_kept(run_llm: RunLlm, client: str) -> None:
    run_llm(["kb", "mcp", "-k", "project/a", "--install", client, "-y"])
    key, _ = ENTRIES[client]
    path = Path(PATHS[client])
    added = {"env": {"A": "b"}, "timeout": 5, "alwaysLoad": False, "required": False}
    if client == "codex":
        document = tomlkit.parse(path.read_text())
        document[key]["llm-kb"].update(added)
        path.write_text(tomlkit.dumps(document).replace("timeout", "# mine\ntimeout"))
    else:
        changed = json.loads(path.read_text())
        changed[key]["llm-kb"].update(added)
        path.write_text(json.dumps(changed))
    before = entry_of(client)
    again = run_llm(["kb", "mcp", "-k", "project/a", "--install", client])
    assert again.stderr.endswith("already has this server\n")
    assert entry_of(client) == before
    run_llm(["kb", "mcp", "-k", "project/b", "--install", client, "-y"])
    text = read(client)
    assert {name: entry_of(client)[name] for name in added} == added
    assert "project/b" in text
    assert "project/a" not in text
    assert client != "codex" or "# mine" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            'required = true\ncommand = "llm-kb"\nargs = ["mcp"]\n',
            'required = true\ncommand = "llm-kb"\nargs = ["mcp"]\nomit_tools_from = ["deferred"]\n',
            id="an entry of before",
        ),
        pytest.param(
            'required = false # mine\nomit_tools_from = []\ncommand = "llm-kb"\nargs = ["mcp"]\n',
            None,
            id="the user's own values",
        ),
    ],
)
def test_what_an_entry_lacks_is_added_to_it(
    run_llm: RunLlm, before: str, after: str | None
) -> None:
    path = Path(PATHS["codex"])
    path.parent.mkdir(parents=True)
    path.write_text(f"[mcp_servers.llm-kb]\n{before}")
    assert run_llm(["kb", "mcp", "--install", "codex", "-y"]).exit_code == 0
    assert path.read_text() == f"[mcp_servers.llm-kb]\n{after or before}"


@pytest.mark.parametrize("client", PATHS)
def test_a_broken_configuration_is_reported_and_the_entry_written(
    run_llm: RunLlm, client: str
) -> None:
    Path("llm-kb.toml").write_text("[kb.topic")
    result = run_llm(["kb", "mcp", "--install", client, "-y"])
    assert (result.exit_code, read(client)) == (0, written(client))
    assert "llm-kb.toml is not valid TOML" in result.stderr
    assert "The entry works once that is fixed" in result.stderr
    Path(PATHS[client]).unlink()
    assert run_llm(["kb", "mcp", "-k", "t", "--install", client, "-y"]).exit_code == 1
    assert not Path(PATHS[client]).exists()


@pytest.mark.parametrize("marker", ["llm-kb.toml", ".git/HEAD"])
def test_the_file_is_that_of_the_project_from_any_directory_in_it(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    if marker == "llm-kb.toml":
        (tmp_path / marker).write_text("")
    else:
        make_repo(tmp_path)
    (tmp_path / "sub" / "deeper").mkdir(parents=True)
    monkeypatch.chdir("sub/deeper")
    result = run_llm(["kb", "mcp", "--install", "claude", "-y"])
    assert f"Wrote {tmp_path}/.mcp.json; restart claude" in result.stderr
    assert "Claude Code asks you to approve the server" in result.stderr
    assert (tmp_path / ".mcp.json").read_text() == written("claude")


def test_a_link_stays_and_the_file_it_leads_to_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text("{}")
    Path(".mcp.json").symlink_to("shared.json")
    result = run_llm(["kb", "mcp", "--install", "claude", "-y"])
    assert "shared.json" in result.stderr
    assert Path(".mcp.json").is_symlink()
    assert (tmp_path / "shared.json").read_text() == written("claude")


def test_knowledge_that_does_not_exist_is_not_written(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "mcp", "-k", "nope", "--install", "claude", "-y"])
    assert (result.exit_code, "unknown topic 'nope'" in result.stderr) == (1, True)
    assert not Path(".mcp.json").exists()


def test_it_asks_first(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "mcp", "--install", "claude"])
    assert result.exit_code == 1
    assert "Pass -y to say yes" in result.stderr
    assert result.stdout.strip() == written("claude").strip()
    assert not Path(".mcp.json").exists()


@pytest.mark.parametrize(
    ("client", "text", "reason"),
    [
        pytest.param(
            "vscode", '{\n  // mine\n  "servers": {}\n}', "is not plain JSON", id="comment"
        ),
        pytest.param("claude", "[]", "is not plain JSON with a table 'mcpServers'", id="list"),
        pytest.param(
            "claude",
            '{"mcpServers": []}',
            "is not plain JSON with a table 'mcpServers'",
            id="not a table",
        ),
        pytest.param(
            "gemini",
            '{"mcpServers": {"llm-kb": 3}}',
            "is not plain JSON with a table 'mcpServers'",
            id="number",
        ),
        pytest.param("codex", "mcp_servers.llm-kb = 3", "is not TOML with a table", id="entry"),
        pytest.param("claude", "[" * 100_000, "is not plain JSON", id="deep"),
        pytest.param("codex", "[mcp_servers", "is not TOML with a table", id="not TOML"),
        pytest.param("codex", "mcp_servers = 3", "is not TOML with a table", id="number"),
    ],
)
def test_a_file_that_would_lose_something_stays_as_it_is(
    run_llm: RunLlm, client: str, text: str, reason: str
) -> None:
    path = Path(PATHS[client])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    result = run_llm(["kb", "mcp", "--install", client, "-y"])
    assert result.exit_code == 1
    assert reason in result.stderr
    assert "write this into it yourself" in result.stderr
    assert '"llm-kb"' in result.stderr or "llm-kb]" in result.stderr
    assert path.read_text() == text


def test_a_file_that_is_not_utf_8_stays_as_it_is(run_llm: RunLlm) -> None:
    Path(".mcp.json").write_bytes(b'{"a": "\xff"}')
    result = run_llm(["kb", "mcp", "--install", "claude", "-y"])
    assert (result.exit_code, "is not plain JSON" in result.stderr) == (1, True)
    assert Path(".mcp.json").read_bytes() == b'{"a": "\xff"}'


def test_a_file_that_cannot_be_read_is_told(run_llm: RunLlm) -> None:
    Path(".mcp.json").mkdir()
    result = run_llm(["kb", "mcp", "--install", "claude", "-y"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert ".mcp.json" in result.stderr


SCRIPT = str(Path(sys.executable).with_name("llm-kb"))


@pytest.mark.parametrize(
    ("client", "there", "started"),
    [
        ("gemini", {"llm-kb", "llm"}, ["llm-kb", "mcp"]),
        ("gemini", {"llm"}, ["llm", "kb", "mcp"]),
        ("gemini", set(), [SCRIPT, "mcp"]),
        ("codex", {"llm-kb", "llm"}, ["llm-kb", "mcp"]),
        ("codex", {"llm"}, [SCRIPT, "mcp"]),
    ],
)
def test_the_command_is_one_that_a_shell_finds_or_the_script_beside_this_python(
    run_llm: RunLlm,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    there: set[str],
    started: list[str],
) -> None:
    put_on_path(monkeypatch, Path("others").absolute(), *there)
    result = run_llm(["kb", "mcp", "--install", client, "-y"])
    entry = entry_of(client)
    assert [entry["command"], *entry["args"]] == started
    assert ("llm-kb is not on your PATH" in result.output) == (started[0] == "llm")
