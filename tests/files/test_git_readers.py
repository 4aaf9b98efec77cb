"""Reading git's output while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.files.git import MAX_OBJECT, GitError, GitObject, read_git, read_objects, run_git
from tests.repositories import SHA1_EMPTY_TREE, Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo")


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="gone: No such file or directory"):
        run_git("status", cwd=tmp_path / "gone")


def test_output_is_read_to_a_limit(repo: Repo) -> None:
    repo.commit("big", big_txt="x" * 1_000_000)
    show = ("cat-file", "blob", "HEAD:big.txt")
    assert read_git(*show, cwd=repo.path, limit=1000) == (b"x" * 1000, True)
    assert read_git(*show, cwd=repo.path, limit=1_000_000) == (b"x" * 1_000_000, False)
    with pytest.raises(GitError, match="git cat-file failed: fatal"):
        read_git("cat-file", "blob", "HEAD:none", cwd=repo.path, limit=1000)


def test_objects_are_read_through_one_process(repo: Repo) -> None:
    names = ["HEAD:README.md", "HEAD:none", "no\nname", "", SHA1_EMPTY_TREE, "HEAD^{commit}"]
    blob, none, odd, nothing, tree, commit = read_objects(repo.path, names)
    assert blob == GitObject(
        id="ce013625030ba8dba906f756967f9e9ca394464a", type="blob", data=b"hello\n"
    )
    assert none is odd is nothing is None
    assert tree == GitObject(id=SHA1_EMPTY_TREE, type="tree", data=b"")
    assert commit is not None
    assert (commit.id, commit.type) == (repo.head, "commit")


def test_reading_objects_outside_a_repository_fails(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not a git repository"):
        read_objects(tmp_path, ["HEAD"])


def test_an_object_without_measure_is_named(repo: Repo) -> None:
    repo.commit("big", big_txt="x" * MAX_OBJECT)
    with pytest.raises(
        KbError, match=r"HEAD:big\.txt has too many bytes; at most 4,000,000 are read"
    ):
        read_objects(repo.path, ["HEAD:big.txt", "HEAD:README.md"])


TALKATIVE = "!head --bytes=1000000 /dev/zero | tr '\\0' w >&2; printf 'a\\0'"


def test_a_command_may_say_more_than_a_pipe_holds(repo: Repo) -> None:
    command = ("-c", f"alias.talk={TALKATIVE}", "talk")
    assert read_git(*command, cwd=repo.path, limit=10) == (b"a\0", False)
    failing = ("-c", f"alias.talk={TALKATIVE}; echo oh no >&2; exit 3", "talk")
    with pytest.raises(GitError, match=r"oh no$") as failed:
        read_git(*failing, cwd=repo.path, limit=10)
    assert failed.value.stderr == "oh no\n".rjust(4096, "w")


def test_ids_that_are_names_too_are_read_however_many(repo: Repo) -> None:
    """By default git warns of each."""
    name = repo.head[:12]
    repo.git("tag", name)
    found = [commit and commit.id for commit in read_objects(repo.path, [name] * 300)]
    assert found == [repo.head] * 300
