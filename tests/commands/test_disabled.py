"""Disabled subjects are explained to the user who configured them, and hidden from models."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.api import KnowledgeBase
from llm_kb.errors import NoMatchError
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A topic with three disabled subjects, one of them hidden."""
    disabled = '["off", "drafts/*", "no-such"]'
    write_files(
        tmp_path,
        {
            "llm-kb.toml": f'[kb.topic.a]\nsubjects = "kb"\ndisabled = {disabled}\n',
            "kb/one.md": "One.\n",
            "kb/off.md": "Off.\n",
            "kb/drafts/x.md": "Draft.\n",
            "kb/drafts/.y.md": "Hidden draft.\n",
        },
    )
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "entries"),
    [
        ("off", "off"),
        ("off.md", "off"),
        ("o?f", "off"),
        ("drafts/x", "drafts/*"),
        ("drafts/y", "drafts/*"),
        ("{off,on}", None),
        ("of*", "off"),
        ("nothing", None),
        ("no-such", None),
    ],
)
def test_show_names_the_setting_and_learn_answers_as_to_a_model(
    workspace: Path, run_llm: RunLlm, pattern: str, entries: str | None
) -> None:
    expected = f"no subject of topic 'a' matches {pattern!r}"
    assert run_llm(["kb", "learn", "a", pattern]).stderr == f"Error: {expected}\n"
    if entries is not None:
        setting = f"kb.topic.a.disabled ({entries}) in {workspace / 'llm-kb.toml'}"
        expected += f": subjects that would match are disabled by {setting}"
    result = run_llm(["kb", "show", f"a/{pattern}"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {expected}\n")


def test_entries_that_share_what_a_pattern_matches_are_all_named(
    workspace: Path, run_llm: RunLlm
) -> None:
    (workspace / "kb/one.md").unlink()
    result = run_llm(["kb", "show", "a/**"])
    assert "disabled by kb.topic.a.disabled (off, drafts/*, no-such) in " in result.stderr


def test_a_model_is_told_nothing_of_it() -> None:
    tool = KnowledgeBase.discover().learn_tool()
    assert tool.implementation is not None
    with pytest.raises(NoMatchError, match=r"^no subject of topic 'a' matches 'off'$"):
        tool.implementation(topic="a", subjects="off")
