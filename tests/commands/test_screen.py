"""Closed streams, unwanted colour, and output that cannot be written."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llm_kb.terminal import screen
from llm_kb.terminal.screen import is_terminal, style
from tests.conftest import RunLlm
from tests.preloaded import Process
from tests.terminal import run_on_terminal

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A topic with a subject and a hidden one."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("Review\n")
    (tmp_path / "kb" / ".b.md").write_text("Hidden\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    return tmp_path


def test_a_stream_that_is_closed_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert [is_terminal(stream) for stream in (None, closed, io.StringIO())] == [False] * 3


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "\x1b[36ma\x1b[0m"), ("", "\x1b[36ma\x1b[0m"), ("1", "a")]
)
def test_colour_is_left_out_where_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, value: str | None, shown: str
) -> None:
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert style("a", fg="cyan") == shown


@posix_only
@pytest.mark.parametrize("args", [["search", "review"], ["list", "p", "--all"]], ids=" ".join)
def test_commands_colour_a_terminal_unless_told_not_to(
    workspace: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    coloured, _ = run_on_terminal(["kb", *args])
    monkeypatch.setenv("NO_COLOR", "1")
    plain, _ = run_on_terminal(["kb", *args])
    assert plain == _COLOUR.sub("", coloured)
    assert plain == run_llm(["kb", *args]).stdout
    assert plain != coloured


@pytest.mark.slow
@posix_only
def test_a_question_on_a_closed_input_is_told(workspace: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" kb remove p <&-', Path(sys.executable).with_name("llm")],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        "Error: there is no terminal to ask on: "
        f"Remove topic p from {workspace / 'llm-kb.toml'}? Pass -y to say yes\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["list", "show p/a", "config"])
def test_a_full_disk_is_told(workspace: Path, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        process = Process(["kb", *command.split()], stdout=full.fileno())
    assert process.communicate() == (None, "Error: No space left on device\n")
    assert process.returncode == 1


def test_long_work_without_a_terminal_prints_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show = screen.draw_progress("Indexing", line_after=0)
    show(1_000, 2_000)
    show(1_500, 2_000)
    show(2_000, 2_000)
    assert capsys.readouterr().err == "llm-kb: Indexing: 1,000 of 2,000 files so far ...\n"
