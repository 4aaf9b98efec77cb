"""`llm kb review` and `llm kb knowledge export` on a terminal of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repositories import Repo, make_repo
from tests.terminal import run_on_terminal

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = make_repo(tmp_path / "repo")
    monkeypatch.chdir(made.path)
    for rule in ("Use \x1b[31mx", "Use y"):
        made.record(rule, "README.md")
    return made


def test_a_review_and_exports(repo: Repo) -> None:
    shown, code = run_on_terminal(
        ["kb", "review"], "k\n", question="[q]uit; a letter and Enter: ", then="r\n"
    )
    assert code == 0
    assert "1/2" in shown
    assert "Kept: conv-1 (README.md): Use [31mx" in shown
    assert "Removed: conv-2 (README.md): Use y" in shown
    assert repo.note_json()["conventions"][0]["stability"] == "permanent"
    export = [*KNOWLEDGE, "export", "--to", "AGENTS.md"]
    shown, code = run_on_terminal(export)
    assert (shown, code) == ("AGENTS.md: written, 1 entry.\n", 0)
    text = (repo.path / "AGENTS.md").read_text()
    assert run_on_terminal(export) == ("AGENTS.md: up to date, 1 entry.\n", 0)
    assert (repo.path / "AGENTS.md").read_text() == text
