"""The project's own knowledge base has no errors, and the demo shows it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.console import PROJECT, SAMPLE

SUBJECTS = {
    "project": [
        "architecture",
        "budgets",
        "code-quality",
        "maintainers/core",
        "maintainers/references",
        "maintainers/releases",
    ],
    "code": ["command-example", "errors-example", "tests-example"],
    "skills": ["add-a-command", "review-a-change", "write-a-subject"],
}


@pytest.fixture(autouse=True)
def _in_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLE)


def test_check_finds_nothing(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "check"])
    assert result.stdout.startswith("nothing wrong in ")


@pytest.mark.parametrize("topic", SUBJECTS)
def test_a_topic_lists_its_subjects(run_llm: RunLlm, topic: str) -> None:
    listing = run_llm(["kb", "show", "--as-model", topic]).stdout
    # Beside a name is what its page says of itself.
    listed = [line[2:].partition(": ")[0] for line in listing.splitlines() if line[:2] == "- "]
    assert listed == SUBJECTS[topic]


@pytest.mark.parametrize(
    ("visible", "topic", "hidden", "path"),
    [
        ("code-quality", "project", "release-checklist", "project/.release-checklist.md"),
        ("add-a-command", "skills", "add-a-command/checklist", "skills/add-a-command/checklist.md"),
    ],
)
def test_a_visible_subject_points_to_a_hidden_one(
    run_llm: RunLlm, visible: str, topic: str, hidden: str, path: str
) -> None:
    assert f"`{hidden}`" in run_llm(["kb", "show", "--as-model", f"{topic}/{visible}"]).stdout
    text = (SAMPLE / path).read_text(encoding="utf-8")
    assert run_llm(["kb", "show", "--as-model", f"{topic}/{hidden}"]).stdout == text


def test_a_disabled_subject_cannot_be_had(run_llm: RunLlm) -> None:
    assert (SAMPLE / "project" / "drafts" / "rejected-auto-learn.md").exists()
    result = run_llm(["kb", "show", "--as-model", "project/drafts/rejected-auto-learn"])
    assert result.exit_code == 1
    assert "drafts" not in result.stderr.replace("'drafts/rejected-auto-learn'", "")


def test_summaries_of_skills_come_from_their_front_matter(run_llm: RunLlm) -> None:
    menu = run_llm(["kb", "prompt", "--kb-cfg", "kb.menu=subjects"]).stdout
    assert "  - review-a-change — Review a diff of this project the way its maintainers do." in menu


@pytest.mark.parametrize("name", ["command-example", "errors-example"])
def test_the_examples_can_be_imported(name: str) -> None:
    runpy.run_path(str(SAMPLE / "code" / f"{name}.py"))


@pytest.mark.slow
def test_the_example_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider",
         "-n", "0", str(SAMPLE / "code" / "tests-example.py")],
        cwd=PROJECT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_demo_shows_what_the_model_was_sent_and_answered(run_llm: RunLlm) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "MODEL"}
    done = subprocess.run(
        [sys.executable, str(PROJECT / "scripts" / "demo.py")],
        cwd=Path.home(), env=environment, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert run_llm(["kb", "prompt"]).stdout in done.stdout
    assert run_llm(["kb", "show", "--as-model", "project"]).stdout in done.stdout
    loaded = run_llm(
        ["kb", "show", "--as-model", "project/code-quality", "project/maintainers/core"]
    ).stdout
    assert loaded in done.stdout
    preloaded = run_llm(["kb", "prompt", "--preloaded", "-k", "project/maintainers/releases"])
    assert preloaded.stdout in done.stdout
