"""Directories, or whatever is in their place, as the store lists, moves and removes them."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from llm_kb.atomic import WriteError


def list_names(directory: Path) -> list[str]:
    """Return the names in a directory; none where there is none, or nobody may look."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are all we need
    except OSError:
        return []


def move(source: Path, target: Path) -> None:
    """Rename a directory; raise FileNotFoundError without one, WriteError where it must stay."""
    try:
        source.rename(target)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise WriteError(source, error.strerror or str(error)) from error


def remove(path: Path) -> None:
    """Delete a directory as far as that can be done; of a link only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
