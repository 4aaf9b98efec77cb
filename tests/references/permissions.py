"""Directories and files that may not be looked into, whoever runs the tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def shut(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Take all permissions from a path.

    Root may read everything all the same: for it, the calls that the system would
    refuse to others are refused here.
    """
    path.chmod(0)
    if os.geteuid():
        return
    for name in ("open", "stat", "lstat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, _refusing(getattr(os, name), path))


def _refusing(function: Callable[..., Any], path: Path) -> Callable[..., Any]:
    opens = function.__name__ not in {"stat", "lstat"}

    def wrapped(name: Any = ".", *args: Any, **kwargs: Any) -> Any:
        place = Path(os.fsdecode(name)) if isinstance(name, str | bytes | Path) else None
        # A look at the path itself needs no permission on it, only what is below it does.
        if place is not None and (path in place.parents or (opens and place == path)):
            raise PermissionError(13, "Permission denied", os.fspath(name))
        return function(name, *args, **kwargs)

    return wrapped
