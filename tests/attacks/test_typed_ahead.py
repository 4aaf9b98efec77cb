"""Keys typed before a question is asked do not answer it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.references.remotes import Remote
from tests.terminal import run_on_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")

CONFIG = '[kb]\nauto = true\n\n[kb.topic.team]\nsubjects = "kb"\n'


@pytest.mark.parametrize(
    ("command", "question"),
    [
        pytest.param(["trust"], "Trust it? [y/N]: ", id="trust"),
        pytest.param(["remove", "team"], "[y/N]: ", id="remove"),
        pytest.param(
            ["references", "create", "--title", "Frob", "--git", "URL"],
            "Keep this? [y/N]: ",
            id="create",
        ),
    ],
)
def test_it_is_dropped(tmp_path: Path, user_dir: Path, command: list[str], question: str) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n")
    (tmp_path / "llm-kb.toml").write_text(CONFIG)
    url = Remote.of(tmp_path / "kb", user_dir).url
    command = [url if word == "URL" else word for word in command]
    shown, code = run_on_terminal(["kb", *command], "n\n", ahead="y\ny\n")
    assert (question in shown, code) == (True, 1), shown
    assert (tmp_path / "llm-kb.toml").read_text() == CONFIG
    assert not (user_dir / "kb-trust.json").exists()
    assert not (user_dir / "kb" / "references" / "topic-frob").exists()
