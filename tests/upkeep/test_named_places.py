"""Paths that a repository once had, and the limits of looking for them."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from llm_kb.files.repository import Repository, find_repository
from llm_kb.upkeep.named_places import History, read_history
from tests.git_templates import copy_repository

PAGE = PurePosixPath("docs/page.md")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository whose three commits add two files and delete one after the other."""
    copy_repository(tmp_path, {"src/a.py": "a\n", "src/b.py": "b\n"})
    for name in ("src/a.py", "src/b.py"):
        subprocess.run(["git", "-C", str(tmp_path), "rm", "-q", name], check=True)
        subprocess.run(["git", "-C", str(tmp_path), "commit", "-qm", name], check=True)
    found = find_repository(tmp_path)
    assert found
    return found


def test_all_that_was_deleted_is_known(repository: Repository) -> None:
    history = read_history(repository)
    found = [what for what, _ in history.find_gone("`src/a.py` `src/b.py:3` `src/c.py`", PAGE)]
    assert found == ["git had src/a.py, which is gone", "git had src/b.py, which is gone"]
    assert history.cut == ""


def test_what_git_ignores_now_is_written_by_a_build(repository: Repository) -> None:
    (repository.root / ".gitignore").write_text("/src/a.py\nbuild/\n", encoding="utf-8")
    history = read_history(repository)
    assert [what for what, _ in history.find_gone("`src/a.py` `src/b.py`", PAGE)] == [
        "git had src/b.py, which is gone"
    ]


def test_a_history_that_is_too_long_is_cut_and_said(repository: Repository) -> None:
    history = read_history(repository, most_commits=1)
    assert history.deleted == ["src/b.py/"]
    assert history.cut == "only the last 1 commits, or 2 seconds of them, were read"
    late = read_history(repository, seconds=0.0)
    assert (late.deleted, late.cut) == ((), "git ls-tree failed: timed out after 0 s")


def test_a_repository_without_a_commit_had_nothing(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    found = find_repository(tmp_path)
    assert found
    assert read_history(found) == History(tmp_path)


@pytest.mark.parametrize(
    "page", ["CHANGELOG.md", "docs/adr/1.md", "rfcs/x.md", "plans/q3.md", "docs/decisions/2.md"]
)
def test_pages_of_their_time_may_name_what_is_gone(repository: Repository, page: str) -> None:
    assert not [*read_history(repository).find_gone("`src/a.py`", PurePosixPath(page))]
