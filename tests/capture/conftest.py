"""Real repositories for the tests of capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repositories import Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with one commit, as the current directory."""
    made = make_repo(tmp_path / "repo")
    monkeypatch.chdir(made.path)
    return made
