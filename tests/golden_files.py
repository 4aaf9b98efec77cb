"""Golden files: whole texts to compare with, refreshed by `pytest --update-golden`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

GOLDEN = Path(__file__).parent / "golden"


class Golden(Protocol):
    """Compares a text with a file of `tests/golden/`."""

    def __call__(self, name: str, text: str) -> None:
        """Fail unless the file holds exactly this text; write it where asked to."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that rewrites golden files, to be reviewed as a diff."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare with golden files, or rewrite them under `--update-golden`."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        if not path.exists():
            pytest.fail(f"no golden file {path.name}; write it with --update-golden")
        assert text == path.read_bytes().decode()

    return compare
