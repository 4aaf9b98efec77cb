"""`llm kb config`, through the real `llm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm


@pytest.fixture
def workspace(tmp_path: Path, user_dir: Path) -> Path:
    """A user layer and a workspace that adds to it."""
    (user_dir / "kb.toml").write_text("[kb]\nmax_result_chars = 9\n")
    (tmp_path / "llm-kb.toml").write_text(
        '[kb]\nmax_result_chars = 8\nauto = true\n[kb.topic."v1.2"]\nsubjects = "kb"\n'
        f'title = "T"\ndescription = "{"long " * 40}"\n'
    )
    return tmp_path


def test_each_value_is_shown_with_its_layer(
    workspace: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    assignment = 'kb.topic."v1.2".learned+=a*'
    result = run_llm(["kb", "config", "--kb-cfg", assignment])
    assert (result.exit_code, result.stdout) == (
        0,
        f"""\
[kb]
max_result_chars = 8                      # workspace

[kb.topic."v1.2"]
subjects = "{workspace}/kb"  # workspace
title = "T"                               # workspace
description = "{"long " * 40}"  # workspace
learned = ["a*"]                          # command line

# user: {user_dir}/kb.toml
# workspace: {workspace}/llm-kb.toml
# command line: --kb-cfg {assignment}
""",
    )
    assert result.stderr == f"llm-kb: kb.auto in {workspace}/llm-kb.toml waits for 'llm kb trust'\n"


def test_json_has_every_value_with_all_its_origins(
    workspace: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    rows = {
        row["key"]: row for row in json.loads(run_llm(["kb", "config", "--all", "--json"]).stdout)
    }
    assert rows["kb.max_result_chars"] == {
        "key": "kb.max_result_chars",
        "value": 8,
        "layer": "workspace",
        "place": str(workspace / "llm-kb.toml"),
        "origins": [
            {"layer": "user", "place": str(user_dir / "kb.toml")},
            {"layer": "workspace", "place": str(workspace / "llm-kb.toml")},
        ],
    }
    assert rows["kb.references.dir"]["layer"] == "default"
    of_topics = {key for key in rows if key.startswith("kb.topic.")}
    assert of_topics == {f"kb.topic.v1.2.{name}" for name in ("subjects", "title", "description")}


def test_all_mistakes_are_one_message_and_no_traceback(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").write_text("[kb]\nauto = 1\nmneu = 2\n")
    result = run_llm(["kb", "config"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {tmp_path}/llm-kb.toml: 2 problems\n  - kb.auto: ")


def test_path_is_the_workspaces_file_or_else_the_users(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    assert run_llm(["kb", "config", "--path"]).stdout == f"{user_dir}/kb.toml\n"
    (tmp_path / "llm-kb.toml").touch()
    assert run_llm(["kb", "config", "--path"]).stdout == f"{tmp_path}/llm-kb.toml\n"
