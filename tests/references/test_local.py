"""The files taken from a local directory, and the notes on the others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.knowledge_base.passages import search_references as ask
from llm_kb.references.errors import FetchError, NothingFetchedError
from llm_kb.references.fetch.topics import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import Plan, describe_plan
from llm_kb.references.sources.git import Tree
from llm_kb.references.sources.local import list_local, read_local
from llm_kb.references.sources.records import LocalSource
from tests.references.requests import files_of, never, plan_topic, request, yes
from tests.references.sites import Site
from tests.references.unreadable import unreadable

MOST = 1_000_000


def test_what_is_left_out_is_counted(notes: Path) -> None:
    (notes / "link").symlink_to("/etc/passwd")
    (notes / "linked").symlink_to("b")
    os.mkfifo(notes / "fifo")
    (notes / "line\nbreak.md").write_text("x")
    Path(os.fsdecode(os.fsencode(notes) + b"/\xff.md")).write_text("x")
    (notes / ".hg").mkdir()
    (notes / ".hg" / "config").write_text("x")
    tree = list_local(LocalSource(url=str(notes)), MOST)
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
    tree = list_local(LocalSource(url=str(notes), paths=("b", "x/")), MOST)
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
    assert caught.value.reasons == (f"{notes}: {where}: Permission denied",)
    assert files_of(library) == before


def test_a_subdirectory_that_cannot_be_read_is_left_out_and_named(
    library: Library, notes: Path
) -> None:
    plans: list[Plan] = []

    def approve(plan: Plan) -> bool:
        plans.append(plan)
        return True

    (notes / "private").mkdir()
    (notes / "private" / "x.md").write_text("x")
    with unreadable(notes / "private"):
        create_topic(library, request(LocalSource(url=str(notes))), approve)
        (notes / "a.md").write_text("changed")
        refreshed = refresh_topic(library, "topic-frob", never)
    assert "left out as unreadable: private/ (Permission denied)" in describe_plan(plans[0])
    assert refreshed.modified == 1
    assert "changed" in files_of(library).values()


def test_a_directory_that_is_not_wanted_need_not_be_readable(notes: Path) -> None:
    (notes / "private").mkdir()
    with unreadable(notes / "private"):
        tree = list_local(LocalSource(url=str(notes), paths=("b/c.md",)), MOST)
    assert [file.path for file in tree.files] == ["b/c.md"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("nothing", "No such file"), ("fifo", "it is neither a directory nor a file")],
)
def test_a_source_must_be_a_directory_or_a_file(tmp_path: Path, kind: str, reason: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(FetchError, match=reason):
        list_local(LocalSource(url=str(path)), MOST)


def test_a_directory_below_one_that_is_closed_is_an_error(notes: Path) -> None:
    with unreadable(notes), pytest.raises(FetchError, match="Permission denied"):
        list_local(LocalSource(url=str(notes / "b")), MOST)


def test_a_file_that_became_a_fifo_does_not_block(notes: Path) -> None:
    (notes / "a.md").unlink()
    os.mkfifo(notes / "a.md")
    with pytest.raises(FetchError, match=r"a\.md: not a regular file"):
        list(read_local(LocalSource(url=str(notes)), ["a.md"]))


# A source that fails half-way


def test_a_topic_is_not_made_of_half_a_source(library: Library, notes: Path) -> None:
    source = LocalSource(url=str(notes))

    with unreadable(notes / "b" / "c.md"), pytest.raises(NothingFetchedError) as caught:
        create_topic(library, request(source), yes)
    assert caught.value.reasons == (f"{notes}: b/c.md: Permission denied",)
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


def git(directory: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with what its owner would not want in a topic."""
    project = tmp_path / "project"
    for name in (
        "README.md", "docs/guide.md", "docs/more.md", "node_modules/x/i.js", ".venv/lib/a.py",
        ".env", "secret.env", "build/out.md", "drafts/idea.md", ".github/CONTRIBUTING.md",
    ):  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
    (project / ".gitignore").write_text("*.env\nbuild/\ndrafts/\n")
    git(project, "init", "--quiet")
    return project


def paths_of(tree: Tree) -> list[str]:
    return [file.path for file in tree.files]


def test_what_is_hidden_or_ignored_stays_out_and_is_named(project: Path) -> None:
    tree = list_local(LocalSource(url=str(project)), MOST)
    assert paths_of(tree) == ["README.md", "docs/guide.md", "docs/more.md"]
    assert tree.notes == (
        "left out as hidden or ignored: .env, .github/, .gitignore, .venv/, build/,"
        " drafts/, node_modules/, secret.env",
    )


def test_a_directory_inside_a_repository_keeps_to_its_rules(project: Path) -> None:
    (project / "docs" / "build").mkdir()
    (project / "docs" / "build" / "out.md").write_text("x")
    tree = list_local(LocalSource(url=str(project / "docs")), MOST)
    assert paths_of(tree) == ["guide.md", "more.md"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".github/", [".github/CONTRIBUTING.md"]),
        ("build/out.md", ["build/out.md"]),
        ("secret.env", ["secret.env"]),
        ("docs", ["docs/guide.md", "docs/more.md"]),
    ],
)
def test_paths_name_what_is_hidden_or_ignored(project: Path, path: str, found: list[str]) -> None:
    tree = list_local(LocalSource(url=str(project), paths=(path,)), MOST)
    assert paths_of(tree) == found


def test_one_file_over_the_limit_is_left_out_and_named(project: Path) -> None:
    (project / "large.md").write_text("x" * 2000)
    tree = list_local(LocalSource(url=str(project)), 1000)
    assert "large.md" not in paths_of(tree)
    assert "left out: large.md (2.0 KB)" in tree.notes


def test_one_file_is_a_source(library: Library, notes: Path) -> None:
    create_topic(library, request(LocalSource(url=str(notes / "a.md"))), yes)
    assert files_of(library) == {"a.md": "a.md"}


def test_an_archive_has_to_be_unpacked_first(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK")
    with pytest.raises(FetchError, match="unpack an archive, and name its directory"):
        list_local(LocalSource(url=str(tmp_path / "x.zip")), MOST)


def test_a_directory_that_has_changed_is_told(library: Library, notes: Path) -> None:
    create_topic(library, request(LocalSource(url=str(notes))), yes)
    topic = library.read("topic-frob")
    assert library.find_outdated(topic) is None
    changes: tuple[Callable[[], object], ...] = (
        lambda: (notes / "b/c.md").write_text("longer than before"),
        (notes / "a.md").unlink,
        lambda: os.utime(notes / "b/d.md", (1, 1)),
    )
    for change in changes:
        change()
        assert library.find_outdated(topic) == f"{notes} has changed since it was fetched"
        warned = f"topic-frob: {notes} has changed since it was fetched; to follow: llm kb"
        assert ask(library, "d")["warnings"] == [f"{warned} references refresh topic-frob"]
        refresh_topic(library, "topic-frob", yes)
        assert library.find_outdated(topic) is None
    (notes / ".hidden").write_text("left out")
    assert library.find_outdated(topic) is None
