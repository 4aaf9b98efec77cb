"""Shell completion as a shell asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.preloaded import Process


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("llm kb prom", "plain,prompt", id="subcommand"),
        pytest.param("llm kb references ref", "plain,refresh", id="of-a-group"),
        pytest.param("llm chat -k project/a", "plain,project/architecture", id="slug"),
    ],
)
def test_shell_completes(
    words: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/architecture.md").write_text("# Architecture\n## Rooms\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb"\n')
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_LLM_COMPLETE", "bash_complete")
    shown, _ = Process([]).communicate()
    assert shown.split() == [expected]
