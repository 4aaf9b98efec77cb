"""Directories listed within a topic: none outside of it, and none kept open."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from llm_kb.files.containment import Containment, OutsideError
from tests.files.test_directory import catalog, matched, root, write
from tests.files.test_hostile_directory import count_open

__all__ = ["root"]  # the fixture


@pytest.fixture
def tree(root: Path) -> Path:
    write(root, "a.md", "d/b.md", "d/e/c.md", "d/f/g/h.md", ".h/i.md", "z/j.md")
    (root / "d" / "l").symlink_to("../z")
    (root / "out").symlink_to("../private")
    return root


def test_what_cannot_be_listed_raises_an_error(tree: Path) -> None:
    opened = Containment(tree)
    with pytest.raises(OutsideError):
        opened.list_directory("out/")
    with pytest.raises(NotADirectoryError):
        opened.list_directory("a.md/")
    with pytest.raises(FileNotFoundError):
        opened.list_directory("gone/")
    (tree / "d" / "e").rename(tree / "moved")
    (tree / "d" / "e").symlink_to("../../private")
    with pytest.raises(OutsideError):
        opened.list_directory("d/e/")


def test_no_directory_stays_open(root: Path) -> None:
    deep = "d/" * 99
    write(root, f"{deep}x.md", "a.md")
    before = count_open()
    assert matched(catalog(root), "**") == ["a", f"{deep}x"]
    assert count_open() == before


def test_where_few_files_may_be_open_nothing_is_left_out(root: Path) -> None:
    deep = ["d/" * level + "x.md" for level in range(60)]
    write(root, *deep)
    opened = catalog(root)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
    try:
        listing = opened.list()
        contents = [opened.read(subject).data.decode() for subject in listing.subjects]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (sorted(contents), list(listing.skipped)) == (sorted(deep), [])
