"""`llm kb connect` writes the entry for each client, and keeps the rest of the file."""

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
    "codex": (
        "mcp_servers",
        {
            "required": True,
            "omit_tools_from": ["deferred"],
            "env_vars": ["LLM_USER_PATH", "XDG_CONFIG_HOME", "LLM_KB_CONFIG"],
            **STARTED,
        },
    ),
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


CONNECT = {client: ["kb", "connect", client, "--mcp", "-y"] for client in PATHS}


@pytest.mark.parametrize("client", PATHS)
def test_a_new_file_has_the_entry_alone_is_written_once_and_taken_away(
    run_llm: RunLlm, client: str
) -> None:
    result = run_llm(CONNECT[client])
    assert (result.exit_code, read(client)) == (0, written(client))
    assert result.stdout == "".join(f"+{line}\n" for line in written(client).splitlines())
    before = Path(PATHS[client]).stat()
    for command in (CONNECT[client], ["kb", "connect", client, "--mcp", "--check"]):
        again = run_llm(command)
        assert (again.exit_code, again.stdout) == (0, "")
        assert again.stderr == "Everything is up to date.\n"
    assert Path(PATHS[client]).stat() == before
    undone = run_llm([*CONNECT[client], "--undo"])
    lines = [f"-{line}\n" for line in written(client).splitlines()]
    assert undone.stdout == "".join(["@@ line 1 @@\n", *lines])
    assert not Path(PATHS[client]).exists()
    assert run_llm([*CONNECT[client], "--undo"]).stderr == "Nothing to take out.\n"
    assert run_llm(["kb", "connect", client, "--mcp", "--check"]).exit_code == 1


OTHERS = {
    "tabs": '{\n\t"inputs": ["ü", 1.5],\n\t"KEY": {\n\t\t"other": {}\n\t},\n\t"z": null\n}',
    "in lines": '{"a": 1, "KEY": {"other": {"args": ["a", "b"]}}}\n',
    "no table": '{\n  "a": 1e3\n}\n',
    "no table, in a line": '{"a": [1, 2]}',
    "empty table": '{\n  "KEY": {},\n  "a": 1\n}\n',
    "spaced table": '{\n  "KEY": {\n  }\n}\n',
    "comments": '// {\n{\n  /* "KEY": { */\n  "KEY": {\n    // it\n    "o": {}, // that\n  },\n}\n',
    "a comment": "{\n  // mine\n}\n",
    "windows": '{\r\n    "KEY": {\r\n        "other": {}\r\n    }\r\n}\r\n',
    "strings": '{\n  "a": "// no comment",\n  "KEY": {\n    "x,}": {"url": "http://x"}\n  }\n}\n',
}


@pytest.mark.parametrize("client", ["claude", "opencode", "vscode"])
@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_the_rest_of_a_json_file_stays_and_undo_is_to_the_byte(
    run_llm: RunLlm, client: str, text: str
) -> None:
    text = text.replace("KEY", ENTRIES[client][0])
    path = Path(PATHS[client])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(0o640)
    assert run_llm(CONNECT[client]).exit_code == 0
    after = path.read_bytes().decode()
    rest = iter(after)
    assert all(character in rest for character in text)  # nothing was lost
    assert ("\r\n" in text) == ("\r\n" in after)
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in text
    assert after.count('"llm-kb"') >= 1
    assert path.stat().st_mode & 0o777 == 0o640
    assert run_llm(CONNECT[client]).stderr == "Everything is up to date.\n"
    assert run_llm([*CONNECT[client], "--undo"]).exit_code == 0
    assert path.read_bytes() == text.encode()


def test_an_entry_that_the_client_has_moved_is_taken_out(run_llm: RunLlm) -> None:
    run_llm(CONNECT["claude"])
    servers = {"a": {"command": "x"}, **json.loads(read("claude"))["mcpServers"]}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}, indent=2))
    assert run_llm([*CONNECT["claude"], "--undo"]).exit_code == 0
    assert json.loads(read("claude")) == {"mcpServers": {"a": {"command": "x"}}}


