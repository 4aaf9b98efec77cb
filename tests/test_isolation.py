"""The barriers that keep tests away from the developer's own files hold."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import llm
import pytest

from tests.conftest import RunLlm, RunLlmProcess
from tests.isolation import REAL_HOME, HomeWriteError, writes_to_home
from tests.scripted import Script

OUTSIDE = REAL_HOME / "llm-kb-must-not-write-here"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: OUTSIDE.write_text("x"), id="open"),
        pytest.param(lambda: os.open(OUTSIDE, os.O_CREAT | os.O_WRONLY), id="os.open"),
        pytest.param(OUTSIDE.mkdir, id="mkdir"),
        pytest.param(lambda: Path("here").rename(OUTSIDE), id="rename"),
        pytest.param(lambda: OUTSIDE.symlink_to("here"), id="symlink"),
        pytest.param(lambda: sqlite3.connect(OUTSIDE), id="sqlite"),
    ],
)
def test_a_change_of_the_real_home_is_refused_and_recorded(change: Callable[[], object]) -> None:
    Path("here").write_text("x")
    with pytest.raises(HomeWriteError):
        change()
    assert len(writes_to_home) == 1
    assert not OUTSIDE.exists()
    writes_to_home.clear()


def test_every_place_of_a_user_is_temporary(home: Path, tmp_path: Path) -> None:
    assert Path.home() == home
    assert llm.user_dir() == home / "llm"
    assert Path.cwd() == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert "LLM_KB_CONFIG" not in os.environ


def test_git_commits_with_an_identity_of_its_own(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    shown = subprocess.run(
        ["git", "log", "--format=%an <%ae>"], check=True, capture_output=True, encoding="utf-8"
    )
    assert shown.stdout == "Test Author <author@example.com>\n"


def test_the_scripted_model_records_and_answers(run_llm: RunLlm, script: Script) -> None:
    script.say("one ", "two")
    result = run_llm(["-m", "scripted", "-s", "Be brief", "Hello"])
    assert (result.exit_code, result.stdout) == (0, "one two\n")
    assert script.last.messages == (("system", "Be brief"), ("user", "Hello"))
    assert script.last.streamed


def test_the_scripted_model_calls_tools(run_llm: RunLlm, script: Script) -> None:
    script.call("llm_version").say("done")
    result = run_llm(["-m", "scripted", "-T", "llm_version", "--no-stream", "Which?"])
    assert (result.exit_code, result.stdout) == (0, "done\n")
    assert [request.tool_names for request in script.requests] == [("llm_version",)] * 2
    assert [len(request.outputs) for request in script.requests] == [0, 1]
    assert script.requests[1].messages[-1] == ("tool", script.requests[1].outputs[0])
    assert not script.last.streamed


def test_the_scripted_model_answers_async_requests(run_llm: RunLlm, script: Script) -> None:
    script.say("async")
    result = run_llm(["-m", "scripted", "--async", "Hello"])
    assert (result.exit_code, result.stdout) == (0, "async\n")
    assert script.last.prompt == "Hello"


def test_this_plugin_alone_is_loaded_in_process(run_llm: RunLlm) -> None:
    result = run_llm(["plugins"])
    assert '"name": "llm-kb"' in result.stdout
    assert "llm-echo" not in result.stdout


def test_the_installed_llm_finds_this_plugin(run_llm_process: RunLlmProcess) -> None:
    result = run_llm_process(["plugins"])
    assert (result.returncode, result.stderr) == (0, "")
    assert '"name": "llm-kb"' in result.stdout
