"""Workspaces on disk, for the tests of commands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

A_DAY = 20_000 * 86_400
"""2024-10-04, as a time a file was changed."""


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a directory, all changed on the same day."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(path, (A_DAY, A_DAY))