@pytest.mark.parametrize(
    "before",
    [
        '# mine\n\n[mcp_servers.other] # that\ncommand = "x"\n\n# p\n[profiles.p]\nmodel = "n"\n',
        'model = "m"',
        'model = "m"\r\n\r\n[a]\r\nb = 1\r\n',
    ],
)
def test_the_rest_of_a_toml_file_stays_and_undo_is_to_the_byte(
    run_llm: RunLlm, before: str
) -> None:
    path = Path(PATHS["codex"])
    path.parent.mkdir(parents=True)
    path.write_bytes(before.encode())
    assert run_llm(CONNECT["codex"]).exit_code == 0
    assert path.read_bytes().decode().startswith(before)
    assert entry_of("codex") == ENTRIES["codex"][1]
    assert run_llm(CONNECT["codex"]).stderr == "Everything is up to date.\n"
    assert run_llm([*CONNECT["codex"], "--undo"]).exit_code == 0
    assert path.read_bytes() == before.encode()


@pytest.mark.usefixtures("topic")
def test_options_are_written_and_replace_those_of_before(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    run_llm(["kb", "connect", "claude", "--mcp", "-y"])
    options = "-d sub -k project/a -k 'project/b c' --with capture"
    result = run_llm(["kb", "connect", "claude", "--mcp", "-y", "--", *shlex.split(options)])
    assert result.exit_code == 0
    assert json.loads(read("claude"))["mcpServers"]["llm-kb"]["args"] == [
        *("mcp", "-d", "sub", "-k", "project/a", "-k", "project/b c", "--with", "capture"),
        *("--directory", str(tmp_path / "sub")),
    ]
    assert run_llm(CONNECT["claude"]).stderr == "Everything is up to date.\n"


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("client", PATHS)
def test_what_a_person_added_to_the_entry_is_kept(run_llm: RunLlm, client: str) -> None:
    added = {"env": {"A": "b"}, "timeout": 5, "alwaysLoad": False, "required": False}
    path = Path(PATHS[client])
    run_llm([*CONNECT[client], "--", "-k", "project/a"])
    if client == "codex":
        document = tomlkit.parse(path.read_text())
        document["mcp_servers"]["llm-kb"].update(added)
        path.write_text(tomlkit.dumps(document).replace("timeout", "# mine\ntimeout"))
    else:
        changed = json.loads(path.read_text())
        changed[ENTRIES[client][0]]["llm-kb"].update(added)
        path.write_text(json.dumps(changed, indent=2))
    before = entry_of(client)
    assert run_llm(CONNECT[client]).stderr == "Everything is up to date.\n"
    assert entry_of(client) == before
    assert run_llm([*CONNECT[client], "--", "-k", "project/b"]).exit_code == 0
    assert {name: entry_of(client)[name] for name in added} == added
    assert "project/b" in read(client)
    assert "project/a" not in read(client)
    assert client != "codex" or "# mine" in read(client)


def test_what_an_entry_lacks_is_added_to_it(run_llm: RunLlm) -> None:
    path = Path(PATHS["codex"])
    path.parent.mkdir(parents=True)
    before = '[mcp_servers.llm-kb]\nrequired = false # mine\ncommand = "llm-kb"\nargs = ["mcp"]\n'
    path.write_text(before)
    assert run_llm(CONNECT["codex"]).exit_code == 0
    assert path.read_text() == (
        f'{before}omit_tools_from = ["deferred"]\n'
        'env_vars = ["LLM_USER_PATH", "XDG_CONFIG_HOME", "LLM_KB_CONFIG"]\n'
    )


def test_nothing_is_written_for_a_broken_configuration(run_llm: RunLlm) -> None:
    Path("llm-kb.toml").write_text("[kb.topic")
    result = run_llm(CONNECT["claude"])
    assert (result.exit_code, "llm-kb.toml is not valid TOML" in result.stderr) == (1, True)
    assert not Path(".mcp.json").exists()


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
    result = run_llm(["kb", "connect", "claude", "--mcp", "-y"])
    assert "the menu, about " in result.stderr
    assert result.stderr.endswith(
        "\nClaude Code asks you to approve the server when you start it here, and before each call."
        " To allow those that only read:\n"
        "claude --allowedTools mcp__llm-kb__learn,mcp__llm-kb__search_knowledge\n"
        "Changed .mcp.json\n"
    )
    assert (tmp_path / ".mcp.json").read_text() == written("claude")


def test_a_link_stays(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text("{}")
    Path(".mcp.json").symlink_to("shared.json")
    assert run_llm(CONNECT["claude"]).exit_code == 0
    assert Path(".mcp.json").is_symlink()
    assert (tmp_path / "shared.json").read_text() == written("claude")


@pytest.mark.usefixtures("topic")
def test_it_says_what_a_session_costs(run_llm: RunLlm) -> None:
    result = run_llm(CONNECT["opencode"])
    assert "1 tool and the menu, about 2" in result.stderr
    assert "tokens in every session\nopencode asks before no call.\n" in result.stderr


def test_knowledge_that_does_not_exist_is_not_written(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "connect", "claude", "--mcp", "-y", "--", "-k", "nope"])
    assert (result.exit_code, "unknown topic 'nope'" in result.stderr) == (1, True)
    assert not Path(".mcp.json").exists()


def test_it_asks_first(run_llm: RunLlm) -> None:
    result = run_llm(CONNECT["claude"][:-1])
    assert result.exit_code == 1
    assert "Change .mcp.json? Pass -y to say yes" in result.stderr
    assert '+    "llm-kb": {\n' in result.stdout
    assert not Path(".mcp.json").exists()


@pytest.mark.parametrize(
    ("client", "text", "reason"),
    [
        ("claude", "[]", "found a list where a table belongs"),
        ("claude", "null", "found nothing where a table belongs"),
        ("claude", '{"mcpServers": null}', "found nothing where a table belongs"),
        ("claude", '{"mcpServers": []}', "found a list where a table belongs"),
        ("gemini", '{"mcpServers": {"llm-kb": "x"}}', "found 'x' where a table belongs"),
        ("claude", '{"a" 1}', "Expecting ':' delimiter"),
        ("claude", "{3: 1}", "Expecting property name enclosed in double quotes"),
        ("claude", '{"a": {"mcpServers": {}}, "mcpServers": {"x": 1}}', "is not edited in place"),
        ("codex", "mcp_servers.llm-kb = 3", "found the number 3 where a table belongs"),
        ("codex", "mcp_servers = {other = {command = 'x'}}", ""),
        ("claude", "[" * 100_000, "recursion"),
        ("codex", "[mcp_servers", ""),
    ],
)
def test_a_file_that_cannot_be_edited_stays_and_the_text_to_add_is_shown(
    run_llm: RunLlm, client: str, text: str, reason: str
) -> None:
    path = Path(PATHS[client])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    result = run_llm(CONNECT[client])
    assert result.exit_code == 1
    assert f"cannot be changed: {reason}" in result.stderr or reason in result.stderr
    assert result.stderr.endswith(f"\nWrite this into it yourself:\n{written(client)}\n")
    assert path.read_text() == text


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_an_entry_of_another_form_is_not_taken_out(run_llm: RunLlm, client: str) -> None:
    run_llm(CONNECT[client])
    path = Path(PATHS[client])
    path.write_text(read(client).replace('"mcp"', ' "mcp"  '))
    before = read(client)
    result = run_llm([*CONNECT[client], "--undo"])
    assert result.exit_code == 1
    assert "the entry is not as it was written\nTake this out of it yourself:" in result.stderr
    assert read(client) == before


def test_a_file_that_is_not_utf_8_stays_as_it_is(run_llm: RunLlm) -> None:
    Path(".mcp.json").write_bytes(b'{"a": "\xff"}')
    assert run_llm(CONNECT["claude"]).exit_code == 1
    assert Path(".mcp.json").read_bytes() == b'{"a": "\xff"}'


def test_a_file_that_cannot_be_read_is_told(run_llm: RunLlm) -> None:
    Path(".mcp.json").mkdir()
    result = run_llm(["kb", "connect", "claude", "--mcp", "-y"])
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
    result = run_llm(["kb", "connect", client, "--mcp", "-y"])
    entry = entry_of(client)
    assert [entry["command"], *entry["args"]] == started
    assert result.exit_code == 0
