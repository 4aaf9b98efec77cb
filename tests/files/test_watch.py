"""Detecting whether a topic's files have changed, without listing them again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.topic_documents import TopicDocuments
from llm_kb.subjects.topics import TopicConfig

OLD = 1_700_000_000_123_456_789
"""A time that is long gone."""


def grow_old(root: Path) -> None:
    """Give a tree a time at which nothing changes any more, and wait for the tick of that."""
    for place in (*root.rglob("*"), root):
        if not place.is_symlink():
            os.utime(place, ns=(OLD, OLD))
    time.sleep(0.06)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for path in ("a.md", "b/c.md", "b/empty/", "node_modules/x.md"):
        place = root / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.write_text("text")
    grow_old(root)
    return root


def known(root: Path, *paths: str) -> list[tuple[str, int, int, int]]:
    stamp = DirectoryTopic(TopicConfig(id="t", root=root)).stamp
    return [(path, *stamp(path)) for path in paths]


def watch_of(root: Path, **fields: Any) -> TopicDocuments:
    topic = TopicConfig(id="t", root=root, **fields)
    return TopicDocuments(DirectoryTopic(topic))


def add_file(root: Path) -> None:
    (root / "b/empty/new.md").write_text("new")


def remove_file(root: Path) -> None:
    (root / "b/c.md").unlink()


def change_in_place(root: Path) -> None:
    (root / "b/c.md").write_text("other")


def change_and_set_the_time_back(root: Path) -> None:
    (root / "b/c.md").write_text("else")
    os.utime(root / "b/c.md", ns=(OLD, OLD))


def swap_directory(root: Path) -> None:
    (root / "b").rename(root.parent / "b")
    (root / "b/empty").mkdir(parents=True)
    (root / "b/c.md").write_text("text")
    grow_old(root)


@pytest.mark.parametrize(
    "change",
    [
        add_file,
        remove_file,
        change_in_place,
        change_and_set_the_time_back,
        swap_directory,
    ],
)
def test_a_change_shows(root: Path, change: Callable[[Path], None]) -> None:
    watch = watch_of(root)
    note, files = watch.note(), known(root, "a.md", "b/c.md")
    assert watch.holds(note, files)

    change(root)

    assert not watch.holds(note, files)


def test_what_is_never_a_subject_and_the_order_of_looks_do_not_matter(root: Path) -> None:
    watch = watch_of(root)
    note = watch.note()

    (root / "node_modules/y.md").write_text("new")

    assert watch.holds(note, known(root, "a.md"))


def test_other_rules_are_another_list(root: Path) -> None:
    note = watch_of(root).note()

    assert not watch_of(root, disabled=("b",)).holds(note, [])


def test_a_change_of_just_now_is_not_noted(root: Path) -> None:
    (root / "b/new.md").write_text("new")

    assert watch_of(root).note() == ""


def test_what_the_topic_ignores_does_not_matter(root: Path) -> None:
    watch = watch_of(root, ignore=("b/",))
    note = watch.note()

    (root / "b/new.md").write_text("new")

    assert watch.holds(note, known(root, "a.md"))


def add_below_link(root: Path) -> None:
    (root / "linked/deep/new.md").write_text("new")


def turn_link(root: Path) -> None:
    (root.parent / "hop").unlink()
    (root.parent / "hop").symlink_to(root / "b")


def give_target(root: Path) -> None:
    (root.parent / "other/missing.md").write_text("here now")
    grow_old(root.parent / "other")


@pytest.mark.parametrize("change", [add_below_link, turn_link, give_target])
def test_a_change_behind_a_link_shows(root: Path, change: Callable[[Path], None]) -> None:
    other = root.parent / "other"
    (other / "deep").mkdir(parents=True)
    (root.parent / "hop").symlink_to(other)
    (root / "linked").symlink_to(root.parent / "hop")
    (root / "missing.md").symlink_to(other / "missing.md")
    grow_old(other)
    grow_old(root)
    watch = watch_of(root, allow_links_to=(other,))
    note = watch.note()
    assert watch.holds(note, [])

    change(root)

    assert not watch.holds(note, [])


@pytest.mark.parametrize("target", ["a.md", "b", "gone", "../x.md", ".."])
def test_links_of_every_kind_are_watched(root: Path, target: str) -> None:
    (root.parent / "x.md").write_text("text")
    (root / "link.md").symlink_to(target)
    grow_old(root.parent)
    watch = watch_of(root)
    note = watch.note()

    assert watch.holds(note, known(root, "a.md"))

    (root / "link.md").unlink()
    (root / "link.md").symlink_to("b/c.md")

    assert not watch.holds(note, known(root, "a.md"))


def test_a_directory_that_is_not_there_is_not_noted(root: Path) -> None:
    assert watch_of(root / "gone").note() == ""


def test_a_run_in_another_locale_leaves_nothing_out_for_later_ones(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = watch_of(root).note()
    assert watch_of(root).holds(note, [])
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    assert not watch_of(root).holds(note, [])
