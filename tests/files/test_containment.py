"""Directories listed one below the other: the same as by path, and few kept open."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

from llm_kb.files import containment as descent
from llm_kb.files.containment import Containment, DirectoryLister, Entries, OutsideError
from tests.files.test_directory import catalog, matched, names, root, skipped, write
from tests.files.test_hostile_directory import count_open

__all__ = ["root"]  # the fixture


def sort(entries: Entries) -> Entries:
    real, *kinds = entries
    return Entries(real, *map(sorted, kinds))


@pytest.fixture
def tree(root: Path) -> Path:
    write(root, "a.md", "d/b.md", "d/e/c.md", "d/f/g/h.md", ".h/i.md", "z/j.md")
    (root / "d" / "l").symlink_to("../z")
    (root / "out").symlink_to("../private")
    return root


ORDERS = [
    pytest.param(["", "d/", "d/e/", "d/f/", "d/f/g/", "z/"], id="depth first"),
    pytest.param(["d/f/g/", "", "z/", "d/", ".h/", "d/e/", "d/f/", "d/l/"], id="in any order"),
    pytest.param(["", "d/", "d/l/", "d/", "", "d/e/"], id="again, and through a link"),
]


@pytest.mark.parametrize("paths", ORDERS)
def test_a_directory_is_listed_as_by_its_path(tree: Path, paths: list[str]) -> None:
    containment = Containment(tree)
    with closing(DirectoryLister(containment)) as opened:
        for path in paths:
            expected = containment.list_directory(path)
            assert sort(opened.list(path)) == sort(expected), path


def test_what_cannot_be_listed_raises_what_its_path_raises(tree: Path) -> None:
    with closing(DirectoryLister(Containment(tree))) as opened:
        opened.list("")
        with pytest.raises(OutsideError):
            opened.list("out/")
        with pytest.raises(NotADirectoryError):
            opened.list("a.md/")
        with pytest.raises(FileNotFoundError):
            opened.list("gone/")
        opened.list("d/")
        (tree / "d" / "e").rename(tree / "moved")
        (tree / "d" / "e").symlink_to("../../private")
        with pytest.raises(OutsideError):
            opened.list("d/e/")


def test_few_directories_are_kept_open_and_none_at_the_end(root: Path) -> None:
    deep = "d/" * 99
    write(root, f"{deep}x.md", "a.md")
    before = count_open()
    with closing(DirectoryLister(Containment(root))) as opened:
        most = 0
        for level in range(100):
            opened.list(deep[: 2 * level])
            most = max(most, count_open() - before)
    assert most == descent.MAX_OPEN
    assert count_open() == before
    assert matched(catalog(root), "**") == ["a", f"{deep}x"]


def test_where_few_files_may_be_open_nothing_is_left_out(root: Path) -> None:
    deep = ["d/" * level + "x.md" for level in range(60)]
    write(root, *deep)
    opened = catalog(root)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, hard))
    try:
        listing = opened.list_subjects()
        with opened.reading() as read_next:
            contents = [read_next(subject).data.decode() for subject in listing.subjects]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (sorted(contents), list(listing.skipped)) == (sorted(deep), [])


def test_a_walk_that_is_given_up_keeps_nothing_open(tree: Path) -> None:
    before = count_open()
    subjects = catalog(tree).iter_listed()
    next(subjects)
    subjects.close()  # type: ignore[attr-defined]  # it is a generator
    assert count_open() == before


def test_a_system_that_opens_by_path_alone_finds_the_same(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = names(catalog(tree)), skipped(catalog(tree))
    monkeypatch.setattr(descent, "_CAN_LIST_OPEN", False)
    assert (names(catalog(tree)), skipped(catalog(tree))) == found
