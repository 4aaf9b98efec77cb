"""`llm kb config` and `llm kb path`, through the real `llm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.config.keys import CAPTURE_KEYS, CHECK_KEYS, KB_KEYS, REFERENCE_KEYS, TOPIC_KEYS
from tests.conftest import RunLlm


@pytest.fixture
def workspace(tmp_path: Path, user_dir: Path) -> Path:
    """A user layer and a workspace that adds to it."""
    (user_dir / "kb.toml").write_text("[kb]\nmenu_budget = 7\n")
    (tmp_path / "llm-kb.toml").write_text(
        '[kb]\nmenu_budget = 8\nauto = true\n[kb.topic."v1.2"]\nsubjects = "kb"\n'
        f'title = "T"\ndescription = "{"long " * 40}"\n'
    )
    return tmp_path


def test_each_value_is_shown_with_its_layer(
    workspace: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    (workspace / "kb").mkdir()
    (workspace / "kb/ab.md").write_text("AB")
    result = run_llm(["kb", "config", "-k", "t/a*"])
    assert (result.exit_code, result.stdout) == (
        0,
        f"""\
[kb]
auto = false                              # default
menu = "topics"                           # default
menu_budget = 8                           # workspace
max_result_chars = 100000                 # default
outline_over = 24000                      # default
search = "auto"                           # default
config_load_paths = [".llm/config.d"]     # default
allow_links_to = []                       # default

[kb.topic."v1.2"]
title = "T"                               # workspace
# workspace
description = "{("long " * 40)[:63]}…"
subjects = "kb"                           # workspace
learned = ["a*"]                          # command line

# user: {user_dir}/kb.toml
# workspace: {workspace}/llm-kb.toml
# command line: -k v1.2/a*
""",
    )
    assert result.stderr == f"llm-kb: kb.auto in {workspace}/llm-kb.toml waits for 'llm kb trust'\n"


@pytest.mark.parametrize(
    "value",
    ["v1.2", "T/a", "v1.2/nope", "nope", "v1.2/", "llm-kb", "Using llm-kb", "topic-nope"],
)
def test_knowledge_is_resolved_as_in_a_request(
    workspace: Path, run_llm: RunLlm, value: str
) -> None:
    (workspace / "kb").mkdir()
    (workspace / "kb/a.md").write_text("A")
    shown, sent = (run_llm(["kb", command, "-k", value]) for command in ("config", "prompt"))
    assert shown.exit_code == sent.exit_code
    if shown.exit_code:
        assert shown.stderr == sent.stderr
    else:
        assert "learned = [" in shown.stdout


def test_json_has_every_value_with_all_its_origins(
    workspace: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    rows = {row["key"]: row for row in json.loads(run_llm(["kb", "config", "--json"]).stdout)}
    assert rows["kb.menu_budget"] == {
        "key": "kb.menu_budget",
        "value": 8,
        "layer": "workspace",
        "place": str(workspace / "llm-kb.toml"),
        "origins": [
            {"layer": "default", "place": None},
            {"layer": "user", "place": str(user_dir / "kb.toml")},
            {"layer": "workspace", "place": str(workspace / "llm-kb.toml")},
        ],
    }
    assert rows["kb.topic.v1.2.layout"] == {
        "key": "kb.topic.v1.2.layout",
        "value": "files",
        "layer": "default",
        "place": None,
        "origins": [{"layer": "default", "place": None}],
    }
    tables = (KB_KEYS, REFERENCE_KEYS, CAPTURE_KEYS, CHECK_KEYS, TOPIC_KEYS)
    assert len(rows) == sum(map(len, tables))


def test_a_long_list_takes_several_lines(tmp_path: Path, run_llm: RunLlm) -> None:
    patterns = ["maintainers/" + "x" * 30, "style/" + "y" * 30]
    (tmp_path / "llm-kb.toml").write_text(
        f"[kb.topic.p]\nsubjects = 'kb'\nlearned = {json.dumps(patterns)}\n"
    )
    assert (
        f'learned = [  # workspace\n    "{patterns[0]}",\n    "{patterns[1]}",\n]\n'
    ) in run_llm(["kb", "config"]).stdout


def test_all_mistakes_are_one_message_and_no_traceback(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").write_text("[kb]\nauto = 1\nmneu = 2\n")
    result = run_llm(["kb", "config"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {tmp_path}/llm-kb.toml: 2 problems\n  - kb.auto: ")


def test_path_is_the_workspaces_file_or_else_the_users(
    tmp_path: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    assert run_llm(["kb", "path"]).stdout == f"{user_dir}/kb.toml\n"
    (tmp_path / "llm-kb.toml").touch()
    assert run_llm(["kb", "path"]).stdout == f"{tmp_path}/llm-kb.toml\n"
    assert run_llm(["kb", "path", "--user"]).stdout == f"{user_dir}/kb.toml\n"
