"""The staging directory of a new topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.references.topic.staging import OldTopic, Staged
from llm_kb.references.topic.topic_directory import FileRecord, hash_content

RECORD = FileRecord(source=0, url="https://e.org/x")


@pytest.fixture
def staged(tmp_path: Path) -> Staged:
    """A topic that replaces one with `a.md` of source 0."""
    old, new = tmp_path / "old", tmp_path / "new"
    for directory in (old, new):
        directory.mkdir()
    (old / "a.md").write_bytes(b"old")
    record = FileRecord(source=0, url="https://e.org/x", hash=hash_content(b"old"), size=3)
    topic = OldTopic(directory=old, files={"a.md": record}, approved=frozenset())
    return Staged(directory=new, now="now", old=topic, most_bytes=1000, most_files=10)


def names(staged: Staged) -> dict[str, str]:
    return {
        path.relative_to(staged.directory).as_posix(): path.read_text()
        for path in sorted(staged.directory.rglob("*"))
        if path.is_file()
    }


def test_a_source_that_fails_has_its_old_files_and_no_new_ones(staged: Staged) -> None:
    staged.write("a.md", b"new", RECORD)
    staged.write("deep/er/b.md", b"new", RECORD)
    staged.write("deep/other.md", b"other", FileRecord(source=1, url="https://e.org/y"))
    staged.fail_source(0)
    assert names(staged) == {"a.md": "old", "deep/other.md": "other"}
    assert (sorted(staged.files), staged.failed) == (["a.md", "deep/other.md"], {0})
    assert staged.files["a.md"].hash == hash_content(b"old")


@pytest.mark.parametrize("taken", ["a.md", "a.md/b"])
def test_an_old_file_whose_name_is_taken_is_told(staged: Staged, taken: str) -> None:
    staged.write(taken, b"other", FileRecord(source=1, url="https://e.org/y"))
    staged.fail_source(0)
    assert names(staged) == {taken: "other"}
    assert staged.warnings == ["https://e.org/x: 'a.md' left out, its name is already taken"]


def test_a_file_below_a_file_is_left_out_and_told(staged: Staged) -> None:
    staged.write("a", b"file", RECORD)
    staged.write("a/b", b"below", RECORD)
    assert names(staged) == {"a": "file"}
    assert staged.warnings == ["https://e.org/x: 'a/b' left out, its name is already taken"]


def test_an_old_file_that_was_edited_is_kept_only_where_nothing_newer_can_be_had(
    staged: Staged,
) -> None:
    (staged.old.directory / "a.md").write_text("edited")
    record = staged.old.files["a.md"]
    assert not staged.keep("a.md", record)
    staged.keep("a.md", record, edited=True)
    assert names(staged) == {"a.md": "edited"}


@pytest.mark.parametrize("kind", ["link", "nothing", "directory"])
def test_what_is_no_file_any_more_is_not_kept(staged: Staged, kind: str) -> None:
    path = staged.old.directory / "a.md"
    path.unlink()
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "directory":
        path.mkdir()
    staged.fail_source(0)
    assert (names(staged), staged.files, staged.warnings) == ({}, {}, [])
