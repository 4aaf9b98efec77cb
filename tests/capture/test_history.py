"""The status of entries from the history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.capture.entries import Anchor, Status
from llm_kb.capture.history import read_statuses
from tests.capture.repositories import Repo, make_empty_repo, make_repo
from tests.git_templates import copy_made


def gather(directory: Path, *anchors: Anchor) -> list[Status]:
    """Return the status of each anchor, in their order."""
    statuses = read_statuses(directory, set(anchors))
    assert statuses.keys() == set(anchors)
    return [statuses[anchor] for anchor in anchors]


def commit_at(repo: Repo, time: int | str, **files: str) -> str:
    for name, content in files.items():
        path = repo.path / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    repo.git("add", "--all")
    tree = repo.git("write-tree")
    parent = repo.git("rev-parse", "--verify", "--quiet", "HEAD")
    who = f"A <a@b> {time} +0100"
    raw = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nm\n"
    command = ("hash-object", "-t", "commit", "-w", "--literally", "--stdin")
    commit = repo.git(*command, stdin=raw)
    repo.git("update-ref", "HEAD", commit)
    return commit


def known(**facts: int | bool | None) -> Status:
    """Return the status of an entry from a commit of this branch with the subject `m`."""
    return replace(Status(subject="m", is_on_branch=True), **facts)  # type: ignore[arg-type]


START = 2_000_000_000  # later than the fixture's own commit


def make_history(path: Path) -> str:
    """Make a repository of a commit, and three after it: to src/a, to src/b and docs, to docs."""
    repo = make_repo(path)
    first = commit_at(repo, START, src__a="1", docs__x="1")
    commit_at(repo, START + 100, src__a="2")
    commit_at(repo, START + 200, src__b="1", docs__x="2")
    commit_at(repo, START + 300, docs__x="3")
    return first


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Repo, str]:
    """The repository of `make_history` as the current directory, and its first commit."""
    path = tmp_path / "repo"
    first = copy_made(path, make_history)
    monkeypatch.chdir(path)
    return Repo(path=path), first


@pytest.mark.parametrize(
    ("scope", "exists"),
    [
        ("src/", True),
        ("./src", True),
        ("src/a", True),
        ("docs", True),
        ("*", True),
        ("**", True),
        ("./", True),
        ("src/**", True),
        ("./src/*", True),
        ("gone/**", False),
        ("*/a", None),
        ("sr", False),
        ("gone/", False),
        ("../outside", False),
        ("/etc", False),
        (":(glob)**", None),
        (":(top)src", False),
        ("-x", False),
        ("nul\0byte", False),
    ],
)
def test_a_scope_exists_or_not(history: tuple[Repo, str], scope: str, exists: bool | None) -> None:
    repo, first = history
    expected = known(recorded_at=START, place_exists=exists)
    assert gather(repo.path, (scope, first)) == [expected]


@pytest.mark.parametrize("scopes", [("src/", "src/a"), ("src/a", "src/"), ("src", "src/gone")])
def test_a_scope_exists_whatever_lies_below_it(
    history: tuple[Repo, str], scopes: tuple[str, ...]
) -> None:
    repo, _ = history
    facts = gather(repo.path, *((scope, None) for scope in scopes), ("docs", None))
    found = {scope: fact.place_exists for scope, fact in zip(scopes, facts, strict=False)}
    assert found == {scope: scope != "src/gone" for scope in scopes}
    assert facts[-1].place_exists


def test_an_abbreviated_commit_is_found(history: tuple[Repo, str]) -> None:
    repo, first = history
    (facts,) = gather(repo.path, ("src", first[:10]))
    assert facts == known(recorded_at=START, place_exists=True)


@pytest.mark.parametrize("name", [None, "BUG-42", "HEAD", "main", "f" * 40, "abc\nHEAD"])
def test_what_names_no_commit_has_no_age(history: tuple[Repo, str], name: str | None) -> None:
    repo, _ = history
    expected = Status(place_exists=True, is_missing=name == "f" * 40)
    assert gather(repo.path, ("src", name)) == [expected]


def test_an_entry_without_a_place_has_an_age_alone(history: tuple[Repo, str]) -> None:
    repo, first = history
    assert gather(repo.path, (None, first)) == [known(recorded_at=START)]


def test_facts_are_the_same_from_below(history: tuple[Repo, str]) -> None:
    repo, first = history
    expected = [known(recorded_at=START, place_exists=True)]
    assert gather(repo.path / "src", ("src/", first)) == expected


def test_without_a_commit_nothing_is_known(tmp_path: Path) -> None:
    repo = make_empty_repo(tmp_path / "empty")
    assert gather(repo.path, ("src", "a" * 40)) == [Status()]


def test_thousands_of_scopes_and_commits(history: tuple[Repo, str]) -> None:
    repo, first = history
    gone: list[Anchor] = [(f"gone-{number}", f"{number:040x}") for number in range(1100)]
    facts = gather(repo.path, *gone, ("src", first))
    assert facts[:-1] == [Status(place_exists=False, is_missing=True)] * 1100
    assert facts[-1] == known(recorded_at=START, place_exists=True)


def test_a_commit_of_another_branch_is_known_by_its_time(
    history: tuple[Repo, str],
) -> None:
    repo, _ = history
    repo.git("checkout", "--quiet", "-b", "other", "HEAD~2")
    other = commit_at(repo, START + 250, src__c="1")
    repo.git("checkout", "--quiet", "-")
    assert gather(repo.path, ("docs", other)) == [
        known(recorded_at=START + 250, is_on_branch=False, place_exists=True)
    ]


@pytest.mark.parametrize("scope", ["\ud83d", "a/\udcff", "src/a/b", "src//a", "src/./a", ".."])
def test_odd_scopes_do_not_exist(history: tuple[Repo, str], scope: str) -> None:
    repo, first = history
    assert gather(repo.path, (scope, first)) == [known(recorded_at=START, place_exists=False)]


@pytest.mark.parametrize("time", ["notadate", "", "9" * 5000, "-5"])
def test_a_commit_without_a_time_is_of_time_0(history: tuple[Repo, str], time: str) -> None:
    repo, _ = history
    odd = commit_at(repo, time, src__a="3", docs__x="4")
    commit_at(repo, START + 400, src__a="5")
    statuses = gather(repo.path, ("src", odd), ("src", odd[:10]))
    assert [status.recorded_at for status in statuses] == [0, 0]
