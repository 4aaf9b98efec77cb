"""The cost of a request that does not use this plugin: at most two small files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.scripted import Script

PROBE = """
import json, sys
import llm.cli
from click.testing import CliRunner

before = set(sys.modules)
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(llm.cli.cli, arguments)
    assert result.exit_code == 0, result.output
print(json.dumps(sorted(set(sys.modules) - before)))
"""

HEAVY = {
    "tomllib",
    "tomli",
    "tomlkit",
    "pathspec",
    "sqlite3",
    "yaml",
    "llm_kb.knowledge_base.api",
    "llm_kb.files.directory",
    "llm_kb.config.resolve",
    "llm_kb.references.library",
    "llm_kb.capture.notes",
    "llm_kb.config.layers",
}


PLAIN = {
    "nothing": ["-m", "scripted", "hi"],
    "another tool": ["-m", "scripted", "-T", "llm_version", "hi"],
    "fragments": ["-m", "scripted", "-s", "Be kind.", "-f", "other.txt", "hi"],
}

watched: list[list[tuple[str, str]]] = []
"""Where the latest is given what is opened and listed."""


def watch(event: str, args: tuple[object, ...]) -> None:
    """Record what is opened and listed; an audit hook."""
    is_read = event in {"open", "os.scandir", "os.listdir"}
    if watched and is_read and isinstance(args[0], (str, os.PathLike)):
        watched[-1].append((event, os.path.realpath(args[0])))


sys.addaudithook(watch)


@pytest.fixture
def workspace(tmp_path: Path, user_dir: Path) -> Path:
    """A topic of one subject, and a file beside it."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A")
    (tmp_path / "other.txt").write_text("other")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    (user_dir / "kb.toml").write_text("[kb]\nmax_result_chars = 100\n")
    return tmp_path


Touch = Callable[[Sequence[str]], list[tuple[str, str]]]


@pytest.fixture
def touch(workspace: Path, user_dir: Path, run_llm: RunLlm, script: Script) -> Touch:
    """Run `llm`; return what it opens and lists in the workspace and the user directory."""

    def touch(args: Sequence[str]) -> list[tuple[str, str]]:
        script.say("done")
        watched.append([])
        result = run_llm(args)
        events = watched.pop()
        assert result.exit_code == 0, result.output
        return [
            (event, Path(path).name)
            for event, path in events
            if path.startswith((str(workspace), str(user_dir)))
        ]

    return touch


@pytest.mark.parametrize("args", PLAIN.values(), ids=PLAIN)
def test_reads_two_small_files_and_no_directory(touch: Touch, args: list[str]) -> None:
    events = [event for event in touch(args) if event[1] != "other.txt"]
    assert {name for event, name in events if event == "open" and "kb" in name} == {
        "kb.toml",
        "llm-kb.toml",
    }
    assert [event for event in events if event[0] != "open" and "kb" in event[1]] == []


def test_loads_nothing_heavy(workspace: Path) -> None:
    commands = [[word.replace("scripted", "echo") for word in args] for args in PLAIN.values()]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(commands)],
        env={**os.environ, "LLM_LOAD_PLUGINS": "llm-kb,llm-echo"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert HEAVY & set(json.loads(done.stdout)) == set()


def test_auto_looks_at_each_file_once_before_it_is_parsed(touch: Touch, user_dir: Path) -> None:
    (user_dir / "kb.toml").write_text("[kb]\nauto = true\n")
    events = touch(["-m", "scripted", "hi"])
    assert [events.count(("open", name)) for name in ("kb.toml", "llm-kb.toml")] == [2, 1]


def test_a_fragment_opens_the_knowledge_base_once(touch: Touch) -> None:
    events = touch(["-m", "scripted", "-f", "kb:project/a", "hi"])
    assert [events.count(("open", name)) for name in ("llm-kb.toml", "a.md")] == [1, 1]
