"""`llm kb mcp --install` writes the entry for each client, and keeps the rest of the file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from llm_kb.mcp import clients
from tests.conftest import RunLlm

PATHS = {
    "claude": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": "home/.codex/config.toml",
}

WRITTEN = {
    "claude": '{\n  "mcpServers": {\n    "llm-kb": {\n      "command": "llm-kb",\n'
    '      "args": [\n        "mcp"\n      ]\n    }\n  }\n}\n',
    "cursor": '{\n  "mcpServers": {\n    "llm-kb": {\n      "command": "llm-kb",\n'
    '      "args": [\n        "mcp",\n        "--directory",\n        "${workspaceFolder}"\n'
    "      ]\n    }\n  }\n}\n",
    "vscode": '{\n  "servers": {\n    "llm-kb": {\n      "type": "stdio",\n'
    '      "command": "llm-kb",\n      "args": [\n        "mcp",\n        "--directory",\n'
    '        "${workspaceFolder}"\n      ]\n    }\n  }\n}\n',
    "codex": '[mcp_servers.llm-kb]\ncommand = "llm-kb"\nargs = ["mcp"]\n',
}


@pytest.fixture(autouse=True)
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has `llm-kb` on its path, and where Codex keeps its file in this directory."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home/.codex"))


def read(client: str) -> str:
    return Path(PATHS[client]).read_text(encoding="utf-8")


@pytest.mark.parametrize("client", PATHS)
def test_a_new_file_has_the_entry_alone_and_is_written_once(run_llm: RunLlm, client: str) -> None:
    result = run_llm(["kb", "mcp", "--install", client, "-y"])
    assert (result.exit_code, read(client)) == (0, WRITTEN[client])
    assert result.stdout.strip() == WRITTEN[client].strip()
    before = Path(PATHS[client]).stat()
    again = run_llm(["kb", "mcp", "--install", client])
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr.endswith("already has this server\n")
    assert Path(PATHS[client]).stat() == before


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode"])
def test_the_rest_of_a_json_file_is_kept(run_llm: RunLlm, client: str) -> None:
    key = "servers" if client == "vscode" else "mcpServers"
    before = {"inputs": ["ü", 1.5], key: {"other": {"command": "x", "args": []}}, "z": None}
    path = Path(PATHS[client])
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(before, indent="\t"), encoding="utf-8")
    path.chmod(0o640)
    assert run_llm(["kb", "mcp", "--install", client, "-y"]).exit_code == 0
    text = read(client)
    after = json.loads(text)
    assert after[key].pop("llm-kb")["args"][0] == "mcp"
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
    assert '[mcp_servers.llm-kb]\ncommand = "llm-kb"\nargs = ["mcp"]\n' in read("codex")
    assert run_llm(["kb", "mcp", "--install", "codex"]).stderr.endswith("already has this server\n")


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


def test_a_link_stays_and_the_file_it_leads_to_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text("{}")
    Path(".mcp.json").symlink_to("shared.json")
    result = run_llm(["kb", "mcp", "--install", "claude", "-y"])
    assert "shared.json" in result.stderr
    assert Path(".mcp.json").is_symlink()
    assert (tmp_path / "shared.json").read_text() == WRITTEN["claude"]


def test_it_asks_first(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "mcp", "--install", "claude"])
    assert result.exit_code == 1
    assert "Pass -y to say yes" in result.stderr
    assert result.stdout.strip() == WRITTEN["claude"].strip()
    assert not Path(".mcp.json").exists()


@pytest.mark.parametrize(
    ("client", "text", "reason"),
    [
        pytest.param(
            "vscode", '{\n  // mine\n  "servers": {}\n}', "is not plain JSON", id="comment"
        ),
        pytest.param("claude", "[]", "has no table 'mcpServers'", id="list"),
        pytest.param("claude", '{"mcpServers": []}', "has no table 'mcpServers'", id="not a table"),
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


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"llm-kb", "llm"}, ("llm-kb", ["mcp", "-d", "x"])),
        ({"llm"}, ("llm", ["kb", "mcp", "-d", "x"])),
    ],
)
def test_the_command_is_one_that_a_shell_finds(
    monkeypatch: pytest.MonkeyPatch, there: set[str], expected: tuple[str, list[str]]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name in there else None)
    assert clients.find_command(["-d", "x"]) == expected


def test_without_one_it_is_the_script_beside_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    command, arguments = clients.find_command([])
    assert Path(command).is_absolute()
    assert (Path(command).name, arguments) == ("llm-kb", ["mcp"])
