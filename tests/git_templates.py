"""Git repositories made once a session and copied, which is faster than `git init`."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from tests.isolation import isolated_environment, make_home

T = TypeVar("T")

_made = tempfile.TemporaryDirectory(prefix="llm-kb-templates-")
atexit.register(_made.cleanup)


def copy_empty_repository(path: Path) -> None:
    """Make `path` a repository without any commit."""
    shutil.copytree(_empty(), path, dirs_exist_ok=True)


def copy_repository(path: Path, files: Mapping[str, str]) -> None:
    """Make `path` a repository whose one commit adds these files."""
    shutil.copytree(_committed(tuple(files.items())), path, dirs_exist_ok=True)


def copy_made(path: Path, make: Callable[[Path], T]) -> T:
    """Make `path` what a function makes of a new directory; return what the function returns.

    It is called once, in the environment of the first test that asks.
    """
    made, result = cast("tuple[Path, T]", _made_by(make))
    shutil.copytree(made, path, symlinks=True, dirs_exist_ok=True)
    return result


@cache
def _made_by(make: Callable[[Path], T]) -> tuple[Path, T]:
    path = _new_directory()
    return path, make(path)


@cache
def _empty() -> Path:
    path = _new_directory()
    _git("init", "--quiet", "--initial-branch=main", str(path))
    _git("-C", str(path), "config", "uploadpack.allowFilter", "true")  # as on any forge
    for sample in (path / ".git" / "hooks").glob("*.sample"):
        sample.unlink()
    return path


@cache
def _committed(files: tuple[tuple[str, str], ...]) -> Path:
    path = _new_directory()
    copy_empty_repository(path)
    for name, text in files:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    _git("-C", str(path), "add", "--all", "--force")
    _git("-C", str(path), "commit", "--quiet", "--message", "first")
    return path


def _new_directory() -> Path:
    return Path(tempfile.mkdtemp(dir=_made.name))


def _git(*arguments: str) -> None:
    """Run git with the identity of the tests and nothing of the developer's."""
    home = Path(_made.name, "home")
    if not home.exists():
        make_home(home)
    subprocess.run(["git", *arguments], env=isolated_environment(home, os.environ), check=True)
