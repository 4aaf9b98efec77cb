"""`llm kb list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.terminal import run_on_terminal

CONFIG = """
[kb.topic.project]
title = "General Project Knowledge"
introduction = "How we work."
subjects = "kb/project"
learned = ["maintainers/*"]
disabled = ["old"]

[kb.topic.gone]
subjects = "kb/gone"

[kb.topic.off]
enable = false
subjects = "kb/off"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A workspace with a subject in every state, and a directory that is missing."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": CONFIG,
            "kb/project/code-quality.md": "# Quality\n\nTests first.\n",
            "kb/project/maintainers/alice.md": "Alice.\n",
            "kb/project/.notes.md": "Hidden.\n",
            "kb/project/old.md": "Old.\n",
            "elsewhere.md": "Elsewhere.\n",
        },
    )
    (tmp_path / "kb/project/link.md").symlink_to(tmp_path / "elsewhere.md")
    return tmp_path


PROJECT = "project  General Project Knowledge      2 subjects        ~8 tokens"
CORRECT = "correct that, or `subjects` in the configuration"


def test_a_topic_whose_subjects_are_all_disabled_says_so(run_llm: RunLlm, workspace: Path) -> None:
    table = '[kb.topic.p]\nsubjects = "kb/project"\ndisabled = ["**"]\n'
    write_files(workspace, {"llm-kb.toml": table})
    (workspace / "kb/project/link.md").unlink()
    reason = (
        f"those of {workspace}/kb/project are all disabled; `llm kb disable --undo` takes one back"
    )
    assert run_llm(["kb", "list"]).output == f"p\n  no subjects: {reason}\n"
    assert run_llm(["kb", "list", "p"]).stdout == f"no subjects: {reason}\n"
    assert (
        "old                      ~2 tokens  disabled"
        in run_llm(["kb", "list", "p", "--all"]).stdout
    )
    said = run_llm(["kb", "show", "--as-model", "p"]).stderr
    assert "are all disabled; `llm kb disable --undo` takes one back" in said


def test_topics(run_llm: RunLlm, workspace: Path) -> None:
    result = run_llm(["kb", "list"])
    assert result.output.splitlines() == [
        f"{PROJECT}  1 pre-loaded, 1 skipped",
        "gone",
        f"  no subjects: {workspace}/kb/gone: no such directory; {CORRECT}",
    ]


def test_list_is_what_the_group_does_by_default(run_llm: RunLlm) -> None:
    assert run_llm(["kb"]).output == run_llm(["kb", "list"]).output
    assert run_llm(["kb", "project"]).output == run_llm(["kb", "list", "project"]).output


def test_all_of_the_topics(run_llm: RunLlm, workspace: Path) -> None:
    lines = run_llm(["kb", "list", "--all"]).output.splitlines()
    # What comes with the package is offered beside its tools alone.
    (shipped,) = (line for line in lines if line.startswith("llm-kb   Using llm-kb"))
    lines.remove(shipped)
    assert lines == [
        f"{PROJECT}  1 pre-loaded, 1 hidden, 1 disabled, 1 skipped",
        "  skipped link.md: the link leads outside the topic",
        "gone",
        f"  no subjects: {workspace}/kb/gone: no such directory; {CORRECT}",
        "off",
        "  no subjects: the topic is disabled",
    ]


def test_subjects_of_a_topic(run_llm: RunLlm) -> None:
    by_id = run_llm(["kb", "list", "project"])
    assert by_id.output.splitlines() == [
        "code-quality             ~6 tokens  Quality",
        "maintainers/alice        ~2 tokens  pre-loaded",
    ]
    assert run_llm(["kb", "list", "general project knowledge"]).output == by_id.output


def test_all_subjects_of_a_topic(run_llm: RunLlm) -> None:
    assert run_llm(["kb", "list", "project", "--all"]).output.splitlines() == [
        "code-quality             ~6 tokens  Quality",
        "maintainers/alice        ~2 tokens  pre-loaded",
        "notes                    ~2 tokens  hidden",
        "old                      ~2 tokens  disabled",
        "skipped link.md: the link leads outside the topic",
    ]


def test_json(run_llm: RunLlm, workspace: Path) -> None:
    topics = json.loads(run_llm(["kb", "list", "--json"]).output)
    assert topics[0] == {
        "id": "project",
        "title": "General Project Knowledge",
        "introduction": "How we work.",
        "enable": True,
        "root": str(workspace / "kb/project"),
        "subjects": 2,
        "tokens": 8,
        "skipped": 1,
        "problem": None,
    }


def test_json_of_a_topic(run_llm: RunLlm) -> None:
    subjects = json.loads(run_llm(["kb", "list", "project", "--json"]).output)
    assert [(s["slug"], s["path"], s["state"]) for s in subjects] == [
        ("code-quality", "code-quality.md", "available"),
        ("maintainers/alice", "maintainers/alice.md", "pre-loaded"),
    ]


def test_an_unknown_topic(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "list", "projct"])
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: unknown topic 'projct'; valid topics: project, gone; did you mean 'project'?\n"
    )


def test_without_topics_it_says_how_to_begin(run_llm: RunLlm, workspace: Path) -> None:
    (workspace / "llm-kb.toml").write_text("")
    result = run_llm(["kb", "list"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "llm-kb: no topics are configured; `llm kb add` makes one\n"
    assert run_llm(["kb", "prompt"]).stderr == result.stderr
    (workspace / "llm-kb.toml").unlink()
    assert run_llm(["kb", "list"]).stderr == f"llm-kb: {NO_KNOWLEDGE_BASE}\n"


NO_KNOWLEDGE_BASE = (
    "there is no knowledge base here: neither this directory nor one above it has an"
    " llm-kb.toml. Run 'llm kb init' to write one."
)


def test_colour_only_on_a_terminal(run_llm: RunLlm) -> None:
    shown, code = run_on_terminal(["kb", "list", "project", "--all"])
    assert code == 0
    dim = [line for line in shown.splitlines() if line.startswith("\x1b[2m")]
    assert [line.split()[0].removeprefix("\x1b[2m") for line in dim] == [
        "notes",
        "old",
        "skipped",
    ]
    assert "\x1b" not in run_llm(["kb", "list", "project", "--all"]).output


def test_what_could_deceive_in_a_title_is_shown_as_its_code(
    run_llm: RunLlm, workspace: Path
) -> None:
    (workspace / "llm-kb.toml").write_text(
        '[kb.topic.a]\nsubjects = "kb"\ntitle = "ok \\u202Eevil"\n'
    )
    assert run_llm(["kb", "list"]).stdout.startswith("a  ok \\u202eevil  ")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["project/maintainers/*"], ["maintainers/alice"]),
        (["project/code-quality", "project/notes"], ["code-quality", "notes"]),
        (["project/code-quality#L1"], ["code-quality"]),
    ],
)
def test_patterns_narrow_a_topic_as_they_do_for_learn(
    run_llm: RunLlm, arguments: list[str], names: list[str]
) -> None:
    listed = json.loads(run_llm(["kb", "list", *arguments, "--json"]).stdout)
    assert [subject["slug"] for subject in listed] == names


@pytest.mark.parametrize("pattern", ["old", "nope", "../x"])
def test_a_pattern_that_names_nothing_is_an_error(run_llm: RunLlm, pattern: str) -> None:
    result = run_llm(["kb", "list", f"project/{pattern}"])
    assert (result.exit_code, result.stdout, pattern in result.stderr) == (1, "", True)
