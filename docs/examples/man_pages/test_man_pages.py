"""The add-on as it is installed: in `llm kb`, in a request of `llm`, and over MCP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (
    '.TH FROB 1\n.SH "NAME"\nfrob \\- turn knobs\n.SH OPTIONS\n.B \\-\\-walrus\nTurns the walrus.\n'
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "frob.1").write_text(PAGE)
    (tmp_path / "llm-kb.toml").write_text("[kb]\nauto = false\n")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "kb.toml").write_text("[kb.man]\noffer = true\n")
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "llm", *arguments],
        input=given, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_commands(project: Path) -> None:
    assert run("kb", "list").split()[:3] == ["man", "Manual", "pages"]
    assert "turn knobs" in run("kb", "show", "man/frob.1")
    assert "Turns the walrus" in run("kb", "search", "walrus")


def test_a_request_has_the_topic_and_the_tool(project: Path) -> None:
    code = (
        "import llm_kb; kb = llm_kb.KnowledgeBase.discover(); print(kb.section());"
        "(tool,) = kb.added_tools(['man_option']); print(tool.implementation(option='--walrus'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "- man (**Manual pages**)" in done.stdout
    assert done.stdout.endswith("frob.1: --walrus\nTurns the walrus.\n\n")


def test_a_client_has_the_tool(project: Path) -> None:
    call = {"name": "man_option", "arguments": {"option": "--walrus"}}
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": call},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in requests)
    _, listed, called = map(json.loads, run("kb", "mcp", given=lines).splitlines())
    assert "man_option" in [tool["name"] for tool in listed["result"]["tools"]]
    assert "Turns the walrus" in called["result"]["content"][0]["text"]
