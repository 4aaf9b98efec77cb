"""No call of any tool, whatever a model sends, takes two seconds or fills the prompt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.console import PROJECT
from tests.git_templates import copy_empty_repository
from tests.isolation import isolated_environment, make_home

pytest.importorskip("resource", reason="needs limits of POSIX")

from tests.attacks.tool_calls import CALLS

FILES = 3_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each call, in a repository with a topic and a reference of 3,000 files."""
    home, workspace = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("workspace")
    make_home(home)
    copy_empty_repository(workspace)
    for number in range(FILES):
        path = workspace / "kb" / f"d{number % 30}" / f"some-subject-{number:04}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Subject {number}\n\nSome words of subject {number}.\n")
    long = "".join(f"# Heading {number}\n\nText.\n\n" for number in range(20_000))
    (workspace / "kb" / "long.md").write_text(long)
    (workspace / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    environment = isolated_environment(home, os.environ) | {"PYTHONPATH": str(PROJECT)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(
            command,
            cwd=workspace,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    many = tmp_path_factory.mktemp("many")
    copy_empty_repository(many)
    shutil.copytree(workspace / "kb", many, dirs_exist_ok=True)
    for command in (["add", "."], ["commit", "--quiet", "-m", "many"]):
        subprocess.run(["git", *command], cwd=many, env=environment, check=True)
    user_dir = Path(environment["LLM_USER_PATH"])
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text('[kb.references]\nallow_protocols = ["file"]\n')
    run(*("llm", "kb", "references", "create", "--title", "Many", "--git", many.as_uri(), "-y"))
    found: dict[str, Any] = json.loads(run("tests.attacks.tool_calls"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends_within_its_time_and_with_an_answer_that_fits(
    results: dict[str, Any], name: str
) -> None:
    result = results[name]
    assert (result["ended"], result.get("length", 0) < 110_000) == (0, True), result
    if result["start"].startswith("Error: "):
        assert result["length"] < 20_000


def test_every_tool_is_in_the_table() -> None:
    assert {tool for tool, _ in CALLS.values()} == {
        "learn",
        "search_knowledge",
        "emit_knowledge",
        "reference_search",
        "reference_topic_create",
        "reference_topic_list",
        "reference_topic_search",
        "reference_topic_update",
    }
