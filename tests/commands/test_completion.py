"""The completions that a shell gets, through the real `llm` and click's own protocol."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import llm.cli
import pytest
from click.testing import CliRunner

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete() -> Complete:
    """Complete a command line as bash would; the last word is unfinished."""

    def complete(line: str) -> list[str]:
        words = shlex.split(line)
        position = len(words) if line.endswith(" ") else len(words) - 1
        environ = {
            "_LLM_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(position),
        }
        result = CliRunner().invoke(llm.cli.cli, prog_name="llm", env=environ)
        assert result.stderr == ""
        return [item.partition(",")[2] for item in result.stdout.split()]

    return complete


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two topics that begin alike, and a third that is turned off."""
    for file in ("project/a.md", "project/m/b.md", "project/.hidden.md", "prose/c.md"):
        path = tmp_path / "kb" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "llm-kb.toml").write_text(
        '[kb.topic.project]\nsubjects = "kb/project"\n[kb.topic.prose]\nsubjects = "kb/prose"\n'
        '[kb.topic.off]\nsubjects = "kb"\nenable = false\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("llm -k ", ["project/", "prose/"]),
        ("llm -k pro", ["project/", "prose/"]),
        ("llm -k proj", ["project/a", "project/m/b"]),
        ("llm -k project/", ["project/a", "project/m/b"]),
        ("llm -k project/m", ["project/m/b"]),
        ("llm -k project/h", []),
        ("llm -k nope/", []),
        ("llm prompt -k pros", ["prose/c"]),
        ("llm chat -k pros", ["prose/c"]),
        ("llm kb list project/", ["project/a", "project/m/b"]),
        ("llm kb show project/a project/m", ["project/m/b"]),
        ("llm kb preload project/", ["project/a", "project/m/b"]),
        ("llm kb disable pros", ["prose/c"]),
        ("llm kb remove ", ["project", "prose"]),
        ("llm kb edit project/a", ["project/a"]),
        ("llm kb edit project/", ["project/a", "project/m/b"]),
        ("llm kb new pro", ["project/", "prose/"]),
    ],
)
def test_topics_and_slugs_are_offered(
    workspace: Path, complete: Complete, line: str, offered: list[str]
) -> None:
    assert complete(line) == offered


@pytest.mark.parametrize("line", ["llm -k ", "llm kb list "])
def test_a_broken_configuration_offers_nothing_and_says_nothing(
    workspace: Path, complete: Complete, line: str
) -> None:
    (workspace / "llm-kb.toml").write_text("[kb\n")
    assert complete(line) == []


def test_nothing_is_configured(complete: Complete) -> None:
    assert complete("llm kb list ") == []
