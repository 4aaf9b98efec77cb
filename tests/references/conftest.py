"""Fixtures: a web site, a repository and a library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from llm_kb.references.library import Library
from llm_kb.references.settings import References
from tests.references.remotes import Remote
from tests.references.sites import Site, serve_site

LOCAL = References(allow_hosts=("127.0.0.1",), allow_protocols=("file",), timeout=20)
"""Settings of a user who trusts this machine."""


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The time of the library."""
    return Clock()


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback."""
    with serve_site() as site:
        yield site


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """A repository with a README, a guide and some code."""
    return Remote(
        tmp_path / "remotes" / "frob",
        {
            "README.md": "# Frob\n\nFrobnicates widgets.\n",
            "docs/guide.md": "# Guide\n\n## Lifecycle hooks\n\nCall `on_mount` first.\n",
            "src/frob.py": "def frobnicate(widget):\n    return widget\n",
        },
    )


@pytest.fixture
def library(tmp_path: Path, clock: Clock) -> Library:
    """An empty library of a user who trusts this machine."""
    return Library(root=tmp_path / "references", settings=LOCAL, clock=clock)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A directory of this machine, with three files."""
    notes = tmp_path / "notes"
    for name in ("a.md", "b/c.md", "b/d.md"):
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(name)
    return notes
