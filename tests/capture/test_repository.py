"""Repositories found without git, as git would find them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_kb.files.repository import Repository, find_repository, may_have_ref
from tests.repositories import KNOWLEDGE_REF, Repo, make_repo


def test_no_repository(tmp_path: Path) -> None:
    assert find_repository(tmp_path) is None


def test_a_repository_from_one_of_its_directories(repo: Repo) -> None:
    below = repo.path / "src" / "deep"
    below.mkdir(parents=True)
    git_dir = repo.path / ".git"
    expected = Repository(root=repo.path, git_dir=git_dir, common_dir=git_dir)
    assert find_repository(below) == find_repository(repo.path) == expected


def test_a_linked_work_tree_shares_the_common_directory(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    found = find_repository(tmp_path / "linked")
    assert found is not None
    assert found.root == tmp_path / "linked"
    assert found.common_dir.resolve() == repo.path / ".git"


def test_a_submodule_is_a_repository_of_its_own(repo: Repo, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    allow = ("-c", "protocol.file.allow=always")
    repo.git(*allow, "submodule", "--quiet", "add", str(other.path), "sub")
    found = find_repository(repo.path / "sub")
    assert found is not None
    assert found.root == repo.path / "sub"
    assert found.common_dir.resolve() == repo.path / ".git" / "modules" / "sub"


def test_a_bare_repository_is_passed_over(repo: Repo) -> None:
    bare = repo.path / "bare.git"
    repo.git("clone", "--quiet", "--bare", ".", str(bare))
    found = find_repository(bare)
    assert found is not None
    assert found.root == repo.path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_pipes_in_the_place_of_files_are_not_waited_for(repo: Repo) -> None:
    git_dir = repo.path / ".git"
    for name in ("commondir", "packed-refs"):
        os.mkfifo(git_dir / name)
    found = find_repository(repo.path)
    assert found == Repository(root=repo.path, git_dir=git_dir, common_dir=git_dir)
    assert not may_have_ref(found, KNOWLEDGE_REF)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="an empty directory"),
        pytest.param(lambda path: path.write_text("gitdir: gone"), id="a pointer to nothing"),
        pytest.param(lambda path: path.write_text("hello"), id="another file"),
        pytest.param(lambda path: path.write_bytes(b"\xff\0"), id="bytes"),
    ],
)
def test_a_dot_git_that_is_none_is_passed_over(tmp_path: Path, make: object) -> None:
    assert callable(make)
    outer = make_repo(tmp_path / "outer")
    inner = outer.path / "inner"
    inner.mkdir()
    make(inner / ".git")
    found = find_repository(inner)
    assert found is None or found.root == outer.path


def test_refs_are_found_loose_and_packed_and_from_every_work_tree(
    repo: Repo, tmp_path: Path
) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    places = [find_repository(repo.path), find_repository(tmp_path / "linked")]
    found = []
    for change in ((), ("update-ref", KNOWLEDGE_REF, "HEAD"), ("pack-refs", "--all")):
        if change:
            repo.git(*change)
        found.append([place is not None and may_have_ref(place, KNOWLEDGE_REF) for place in places])
    assert found == [[False, False], [True, True], [True, True]]
    assert not (repo.path / ".git" / KNOWLEDGE_REF).exists()


def test_where_refs_are_no_files_any_may_be_there(repo: Repo) -> None:
    (repo.path / ".git" / "reftable").mkdir()
    repository = find_repository(repo.path)
    assert repository is not None
    assert may_have_ref(repository, KNOWLEDGE_REF)


def test_a_place_of_refs_that_no_system_has_is_no_error(repo: Repo) -> None:
    (repo.path / ".git" / "commondir").write_text("a" * 8_000)
    found = find_repository(repo.path)
    assert found is not None
    assert not may_have_ref(found, KNOWLEDGE_REF)
