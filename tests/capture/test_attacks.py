"""Notes that a remote made to fill a terminal, or to keep a command busy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.cost import at_most
from tests.repositories import Repo, make_clones

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm) -> Repo:
    """A clone that can pull 3,000 entries that are all near each other, and a long one."""
    theirs, ours = make_clones(tmp_path)
    monkeypatch.chdir(theirs.path)
    run_llm([*KNOWLEDGE, "add", "Use x", "src/"])
    table = theirs.note_json()
    (entry,) = table["conventions"]
    table["conventions"] = [
        {**entry, "id": f"conv-{number}", "rule": f"rule {number % 7}", "stability": "provisional"}
        for number in range(2, 3_002)
    ]
    table["conventions"].append({**entry, "id": "conv-1", "rule": "x " * 100_000})
    theirs.write_note(json.dumps(table))
    pushed = run_llm([*KNOWLEDGE, "sync", "origin"])
    assert pushed.exit_code == 0, pushed.stderr
    monkeypatch.chdir(ours.path)
    return ours


@pytest.mark.usefixtures("repo")
def test_what_a_remote_brings_fills_no_terminal_and_takes_no_minute(run_llm: RunLlm) -> None:
    for command in (["sync", "origin"], ["list"]):
        with at_most(5):
            result = run_llm([*KNOWLEDGE, *command])
        assert result.exit_code == 0
        assert len(result.stdout) <= 200_001
        assert "more.\n" in result.stdout or "Cut at" in result.stderr
