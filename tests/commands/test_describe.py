"""`llm kb describe`, with a model that follows a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.upkeep.describe import SYSTEM
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.scripted import Script

CONFIG = """\
# Ours.
[kb.topic.how]
subjects = "kb"  # all of it

[kb.topic.done]
introduction = "Done."
subjects = "done"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A topic without an introduction, with one subject that says nothing of itself."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": CONFIG,
            "kb/review.md": "# Review\n\nTwo people look.\n",
            "kb/style.md": "# Short lines and plain words\n",
            "kb/x.toml": "",
            "done/a.md": "# What A is for\n",
        },
    )
    return tmp_path


def test_introductions_and_summaries_are_written(
    run_llm: RunLlm, script: Script, workspace: Path
) -> None:
    script.say('"How we\n work."').say("Who reviews, and when")
    result = run_llm(["kb", "describe", "-m", "scripted", "-y"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "how: How we work.\nhow/review: Who reviews, and when\n",
        "Wrote how\nWrote how/review\n",
    )
    assert [request.system for request in script.requests] == [SYSTEM, SYSTEM]
    assert "- style: Short lines and plain words" in script.requests[0].prompt
    assert "Two people look." in script.requests[1].prompt
    introduced = 'subjects = "kb"  # all of it\nintroduction = "How we work."\n'
    assert introduced in (workspace / "llm-kb.toml").read_text()
    assert (workspace / "kb/review.md").read_text() == (
        '---\nsummary: "Who reviews, and when"\n---\n\n# Review\n\nTwo people look.\n'
    )
    again = run_llm(["kb", "describe", "-m", "scripted", "-y"])
    assert again.stderr == "Every topic has an introduction, and every subject a summary\n"


def test_a_topic_that_is_named_gets_a_new_introduction(
    run_llm: RunLlm, script: Script, workspace: Path
) -> None:
    script.say("All about A.")
    assert run_llm(["kb", "describe", "done", "-m", "scripted", "-y"]).exit_code == 0
    assert 'introduction = "All about A."\n' in (workspace / "llm-kb.toml").read_text()


def test_without_a_yes_nothing_is_asked(run_llm: RunLlm, script: Script, workspace: Path) -> None:
    dry = run_llm(["kb", "describe", "--dry-run"])
    assert dry.stdout == "how\nhow/review\n"
    assert dry.stderr.startswith("Would ask 2 questions, ~")
    result = run_llm(["kb", "describe", "-m", "scripted"])
    assert result.exit_code == 1
    assert "Pass -y to say yes" in result.stderr
    assert script.requests == []
    assert (workspace / "llm-kb.toml").read_text() == CONFIG


def test_a_model_that_is_not_there(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "describe", "-m", "nope", "-y"])
    assert (result.exit_code, result.stderr) == (1, "Error: Unknown model: nope\n")


def test_a_hostile_answer_stays_one_safe_line(
    run_llm: RunLlm, script: Script, workspace: Path
) -> None:
    script.say("a\x1b[31m\n[kb]\nauto = true \u202e" + "x" * 300).say('"\n---\n</subject>')
    assert run_llm(["kb", "describe", "-m", "scripted", "-y"]).exit_code == 0
    written = (workspace / "llm-kb.toml").read_text()
    assert "\nauto" not in written
    assert "\x1b" not in written
    assert max(map(len, written.splitlines())) < 230
    assert (workspace / "kb/review.md").read_text().splitlines()[2] == "---"


def test_fetched_files_stay_as_they_are(run_llm: RunLlm, script: Script, tmp_path: Path) -> None:
    """They are another's text: no model is asked about them, and `verify` finds no difference."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": "[kb]\nreferences = true\n",
            "source/walrus.md": "# Walrus\n\nTusks are teeth.\n",
        },
    )
    source = ["--title", "Docs", "--local", "source"]
    assert run_llm(["kb", "references", "create", *source, "-y"]).exit_code == 0
    for name in ([], ["topic-docs"]):
        run_llm(["kb", "describe", *name, "-m", "scripted", "-y"])
    assert script.requests == []
    assert run_llm(["kb", "references", "verify", "docs"]).exit_code == 0
    found = run_llm(["kb", "search", "-t", "docs", "tusks"]).stdout
    assert found.startswith("topic-docs/walrus.md:1:")
    listed = json.loads(run_llm(["kb", "list", "--json"]).stdout)
    (topic,) = (topic for topic in listed if topic["id"] == "topic-docs")
    assert topic["changed"] is None
