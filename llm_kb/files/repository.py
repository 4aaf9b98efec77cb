"""Finds the git repository of a directory, by its files and without git."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LONGEST_PATH = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The directories of a repository."""

    root: Path
    """The top of the work tree."""
    git_dir: Path
    """The directory of this work tree's own data, such as the index."""
    common_dir: Path
    """The directory that all work trees share, with the refs and the objects."""


def find_repository(directory: Path | None) -> Repository | None:
    """Return the repository that git would find from a directory; None without one.

    Only the `.git` entries of the directory and its parents are read. A directory that is a
    repository itself does not count: a clone can carry one among its files, with a
    configuration that runs programs, while a `.git` is never cloned.
    """
    if directory is None:  # it was deleted
        return None
    directory = directory.absolute()
    for root in (directory, *directory.parents):
        with suppress(OSError):  # a directory of another user
            if git_dir := _find_git_dir(root):
                named = git_dir / "commondir"
                # Without it, this is the main work tree or a submodule.
                common_dir = git_dir / _read_start(named).strip() if named.is_file() else git_dir
                return Repository(root=root, git_dir=git_dir, common_dir=common_dir)
    return None


def may_have_ref(repository: Repository, ref: str) -> bool:
    """Tell by its files whether a repository may have a ref; in a reftable it may."""
    common = repository.common_dir
    packed = common / "packed-refs"
    try:
        if (common / ref).is_file() or (common / "reftable").is_dir():
            return True
        # Reading a pipe of that name would never end.
        return packed.is_file() and f" {ref}\n".encode() in packed.read_bytes()
    except OSError:
        return False


def _find_git_dir(root: Path) -> Path | None:
    found = root / ".git"
    if found.is_file():
        # A linked work tree or a submodule: one line with the path.
        found = root / _read_start(found).removeprefix("gitdir:").strip()
    return found if (found / "HEAD").is_file() else None


def _read_start(path: Path) -> str:
    """Return the path in a file, which ends with a NUL at the latest, as git has it."""
    with path.open("rb") as file:
        return os.fsdecode(file.read(_LONGEST_PATH).partition(b"\0")[0])
