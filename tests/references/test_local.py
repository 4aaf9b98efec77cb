"""What is taken from a directory of this machine, and what is said of the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_kb.references.errors import FetchError, NothingFetchedError
from llm_kb.references.fetch.create import create_topic, plan_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan.plan_text import describe_plan
from llm_kb.references.sources.local import list_local, read_local
from llm_kb.references.sources.records import LocalSource
from tests.references.requests import files_of, never, request, yes
from tests.references.sites import Site
from tests.references.unreadable import unreadable


def test_what_is_left_out_is_counted(notes: Path) -> None:
    (notes / "link").symlink_to("/etc/passwd")
    (notes / "linked").symlink_to("b")
    os.mkfifo(notes / "fifo")
    (notes / "line\nbreak.md").write_text("x")
    Path(os.fsdecode(os.fsencode(notes) + b"/\xff.md")).write_text("x")
    (notes / ".git").mkdir()
    (notes / ".git" / "config").write_text("x")
    tree = list_local(LocalSource(url=str(notes)))
    assert [(file.path, file.size) for file in tree.files] == [
        ("a.md", 4),
        ("b/c.md", 6),
        ("b/d.md", 6),
    ]
    assert tree.notes == (
        "left out: 2 links",
        "left out: 1 special file",
        "left out: 2 files with an unsafe name",
    )


def test_the_operator_is_told_in_the_plan(library: Library, notes: Path) -> None:
    (notes / "link").symlink_to("/etc/passwd")
    plan = plan_topic(library, request(LocalSource(url=str(notes))))
    assert describe_plan(plan) == (
        f"  local {notes}: 3 files, 16 B\n    left out: 1 link\n  from this machine"
    )


def test_paths_that_match_nothing_are_told(notes: Path) -> None:
    tree = list_local(LocalSource(url=str(notes), paths=("b", "x/")))
    assert [file.path for file in tree.files] == ["b/c.md", "b/d.md"]
    assert tree.notes == ("no file matches the path 'x/'",)


@pytest.mark.parametrize("where", ["b", "b/c.md"])
def test_what_cannot_be_read_is_not_gone(
    library: Library, site: Site, notes: Path, where: str
) -> None:
    create_topic(library, request(LocalSource(url=str(notes))), yes)
    before = files_of(library)
    (notes / "a.md").write_text("changed")
    with unreadable(notes / where), pytest.raises(NothingFetchedError) as caught:
        refresh_topic(library, "topic-frob", never)
    assert caught.value.reasons == (f"cannot fetch {notes}: {where}: Permission denied",)
    assert files_of(library) == before


def test_a_directory_that_is_not_wanted_need_not_be_readable(notes: Path) -> None:
    (notes / "private").mkdir()
    with unreadable(notes / "private"):
        tree = list_local(LocalSource(url=str(notes), paths=("b/c.md",)))
    assert [file.path for file in tree.files] == ["b/c.md"]


@pytest.mark.parametrize("what", ["nothing", "file"])
def test_a_source_must_be_a_directory(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what == "file":
        path.write_text("x")
    with pytest.raises(FetchError, match="it is no directory"):
        list_local(LocalSource(url=str(path)))


def test_a_directory_below_one_that_is_closed_is_an_error(notes: Path) -> None:
    with unreadable(notes), pytest.raises(FetchError, match="Permission denied"):
        list_local(LocalSource(url=str(notes / "b")))


def test_a_file_that_became_a_fifo_does_not_block(notes: Path) -> None:
    (notes / "a.md").unlink()
    os.mkfifo(notes / "a.md")
    with pytest.raises(FetchError, match=r"a\.md: not a regular file"):
        read_local(LocalSource(url=str(notes)), "a.md")


# A source that fails half-way


def test_a_topic_is_not_made_of_half_a_source(library: Library, notes: Path) -> None:
    source = LocalSource(url=str(notes))

    with unreadable(notes / "b" / "c.md"), pytest.raises(NothingFetchedError) as caught:
        create_topic(library, request(source), yes)
    assert caught.value.reasons == (f"cannot fetch {notes}: b/c.md: Permission denied",)
    assert library.store.ids() == []


def test_a_source_that_fails_half_way_leaves_nothing_beside_another(
    library: Library, notes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.md").write_text("o")
    sources = (LocalSource(url=str(notes)), LocalSource(url=str(other)))
    with unreadable(notes / "b" / "c.md"):
        created = create_topic(library, request(*sources), yes)
    assert created.warnings == (f"cannot fetch {notes}: b/c.md: Permission denied",)
    assert files_of(library) == {"other/o.md": "o"}
    assert not (library.store.directory("topic-frob") / "notes").exists()
