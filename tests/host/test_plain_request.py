"""What a request that asks for nothing of ours costs: two small files at most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROBE = """
import json, os, sys
import llm.cli
from click.testing import CliRunner

before = set(sys.modules)
root, user = os.getcwd(), os.environ["LLM_USER_PATH"]
events = []

def watch(event, args):
    if event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], (str, os.PathLike)):
        path = os.path.realpath(args[0])
        if "__editable__" in path:  # how setuptools finds a package in development
            return
        if path.startswith((root, user)) and not path.startswith(os.path.join(user, "logs.db")):
            events.append([event, os.path.relpath(path, root)])

sys.addaudithook(watch)
result = CliRunner().invoke(llm.cli.cli, sys.argv[1:])
modules = sorted(name for name in set(sys.modules) - before)
print(json.dumps({"exit": result.exit_code, "output": result.output, "events": events,
                  "modules": modules}))
"""

HEAVY = {
    "tomllib",
    "tomli",
    "tomlkit",
    "pathspec",
    "sqlite3",
    "yaml",
    "llm_kb.api",
    "llm_kb.files.directory",
    "llm_kb.config.resolve",
    "llm_kb.references",
    "llm_kb.capture",
}


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["-m", "echo", "hi"], id="nothing"),
        pytest.param(["-m", "echo", "-T", "llm_version", "hi"], id="another-tool"),
        pytest.param(["-m", "echo", "-s", "Be kind.", "-f", "other.txt", "hi"], id="fragments"),
    ],
)
def test_reads_no_directory_and_loads_nothing_heavy(
    tmp_path: Path, user_dir: Path, args: list[str]
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A")
    (tmp_path / "other.txt").write_text("other")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text("[kb]\nmenu_budget = 100\n")
    probed = probe(args)
    assert probed["exit"] == 0, probed["output"]
    ours = [event for event in probed["events"] if "other.txt" not in event[1]]
    opened = {path for event, path in ours if event == "open" and "kb" in Path(path).name}
    assert {Path(path).name for path in opened} == {"kb.toml", "llm-kb.toml"}
    assert [event for event in ours if event[0] != "open" and "kb" in event[1]] == []
    assert HEAVY & set(probed["modules"]) == set()


def test_auto_looks_at_each_file_once_before_it_is_parsed(tmp_path: Path, user_dir: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text("[kb]\nauto = true\n")
    probed = probe(["-m", "echo", "hi"])
    assert probed["exit"] == 0, probed["output"]
    opened = [Path(path).name for event, path in probed["events"] if event == "open"]
    assert {name: opened.count(name) for name in ("kb.toml", "llm-kb.toml")} == {
        "kb.toml": 2,
        "llm-kb.toml": 2,
    }


def test_a_fragment_opens_the_knowledge_base_once(tmp_path: Path, user_dir: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    probed = probe(["-m", "echo", "-f", "kb:project/a", "hi"])
    assert probed["exit"] == 0, probed["output"]
    opened = [Path(path).name for event, path in probed["events"] if event == "open"]
    # Once for a look at `auto`, once to parse it.
    assert (opened.count("llm-kb.toml"), opened.count("a.md")) == (2, 1)


def probe(args: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *args],
        env={**os.environ, "LLM_LOAD_PLUGINS": "llm-kb,llm-echo"},
        capture_output=True,
        encoding="utf-8",
        input="",
        check=True,
    )
    return dict(json.loads(done.stdout))
