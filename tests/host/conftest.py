"""Fixtures: a repository to fetch, and a user whose settings allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.references.remotes import Remote


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """A repository with one document."""
    guide = "# Guide\n\n## Hooks\n\nCall `on_mount` to frobnicate.\n"
    return Remote(tmp_path / "remotes" / "frob", {"docs/guide.md": guide})


@pytest.fixture
def trusting(user_dir: Path) -> None:
    """A user who lets git read this disk and pages come from loopback."""
    (user_dir / "kb.toml").write_text(
        '[kb.references]\nallow_hosts = ["127.0.0.1"]\nallow_protocols = ["file"]\n'
    )
