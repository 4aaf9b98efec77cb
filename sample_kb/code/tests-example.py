"""Tests to imitate: a table with ids, whole values, and one run of the real `llm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.subjects.topics import slugify
from tests.conftest import RunLlm
from tests.scripted import Script


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        pytest.param("code-quality.md", "code-quality", id="extension comes off"),
        pytest.param("a.tar.gz", "a.tar", id="only the last one"),
        pytest.param(".notes/plan.md", "notes/plan", id="leading dots come off"),
        pytest.param(".gitignore", "gitignore", id="a dot alone starts no extension"),
    ],
)
def test_slugify(path: str, slug: str) -> None:
    assert slugify(path) == slug


def test_a_model_reads_what_it_asks_for(run_llm: RunLlm, script: Script, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n", encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n', encoding="utf-8")
    script.call("learn", topic="team", subjects=["style"]).say("done")

    result = run_llm(["-m", "scripted", "-T", "learn", "How do we write?"])

    assert (result.exit_code, result.stdout) == (0, "done\n")
    assert script.last.outputs == ("Short lines.\n",)
