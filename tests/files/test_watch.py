"""Detecting whether a directory's files have changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.files.watch import DirectoryWatch

OLD = 1_700_000_000_123_456_789
"""A time that is long gone."""


def grow_old(root: Path) -> None:
    """Give a tree a time at which nothing changes any more."""
    for place in (*root.rglob("*"), root):
        if not place.is_symlink():
            os.utime(place, ns=(OLD, OLD))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path in ("a.md", "b/c.md", "b/empty/", ".kbignore", "node_modules/x.md"):
        place = root / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.write_text("text")
    grow_old(root)
    return root


def known(root: Path, *paths: str) -> list[tuple[str, int, int]]:
    return [
        (path, (root / path).stat().st_size, (root / path).stat().st_mtime_ns) for path in paths
    ]


def add_file(root: Path) -> None:
    (root / "b/empty/new.md").write_text("new")


def remove_file(root: Path) -> None:
    (root / "b/c.md").unlink()


def change_in_place(root: Path) -> None:
    (root / "b/c.md").write_text("other")


def change_rules(root: Path) -> None:
    (root / ".kbignore").write_text("b/")


def swap_directory(root: Path) -> None:
    (root / "b").rename(root.parent / "b")
    (root / "b/empty").mkdir(parents=True)
    (root / "b/c.md").write_text("text")
    grow_old(root)


@pytest.mark.parametrize(
    "change", [add_file, remove_file, change_in_place, change_rules, swap_directory]
)
def test_a_change_shows(root: Path, change: Callable[[Path], None]) -> None:
    watch = DirectoryWatch(root, "rules")
    note, files = watch.note(), known(root, "a.md", "b/c.md")
    assert watch.holds(note, files)

    change(root)

    assert not watch.holds(note, files)


def test_what_is_never_a_subject_and_the_order_of_looks_do_not_matter(root: Path) -> None:
    watch = DirectoryWatch(root, "rules")
    note = watch.note()

    (root / "node_modules/y.md").write_text("new")

    assert watch.holds(note, known(root, "a.md"))


def test_other_rules_are_another_list(root: Path) -> None:
    note = DirectoryWatch(root, "rules").note()

    assert not DirectoryWatch(root, "other rules").holds(note, [])


def test_a_change_of_just_now_is_not_noted(root: Path) -> None:
    (root / "b/new.md").write_text("new")

    assert DirectoryWatch(root, "rules").note() == ""


@pytest.mark.parametrize(
    ("target", "is_noted"), [("a.md", True), ("b", False), ("gone", False), ("../x.md", False)]
)
def test_links_to_files_inside_are_noted_and_no_others(
    root: Path, target: str, *, is_noted: bool
) -> None:
    (root.parent / "x.md").write_text("text")
    (root / "link.md").symlink_to(target)
    grow_old(root)

    assert bool(DirectoryWatch(root, "rules").note()) is is_noted


def test_a_directory_that_is_not_there_is_not_noted(root: Path) -> None:
    assert DirectoryWatch(root / "gone", "rules").note() == ""
