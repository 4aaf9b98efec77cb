"""`llm kb search`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm

CONFIG = """
[kb.topic.project]
title = "Project"
subjects = "kb/project"
disabled = ["off"]
learned = ["review"]

[kb.topic.skills]
subjects = "kb/skills"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """Two topics that speak of reviews, also where nobody may look."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": CONFIG,
            "kb/project/review.md": "# Review\n\nRead the tests first.\n",
            "kb/project/style.md": "Style is part of a review.\n",
            "kb/project/.secret.md": "review tests\n",
            "kb/project/off.md": "review tests\n",
            "kb/project/data.bin": b"review tests\0",
            "kb/skills/testing.md": "Write tests.\nTests are code;\nreview the tests too.\n",
        },
    )
    return tmp_path


def test_more_words_come_first_then_headings(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "review", "tests"])
    assert result.output.splitlines() == [
        "project/review:1: # Review",
        "skills/testing:3: review the tests too.",
        "project/style:1: Style is part of a review.",
    ]


def test_a_long_line_is_shortened_for_people_alone(run_llm: RunLlm, workspace: Path) -> None:
    text = "Zebras " * 50
    write_files(workspace, {"kb/skills/long.md": text})
    expected = f"skills/long:1: {text[:159].rstrip()}…\n"
    assert run_llm(["kb", "search", "zebra"]).output == expected
    (hit,) = json.loads(run_llm(["kb", "search", "zebra", "--json"]).output)
    assert hit["text"] == text.strip()


def test_as_json(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "write tests", "--json"])
    assert json.loads(result.output)[0] == {
        "topic": "skills",
        "slug": "testing",
        "path": "testing.md",
        "words": 2,
        "line": 1,
        "text": "Write tests.",
    }


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["-t", "skills"], ["skills/testing"]),
        (["-t", "PROJECT"], ["project/review", "project/style"]),
        (["-t", "skills", "-t", "project", "-n", "2"], ["project/review", "project/style"]),
    ],
)
def test_fewer(run_llm: RunLlm, arguments: list[str], places: list[str]) -> None:
    result = run_llm(["kb", "search", "review", *arguments])
    assert [line.split(":")[0] for line in result.output.splitlines()] == places


def test_nothing_found(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "search", "zebra"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "llm-kb: no subject says anything about that\n"
    assert run_llm(["kb", "search", "zebra", "--json"]).output == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["?!"], 2), ([], 2), (["x", "-n", "0"], 2), (["x", "-t", "absent"], 1)],
)
def test_bad_arguments(run_llm: RunLlm, arguments: list[str], code: int) -> None:
    result = run_llm(["kb", "search", *arguments])
    assert (result.exit_code, result.stdout) == (code, "")
