"""The menu for agents with a shell, and `llm code`, whose model runs our commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import llm
import llm.cli
import pytest

from tests.conftest import RunLlm
from tests.golden_files import Golden
from tests.scripted import Script

WORKSPACE = """\
[kb.topic.project]
title = "Working here"
introduction = "How we work."
subjects = "kb"
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one topic, in the current directory, and no script on PATH."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "review.md").write_text("Two people read each change.\n")
    (tmp_path / "llm-kb.toml").write_text(WORKSPACE)
    monkeypatch.setenv("PATH", os.defpath)
    return tmp_path


@pytest.fixture
def code(script: Script) -> Iterator[dict[str, Any]]:
    """The arguments that `llm code` of llm-coding-agent was called with; see `make field`."""
    given: dict[str, Any] = {}

    @click.command()
    @click.argument("prompt", required=False)
    @click.option("-s", "--system")
    @click.option("-d", "--directory", default=".")
    @click.option("no_tools", "--no-tool", multiple=True)
    @click.option("_continue", "-c", "--continue", is_flag=True)
    @click.option("conversation_id", "--cid")
    def code(prompt: str | None, **options: Any) -> None:
        given.update(options)
        llm.get_model("scripted").prompt(prompt, system=options["system"]).text()

    assert code.callback is not None
    code.callback.__module__ = "llm_coding_agent.cli"
    llm.cli.cli.add_command(code)
    yield given
    del llm.cli.cli.commands["code"]


@pytest.fixture
def automatic(user_dir: Path) -> None:
    """A user who wants the knowledge base everywhere."""
    (user_dir / "kb.toml").write_text("[kb]\nauto = true\n")


def test_menu_for_a_shell_ends_with_the_commands(
    workspace: Path, run_llm: RunLlm, golden: Golden
) -> None:
    result = run_llm(["kb", "prompt", "--shell"])
    assert result.stderr == ""
    golden("section_for_a_shell.txt", result.stdout)


def test_script_is_named_where_it_is_on_path(
    workspace: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, own_directory: Path
) -> None:
    script = own_directory / "llm-kb"
    script.touch(0o755)
    monkeypatch.setenv("PATH", str(own_directory))
    section = run_llm(["kb", "prompt", "--shell"]).stdout
    assert "`llm-kb show --as-model TOPIC/SUBJECT`" in section
    assert "llm kb" not in section


def test_counted_topic_names_the_command_that_lists_it(workspace: Path, run_llm: RunLlm) -> None:
    for number in range(200):
        (workspace / "kb" / f"a-long-name-of-a-page-{number}.md").write_text("Text.\n")
    result = run_llm(["kb", "prompt", "--shell", "--kb-cfg", "kb.menu=subjects"])
    assert "  - 201 subjects, run `llm kb list project`\n" in result.stdout
    assert "counted" in result.stderr


def test_shell_without_menu_is_what_is_preloaded(workspace: Path, run_llm: RunLlm) -> None:
    options = ["kb", "prompt", "-k", "project/review", "--preloaded"]
    assert run_llm([*options, "--shell"]).stdout == run_llm(options).stdout


Code = dict[str, Any]


@pytest.mark.usefixtures("automatic")
def test_code_gets_the_menu_that_auto_asks_for(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    section = run_llm(["kb", "prompt", "--shell"]).stdout
    result = run_llm(["code", "-s", "Be brief.", "hi"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert script.last.system == f"{section}\nBe brief."


@pytest.mark.usefixtures("automatic")
def test_code_uses_the_workspace_of_its_directory(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code, home: Path
) -> None:
    os.chdir(home)
    run_llm(["code", "-d", str(workspace / "kb"), "hi"])
    assert "- project (**Working here**)" in script.last.system


def test_code_gets_nothing_unasked(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    assert run_llm(["code", "hi"]).exit_code == 0
    assert script.last.system == ""


@pytest.mark.usefixtures("automatic")
@pytest.mark.parametrize("options", [["--no-kb"], ["--no-tool", "execute_command"], ["-c"]])
def test_auto_leaves_code_alone(
    workspace: Path,
    run_llm: RunLlm,
    script: Script,
    code: Code,
    options: list[str],
) -> None:
    assert run_llm(["code", *options, "hi"]).exit_code == 0
    assert script.last.system == ""


def test_code_takes_what_is_preloaded(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    assert run_llm(["code", "-k", "project/review", "hi"]).exit_code == 0
    assert "Two people read each change." in script.last.system
    assert "llm kb show" not in script.last.system


def test_unknown_knowledge_is_an_error_of_code(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    result = run_llm(["code", "-k", "nope/x", "hi"])
    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr.startswith("Error: unknown topic 'nope'")


def test_knowledge_that_a_conversation_would_not_send_is_an_error(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    result = run_llm(["code", "-c", "-k", "project/review", "hi"])
    assert (result.exit_code, script.requests) == (1, [])
    assert "keeps its system prompt" in result.stderr


@pytest.mark.usefixtures("automatic")
def test_broken_configuration_does_not_stop_code(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    (workspace / "llm-kb.toml").write_text("[kb\n")
    result = run_llm(["code", "hi"])
    assert (result.exit_code, script.last.system) == (0, "")
    assert result.stderr.startswith("llm-kb: auto left out: ")


def test_code_of_an_untrusted_workspace_is_left_alone(
    workspace: Path, run_llm: RunLlm, script: Script, code: Code
) -> None:
    (workspace / "llm-kb.toml").write_text(f"[kb]\nauto = true\n{WORKSPACE}")
    result = run_llm(["code", "hi"])
    assert script.last.system == ""
    assert "kb.auto. This workspace is not trusted" in result.stderr


def test_other_commands_of_that_name_are_left_alone(
    run_llm: RunLlm, code: Callable[[], None]
) -> None:
    command = llm.cli.cli.commands["code"]
    assert command.callback is not None
    command.callback.__module__ = "someone_else.cli"
    assert "--no-kb" not in run_llm(["code", "--help"]).stdout
