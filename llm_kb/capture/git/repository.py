"""Finds a repository and its refs without starting git."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from llm_kb.git.run import GitError, run_git

_LONGEST_PATH = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The directories of a repository."""

    root: Path
    """The top of the work tree; of a bare repository, itself."""
    git_dir: Path
    """The directory of this work tree alone, with its HEAD and its index."""
    common_dir: Path
    """The directory that all work trees share, with the refs and the objects."""


def find_repository(directory: Path, *, bare: bool = True) -> Repository | None:
    """Return the repository that git would find from a directory; None without one.

    Only the `.git` entries of the directory and its parents are read. Without `bare`, a
    directory that is a repository itself does not count: a clone can carry one among its
    files, with a configuration that runs programs, while a `.git` is never cloned. So code
    that runs unasked looks for a `.git` alone.
    """
    directory = directory.absolute()
    for parent in (directory, *directory.parents):
        git_dir = _git_dir_of(parent, bare=bare)
        if git_dir:
            return Repository(root=parent, git_dir=git_dir, common_dir=_common_dir_of(git_dir))
    return None


def _git_dir_of(directory: Path, *, bare: bool) -> Path | None:
    dot_git = directory / ".git"
    try:
        if dot_git.is_dir():
            return dot_git if _is_git_dir(dot_git) else None
        if dot_git.is_file():
            # A linked work tree or a submodule: one line with the path.
            said = _read_start(dot_git)
            named = directory / said.removeprefix("gitdir:").strip()
            return named if said.startswith("gitdir:") and named.is_dir() else None
    except OSError:
        return None  # a directory of another user
    return directory if bare and _is_git_dir(directory) else None


def _is_git_dir(directory: Path) -> bool:
    return (
        (directory / "HEAD").is_file()
        and (directory / "objects").is_dir()
        and (directory / "refs").is_dir()
    )


def _common_dir_of(git_dir: Path) -> Path:
    named = git_dir / "commondir"
    # Without it, this is the main work tree or a submodule.
    return git_dir / _read_start(named).strip() if named.is_file() else git_dir


def _read_start(path: Path) -> str:
    with path.open("rb") as file:
        return os.fsdecode(file.read(_LONGEST_PATH))


def has_ref(repository: Repository, ref: str) -> bool:
    """Tell whether a ref exists, by its files; git is asked only about a reftable."""
    common = repository.common_dir
    if (common / ref).is_file():
        return True
    if (common / "reftable").is_dir():
        return _git_has_ref(repository, ref)
    packed = common / "packed-refs"
    try:
        # Reading a pipe of that name would never end.
        return packed.is_file() and f" {ref}\n".encode() in packed.read_bytes()
    except OSError:
        return False


def _git_has_ref(repository: Repository, ref: str) -> bool:
    try:
        run_git("rev-parse", "--verify", "--quiet", "--end-of-options", ref, cwd=repository.root)
    except GitError:
        return False
    return True


def read_settings(directory: Path, name: str) -> list[str]:
    """Return the values of a setting of git, the effective one last; empty if it is not set."""
    try:
        listed = run_git("config", "--get-all", name, cwd=directory)
    except GitError:
        return []
    return listed.decode(errors="replace").splitlines()


def read_config(directory: Path, *names: str) -> str | None:
    """Return the value of the first setting of git that is not empty."""
    values = ("".join(read_settings(directory, name)[-1:]).strip() for name in names)
    return next(filter(None, values), None)
