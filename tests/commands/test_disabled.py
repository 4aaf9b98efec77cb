"""Disabled subjects are not there, for nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.errors import NoMatchError
from llm_kb.knowledge_base.api import KnowledgeBase
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
    "pattern", ["off", "off.md", "o?f", "drafts/x", "drafts/y", "{off,on}", "of*", "nothing"]
)
def test_no_command_finds_them(run_llm: RunLlm, pattern: str) -> None:
    expected = f"Error: no subject of topic 'a' matches {pattern!r}\n"
    assert run_llm(["kb", "show", "--as-model", f"a/{pattern}"]).stderr == expected
    result = run_llm(["kb", "show", f"a/{pattern}"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", expected)


def test_a_model_is_told_nothing_of_it() -> None:
    tool = KnowledgeBase.discover().learn_tool()
    assert tool.implementation is not None
    with pytest.raises(NoMatchError, match=r"^no subject of topic 'a' matches 'off'$"):
        tool.implementation(topic="a", subjects="off")
