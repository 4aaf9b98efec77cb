"""`llm kb trust`, through the real `llm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.scripted import Script
from tests.terminal import run_on_terminal


@pytest.fixture
def file(tmp_path: Path, user_dir: Path) -> Path:
    """A workspace that asks for `auto` and for notes of the user."""
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    path = tmp_path / "llm-kb.toml"
    path.write_text(
        '[kb]\nauto = true\n[kb.topic.notes]\nlearned = ["**"]\n'
        '[kb.topic.p]\nsubjects = "kb"\nlearned = ["a", "b"]\n'
    )
    return path


def is_auto(run_llm: RunLlm) -> bool:
    rows = {
        row["key"]: row for row in json.loads(run_llm(["kb", "config", "--all", "--json"]).stdout)
    }
    value: bool = rows["kb.auto"]["value"]
    return value


def test_what_is_asked_for_is_shown_and_recorded(
    file: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    result = run_llm(["kb", "trust", "-y"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        f"{file} asks for:\n"
        "\n"
        "  kb.auto = true\n"
        "      send its section, and offer learn, on every prompt and chat here\n"
        '  kb.topic.notes.learned = ["**"]\n'
        "      change what a model sees of your own topic\n"
        "\n"
        "Its topics: notes, p\n"
        "\n"
        f"Trusted {file}\n"
    )
    assert is_auto(run_llm)
    assert run_llm(["kb", "trust"]).stderr == f"{file} is trusted already\n"
    assert list(json.loads((user_dir / "kb-trust.json").read_text())["trusted"]) == [str(file)]


def test_without_a_terminal_a_yes_is_needed(file: Path, user_dir: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "trust"])
    assert result.exit_code == 1
    assert result.stderr.endswith("there is no terminal to ask on: Trust it? Pass -y to say yes\n")
    assert not (user_dir / "kb-trust.json").exists()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_on_a_terminal_it_asks(file: Path, run_llm: RunLlm, answer: str, code: int) -> None:
    said, exit_code = run_on_terminal(["kb", "trust"], f"{answer}\n")
    assert "Trust it? [y/N]:" in said
    assert exit_code == code
    assert is_auto(run_llm) is (answer == "y")


def test_nothing_to_trust(tmp_path: Path, run_llm: RunLlm) -> None:
    assert run_llm(["kb", "trust"]).exit_code == 1
    (tmp_path / "llm-kb.toml").touch()
    result = run_llm(["kb", "trust"])
    assert (result.exit_code, result.stderr) == (
        0,
        f"Nothing in {tmp_path}/llm-kb.toml needs trust\n",
    )


def test_trust_is_taken_back(file: Path, run_llm: RunLlm) -> None:
    run_llm(["kb", "trust", "-y"])
    assert run_llm(["kb", "trust", "--undo"]).stderr == f"{file} is no longer trusted\n"
    assert not is_auto(run_llm)
    assert run_llm(["kb", "trust", "--undo"]).stderr == f"{file} was not trusted\n"


def test_private_notes_stay_private_until_the_workspace_is_trusted(
    file: Path, home: Path, run_llm: RunLlm, script: Script
) -> None:
    (home / "notes").mkdir()
    (home / "notes" / "diary.md").write_text("Dear diary")
    untrusted = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert (
        f"llm-kb: skipped from {file}: kb.auto, kb.topic.notes.learned. This workspace is not "
        "trusted: look at it" in untrusted.stderr
    )
    assert "- notes" in script.last.system
    assert "Dear diary" not in script.last.system
    run_llm(["kb", "trust", "-y"])
    trusted = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert "skipped" not in trusted.stderr
    assert "Dear diary" in script.last.system


def test_what_could_deceive_is_shown_as_its_code(
    file: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    file.write_text('[kb.topic.notes]\ntitle = "ok \\u202E\\u2066evil"\n')
    shown = run_llm(["kb", "trust", "-y"]).stderr
    assert '  kb.topic.notes.title = "ok \\u202e\\u2066evil"\n' in shown


@pytest.mark.parametrize("command", [["prompt"], ["show", "--as-model", "p"]])
def test_what_is_withheld_is_told_where_a_request_is_shown(
    file: Path, run_llm: RunLlm, command: list[str]
) -> None:
    (file.parent / "kb").mkdir()
    (file.parent / "kb" / "a.md").write_text("A\n")
    (file.parent / "kb" / "b.md").write_text("B\n")
    assert run_llm(["kb", *command]).stderr == (
        f"llm-kb: skipped from {file}: kb.auto, kb.topic.notes.learned. This workspace is not "
        "trusted: look at it with 'llm kb config', then run 'llm kb trust'.\n"
    )
    run_llm(["kb", "trust", "-y"])
    assert "skipped" not in run_llm(["kb", *command]).stderr


def test_a_directory_that_could_deceive_is_shown_as_its_code(
    file: Path, tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a\u202eb").mkdir()
    file.rename(tmp_path / "a\u202eb" / "llm-kb.toml")
    monkeypatch.chdir(tmp_path / "a\u202eb")
    shown = run_llm(["kb", "trust", "-y"]).stderr.splitlines()[0]
    assert shown == f"'{tmp_path}/a\\u202eb/llm-kb.toml' asks for:"


@pytest.mark.parametrize(
    "args", [["trust"], ["trust", "--undo"], ["add", "p", "kb"]], ids=["trust", "untrust", "add"]
)
def test_a_current_directory_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm, args: list[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = run_llm(["kb", *args])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: the current directory is gone; change to another one\n",
    )


def test_what_auto_makes_no_difference_to_does_not_speak_of_it(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A\n")
    (tmp_path / "llm-kb.toml").write_text('[kb]\nauto = true\n[kb.topic.p]\nsubjects = "kb"\n')
    for command in (["show", "--as-model", "p/a"], ["prompt"]):
        assert run_llm(["kb", *command]).stderr == ""
    refused = run_llm(["-k", "/a", "hi"])
    assert (refused.exit_code, refused.stderr) == (
        1,
        "Error: invalid pattern '/a': it names no topic; write TOPIC/PATTERN\n",
    )


def test_a_limit_of_answers_is_named_where_there_are_answers(
    run_llm: RunLlm, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "kb").mkdir(exist_ok=True)
    (tmp_path / "kb/a.md").write_text("# A\n")
    (tmp_path / "llm-kb.toml").write_text(
        '[kb]\nmax_result_chars = 0\n[kb.topic.p]\nsubjects = "kb"\n'
    )
    assert run_llm(["-m", "scripted", "-k", "p/a", "hi"]).stderr == ""
    assert "max_result_chars" in run_llm(["-m", "scripted", "-T", "learn", "hi"]).stderr
