"""The doubts about entries, from the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.capture.entries import CONVENTION, Anchor, Entry
from llm_kb.capture.store import read_doubts
from tests.git_templates import copy_made
from tests.repositories import Repo, make_empty_repo, make_repo


def find(directory: Path, *anchors: Anchor) -> list[list[str]]:
    """Return the doubts about each place and commit, in their order."""
    entries = [
        Entry(CONVENTION, {"scope": place, "decided_in": commit}) for place, commit in anchors
    ]
    doubts = read_doubts(directory, entries)
    return [doubts[entry.anchor] for entry in entries]


def make_history(path: Path) -> None:
    """Make a repository of two commits with src/a, src/b and docs/x."""
    repo = make_repo(path)
    repo.commit("one", src__a="1", docs__x="1")
    repo.commit("two", src__b="1")


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    path = tmp_path / "repo"
    copy_made(path, make_history)
    monkeypatch.chdir(path)
    return Repo(path=path)


GONE = ["place gone"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        *(
            (scope, [])
            for scope in ("src/", "./src", "src/a", "docs", "*", "**", "./", "src/**", "src//./a")
        ),
        *((scope, []) for scope in ("*/a", ":(glob)**")),  # patterns are unknown
        *((scope, GONE) for scope in ("gone/**", "sr", "gone/", "../outside", "/etc", "..", "-x")),
        *((scope, GONE) for scope in (":(top)src", "nul\0byte", "\ud83d", "a/\udcff", "src/a/b")),
        *((scope, GONE) for scope in ("src/../src/a", "a\nb")),
    ],
)
def test_a_place_that_is_gone(history: Repo, scope: str, expected: list[str]) -> None:
    assert find(history.path, (scope, history.head)) == [expected]
    assert find(history.path / "src", (scope, history.head[:10])) == [expected]


@pytest.mark.parametrize("name", [None, "BUG-42", "HEAD", "main", "abc\nHEAD"])
def test_of_what_names_no_commit_nothing_is_known(history: Repo, name: str | None) -> None:
    assert find(history.path, ("src", name)) == [[]]


def test_a_commit_that_is_elsewhere_or_nowhere(history: Repo) -> None:
    history.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    other = history.commit("three", src__c="1")
    history.git("checkout", "--quiet", "main")
    assert find(history.path, ("docs", other), ("src/c", other), (None, "f" * 40)) == [
        ["not on this branch"],
        ["place gone", "not on this branch"],
        ["its commit is not in this clone"],
    ]


def test_without_a_commit_nothing_is_known(tmp_path: Path) -> None:
    repo = make_empty_repo(tmp_path / "empty")
    entry = Entry(CONVENTION, {"scope": "src", "decided_in": "a" * 40})
    assert read_doubts(repo.path, [entry]) == {}


def test_thousands_of_scopes_and_commits(history: Repo) -> None:
    gone: list[Anchor] = [(f"gone-{number}", f"{number:040x}") for number in range(1100)]
    found = find(history.path, *gone, ("src", history.head))
    assert found == [["place gone", "its commit is not in this clone"]] * 1100 + [[]]
