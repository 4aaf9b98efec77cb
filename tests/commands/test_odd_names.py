"""Names that are too long or not text give a message, never a traceback."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.conftest import RunLlm

pytestmark = pytest.mark.skipif(
    sys.platform in {"win32", "darwin"}, reason="names there are always text"
)

LONG = "x" * 5000
NO_TEXT = os.fsdecode(b"a\xffb")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in a directory whose name is no text."""
    root = tmp_path / NO_TEXT
    root.mkdir()
    (root / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    monkeypatch.chdir(root)
    return root


def test_paths_are_printed_as_the_bytes_they_are(workspace: Path, run_llm: RunLlm) -> None:
    assert (
        run_llm(["kb", "config", "--path"]).stdout_bytes
        == os.fsencode(workspace / "llm-kb.toml") + b"\n"
    )
    assert run_llm(["kb", "new", "p/x"]).stdout_bytes == os.fsencode(workspace / "kb/x.md") + b"\n"


def test_the_configuration_is_shown_with_codes(workspace: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "config"])
    assert result.exit_code == 0
    assert result.stdout.endswith(f"\n# workspace: {str(workspace / 'llm-kb.toml')!a}\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\nb", "a\\nb", id="line feed"),
        pytest.param("a\u202eb", "a\\u202eb", id="turned around"),
        pytest.param("a\x1b[2Jb", "a\\x1b[2Jb", id="escape sequence"),
        pytest.param(NO_TEXT, "a\\udcffb", id="no text"),
    ],
)
def test_messages_name_places_with_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm, name: str, shown: str
) -> None:
    """Each message is one line of what a terminal can show, wherever the workspace is."""
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setenv("EDITOR", "")
    file = f"'{tmp_path}/{shown}/llm-kb.toml'"

    def said(*args: str) -> str:
        return run_llm(["kb", *args]).stderr

    assert said("init").splitlines()[0] == f"Wrote {file}"
    assert said("init") == (
        "Left out:\n       1  other file\nEvery other page is in a topic already\n"
    )
    assert said("trust") == f"Nothing in {file} needs trust\n"
    assert said("add", "p", "kp") == (
        f"Added topic p to {file}\n"
        f"'{tmp_path}/{shown}/kp' does not exist yet; 'llm kb new p/SLUG' creates it\n"
    )
    said("new", "p/x")
    sent = "sent with every prompt that uses -T learn or -k"
    assert said("preload", "p/x") == f"x is now {sent} ({file})\n"
    edit = f"Error: there is no terminal to edit on; the file is '{tmp_path}/{shown}/kp/x.md'\n"
    assert said("edit", "p/x") == edit
    assert said("list", "--kb-cfg", "nope") == (
        f"Error: unknown config fragment 'nope'; available: none (in '{tmp_path}/{shown}"
        "/.llm/config.d')\n"
    )
    assert said("remove", "p") == (
        f"Error: there is no terminal to ask on: Remove topic p from {file}? Pass -y to say yes\n"
    )
    assert said("remove", "p", "-y") == (
        f"Removed topic p from {file}; its files are where they were\n"
    )
    (tmp_path / name / "llm-kb.toml").write_text("[kb]\nauto = true\n")
    assert said("config") == f"llm-kb: kb.auto in {file} waits for 'llm kb trust'\n"
    assert "skipped" not in said("prompt")  # which `auto` makes no difference to
    assert said("trust", "-y").endswith(f"\nTrusted {file}\n")
    assert said("trust") == f"{file} is trusted already\n"
    assert said("trust", "--undo") == f"{file} is no longer trusted\n"
    assert said("trust", "--undo") == f"{file} was not trusted\n"
    (tmp_path / name / "llm-kb.toml").write_text("nope = 1\n")
    assert said("list").startswith(f"Error: {file}: ")


@pytest.mark.parametrize(("command", "code"), [("list", 0), ("check", 1)])
def test_a_missing_directory_is_shown_with_codes(
    workspace: Path, run_llm: RunLlm, command: str, code: int
) -> None:
    result = run_llm(["kb", command])
    assert (result.exit_code, "a\\udcffb" in result.stdout) == (code, True)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param(["config", "--kb-cfg", LONG], 1, id="fragment, long"),
        pytest.param(["config", "--kb-cfg", NO_TEXT], 1, id="fragment, no text"),
        pytest.param(["config", "--kb-cfg", f"kb.topic.p.title={NO_TEXT}"], 1, id="assignment"),
        pytest.param(["add", "q", LONG], 1, id="directory, long"),
        pytest.param(["add", "q", NO_TEXT], 1, id="directory, no text"),
        pytest.param(["add", NO_TEXT, "kb"], 1, id="id, no text"),
        pytest.param(["add", "q", "kb", "--title", NO_TEXT], 1, id="title, no text"),
        pytest.param(["preload", f"p/{NO_TEXT}"], 1, id="pattern, no text"),
        pytest.param(["new", f"p/{LONG}"], 1, id="slug, long"),
        pytest.param(["new", f"p/{NO_TEXT}"], 1, id="slug, no text"),
        pytest.param(["edit", f"p/{LONG}"], 1, id="edit, long"),
        pytest.param(["edit", f"p/{NO_TEXT}"], 1, id="edit, no text"),
        pytest.param(["remove", NO_TEXT, "-y"], 1, id="remove, no text"),
    ],
)
def test_nothing_ends_in_a_traceback(
    workspace: Path, run_llm: RunLlm, args: list[str], code: int
) -> None:
    before = (workspace / "llm-kb.toml").read_text()
    result = run_llm(["kb", *args])
    assert (result.exit_code, type(result.exception)) == (
        code,
        SystemExit if code else type(None),
    )
    if code:
        assert result.stderr.startswith("Error: ")
        assert (workspace / "llm-kb.toml").read_text() == before
