"""`llm-kb` prints what `llm kb` prints, and does not import `llm` for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import llm
import pytest
from llm.plugins import pm

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_embedder, find_user_dir
from tests.conftest import RunLlm

COMMANDS = [
    "",
    "--help",
    "list project --all",
    "list --json",
    "check",
    "search eyes",
    "search --json -t project eyes",
    "show project/review",
    "learn project",
    "learn project *",
    "learn project nope",
    "prompt -k project/review",
    "prompt --help",
    "path",
    "config --json",
    "init --dry-run",
    "trust --list",
    "mcp --help",
    "references -h",
    "references list",
    "review --json",
    "knowledge --help",
    "knowledge capture --help",
    "knowledge list",
    "--version",
    "serach eyes",
    "nope",
    "list -x",
]

RUN = """
import io, json, sys
import click.formatting
from contextlib import redirect_stderr, redirect_stdout
from llm_kb.plugin import main
click.formatting.FORCED_WIDTH = 80  # as in the test runner of click
done = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["llm-kb", *arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    done.append([*texts, code, "llm" in sys.modules])
print(json.dumps(done))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one topic."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "review.md").write_text("# Review\n\nFour eyes.\n", encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    return tmp_path


def test_it_prints_what_llm_kb_prints_without_llm(workspace: Path, run_llm: RunLlm) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([line.split() for line in COMMANDS])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = dict(zip(COMMANDS, json.loads(done.stdout), strict=True))
    expected = {}
    for line in COMMANDS:
        result = run_llm(["kb", *line.split()])
        stdout, stderr = (
            text.replace("cli kb", "llm-kb") for text in (result.stdout, result.stderr)
        )
        if line.endswith(("-h", "--help")):
            stdout = stdout.replace("llm kb", "llm-kb")
        expected[line] = [stdout, stderr, result.exit_code, False]
    assert found == expected


def test_the_script_completes_without_llm(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "llm.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    monkeypatch.setenv("_LLM_KB_COMPLETE", "bash_complete")
    completed = []
    for words in ("llm-kb disab", "llm-kb list pr", "llm-kb show project/r"):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        done = subprocess.run(
            [sys.executable, "-c", "from llm_kb.plugin import main; main()"],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        completed.append(done.stdout)
    assert completed == ["plain,disable\n", "plain,project/review\n", "plain,project/review\n"]


@pytest.mark.parametrize("path", [None, "", "elsewhere/llm"], ids=["unset", "empty", "set"])
def test_the_user_directory_is_the_one_of_llm(
    path: str | None, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.delenv("LLM_USER_PATH")
    if path is not None:
        monkeypatch.setenv("LLM_USER_PATH", path and str(home / path))
    found = find_user_dir()
    assert not found.exists()  # it is made by what writes into it
    assert found == llm.user_dir()


@pytest.mark.parametrize("content", [None, "", "\n"], ids=["no file", "empty", "blank"])
def test_without_a_default_embedding_model_there_is_no_embedder(content: str | None) -> None:
    if content is not None:
        (find_user_dir() / "default_embedding_model.txt").write_text(content, encoding="utf-8")
    assert not llm.get_default_embedding_model()
    assert find_embedder(None) is None


def test_the_default_embedding_model_is_the_one_of_llm() -> None:
    llm.set_default_embedding_model("gone")
    assert (find_user_dir() / "default_embedding_model.txt").exists()
    # Its plugin may be uninstalled; asked for by name, it is an error.
    assert find_embedder(None) is None


def test_a_model_is_made_once_for_all_searches() -> None:
    made: list[str] = []
    model = llm.get_embedding_model("3-small")

    class Plugin:
        @llm.hookimpl
        def register_embedding_models(self, register: Callable[..., None]) -> None:
            made.append("once")
            register(model, aliases=["once"])

    plugin = Plugin()
    pm.register(plugin)
    try:
        assert [find_embedder("once") is not None for _ in range(2)] == [True, True]
    finally:
        pm.unregister(plugin)
    assert made == ["once"]


def test_a_model_with_an_empty_name_is_none_whatever_the_default_is() -> None:
    llm.set_default_embedding_model("3-small")
    assert find_embedder(None) is not None
    assert find_embedder("") is None

    (find_user_dir() / "kb.toml").write_text('[kb]\nembedding_model = ""\n')
    assert KnowledgeBase.discover().config.embedding_model == ""


def test_output_that_nobody_reads_on_is_no_failure(workspace: Path) -> None:
    (workspace / "kb" / "big.md").write_text("line\n" * 100_000)
    script = "from llm_kb.plugin import main; main()"
    for command in (
        ["show", "project/big", "project/review"],
        ["show", "--as-model", "project/big#*"],
    ):
        with subprocess.Popen(
            [sys.executable, "-c", script, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(5) == b"line\n"
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0
