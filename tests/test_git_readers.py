"""What git prints, read while it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from llm_kb.git import FieldReader, GitError, GitObject, ObjectReader, read_git
from tests.capture.repositories import SHA1_EMPTY_TREE, Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo")


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="gone: No such file or directory"):
        ObjectReader(tmp_path / "gone")


def test_output_is_read_to_a_limit(repo: Repo) -> None:
    repo.commit("big", big_txt="x" * 1_000_000)
    show = ("cat-file", "blob", "HEAD:big.txt")
    assert read_git(*show, cwd=repo.path, limit=1000) == (b"x" * 1000, True)
    assert read_git(*show, cwd=repo.path, limit=1_000_000) == (b"x" * 1_000_000, False)
    with pytest.raises(GitError, match="git cat-file failed: fatal"):
        read_git("cat-file", "blob", "HEAD:none", cwd=repo.path, limit=1000)


def test_objects_are_read_through_one_process(repo: Repo) -> None:
    with ObjectReader(repo.path) as reader:
        blob = reader.read("HEAD:README.md")
        assert reader.read("HEAD:none") is None
        assert reader.read("no-such-name") is None
        tree = reader.read(SHA1_EMPTY_TREE)
        commit = reader.read("HEAD^{commit}")
    assert blob == GitObject(
        id="ce013625030ba8dba906f756967f9e9ca394464a", type="blob", data=b"hello\n"
    )
    assert tree == GitObject(id=SHA1_EMPTY_TREE, type="tree", data=b"")
    assert commit is not None
    assert (commit.id, commit.type) == (repo.head, "commit")


def test_reading_objects_outside_a_repository_fails(tmp_path: Path) -> None:
    with ObjectReader(tmp_path) as reader, pytest.raises(GitError, match="not a git repository"):
        reader.read("HEAD")


def test_an_error_in_between_leaves_no_process_waiting(repo: Repo) -> None:
    def fail() -> None:
        with ObjectReader(repo.path) as reader:
            reader.read("HEAD")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_many_objects_are_asked_for_together(repo: Repo) -> None:
    ids = [repo.head, "f" * 40] * 300
    with ObjectReader(repo.path) as reader:
        found = [commit and commit.id for commit in reader.read_ids(ids)]
        assert reader.read("HEAD:none") is None
    assert found == [repo.head, None] * 300


def test_fields_are_read_as_they_come(repo: Repo) -> None:
    for number in range(3):
        repo.commit(f"{number}", **{f"a{number}": "x" * 200_000})
    with FieldReader("log", "-z", "--format=%s", "HEAD", cwd=repo.path) as log:
        assert list(log.read_fields()) == [b"2", b"1", b"0", b"first"]
    with FieldReader("cat-file", "blob", "HEAD:a1", cwd=repo.path) as blob:
        assert list(blob.read_fields()) == []  # none that ended


def test_a_command_of_which_not_all_is_read_is_stopped(repo: Repo) -> None:
    endless = "!while printf 'a\\0'; do :; done"
    with FieldReader("-c", f"alias.endless={endless}", "endless", cwd=repo.path) as reader:
        assert next(reader.read_fields()) == b"a"


def test_a_command_that_fails_has_its_fields_read_first(repo: Repo) -> None:
    fail = "!printf 'a\\0'; echo oh no >&2; exit 3"
    with FieldReader("-c", f"alias.fail={fail}", "fail", cwd=repo.path) as reader:
        fields = reader.read_fields()
        assert next(fields) == b"a"
        with pytest.raises(GitError, match="git -c failed: oh no"):
            next(fields)


TALKATIVE = "!head --bytes=1000000 /dev/zero | tr '\\0' w >&2; printf 'a\\0'"


@pytest.mark.parametrize(("end", "code"), [("", 0), ("; echo oh no >&2; exit 3", 3)])
def test_a_command_may_say_more_than_a_pipe_holds(repo: Repo, end: str, code: int) -> None:
    command = ("-c", f"alias.talk={TALKATIVE}{end}", "talk")
    with FieldReader(*command, cwd=repo.path) as reader:
        fields = reader.read_fields()
        assert next(fields) == b"a"
        if code:
            with pytest.raises(GitError, match=r"w{4000}oh no$") as failed:
                next(fields)
            assert len(failed.value.stderr) == 4096
            with pytest.raises(GitError, match=r"w{4000}oh no$"):
                read_git(*command, cwd=repo.path, limit=10)
        else:
            assert list(fields) == []
            assert read_git(*command, cwd=repo.path, limit=10) == (b"a\0", False)


def test_ids_that_are_names_too_are_read_however_many(repo: Repo) -> None:
    """By default git warns of each."""
    name = repo.head[:12]
    repo.git("tag", name)
    with ObjectReader(repo.path) as reader:
        found = [commit and commit.id for commit in reader.read_ids([name] * 3000)]
    assert found == [repo.head] * 3000


def test_without_a_temporary_file_the_error_says_so(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(repo.path / "gone"))
    with pytest.raises(GitError, match="no temporary file can be made: No such file"):
        ObjectReader(repo.path)
