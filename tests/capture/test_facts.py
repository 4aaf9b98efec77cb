"""What history says of entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry
from llm_kb.capture.facts import gather_facts
from llm_kb.capture.listing import Facts
from tests.capture.repositories import Repo, make_empty_repo


def conv(scope: str, decided_in: str | None = None) -> Entry:
    fields = {"id": "conv-1", "scope": scope, "rule": "r", "stability": "permanent"}
    return Entry(CONVENTION, {**fields, "decided_in": decided_in})


def commit_at(repo: Repo, time: int, **files: str) -> str:
    for name, content in files.items():
        path = repo.path / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    repo.git("add", "--all")
    tree = repo.git("write-tree")
    parent = repo.git("rev-parse", "--verify", "--quiet", "HEAD")
    who = f"A <a@b> {time} +0100"
    raw = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nm\n"
    commit = repo.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)
    repo.git("update-ref", "HEAD", commit)
    return commit


START = 2_000_000_000  # later than the fixture's own commit


@pytest.fixture
def history(repo: Repo) -> tuple[Repo, str]:
    """A commit, and three after it: to src/a, to src/b and docs, to docs."""
    first = commit_at(repo, START, src__a="1", docs__x="1")
    commit_at(repo, START + 100, src__a="2")
    commit_at(repo, START + 200, src__b="1", docs__x="2")
    commit_at(repo, START + 300, docs__x="3")
    return repo, first


@pytest.mark.parametrize(
    ("scope", "exists", "touched"),
    [
        ("src/", True, 2),
        ("./src", True, 2),
        ("src/a", True, 1),
        ("docs", True, 2),
        ("*", True, 3),
        ("**", True, 3),
        ("src/**", True, 2),
        ("./src/*", True, 2),
        ("gone/**", False, 0),
        ("*/a", None, None),
        ("sr", False, 0),
        ("gone/", False, 0),
        ("../outside", False, 0),
        ("/etc", False, 0),
        (":(glob)**", None, None),
        (":(top)src", False, 0),
        ("-x", False, 0),
        ("nul\0byte", False, 0),
    ],
)
def test_a_scope_exists_and_was_touched(
    history: tuple[Repo, str], scope: str, exists: bool | None, touched: int | None
) -> None:
    repo, first = history
    expected = Facts(recorded_at=START, place_exists=exists, touched=touched)
    assert gather_facts(repo.path, [conv(scope, first)]) == (expected,)


@pytest.mark.parametrize("scopes", [("src/", "src/a"), ("src/a", "src/"), ("src", "src/gone")])
def test_a_scope_exists_whatever_lies_below_it(
    history: tuple[Repo, str], scopes: tuple[str, ...]
) -> None:
    repo, _ = history
    facts = gather_facts(repo.path, [*map(conv, scopes), conv("docs")])
    found = {scope: fact.place_exists for scope, fact in zip(scopes, facts, strict=False)}
    assert found == {scope: scope != "src/gone" for scope in scopes}
    assert facts[-1].place_exists


def test_an_abbreviated_commit_is_found(history: tuple[Repo, str]) -> None:
    repo, first = history
    (facts,) = gather_facts(repo.path, [conv("src", first[:10])])
    assert facts.recorded_at == START


@pytest.mark.parametrize("name", [None, "BUG-42", "HEAD", "main", "f" * 40, "abc\nHEAD"])
def test_what_names_no_commit_has_no_age(history: tuple[Repo, str], name: str | None) -> None:
    repo, _ = history
    expected = Facts(recorded_at=None, place_exists=True, touched=None)
    assert gather_facts(repo.path, [conv("src", name)]) == (expected,)


def test_an_entry_without_a_place_has_an_age_alone(history: tuple[Repo, str]) -> None:
    repo, first = history
    entry = Entry(ANTI_PATTERN, {"id": "a", "pattern": "p", "instead": "i", "learned_from": first})
    assert gather_facts(repo.path, [entry]) == (Facts(recorded_at=START),)


def test_facts_are_the_same_from_below_and_in_a_bare_repository(
    history: tuple[Repo, str], tmp_path: Path
) -> None:
    repo, first = history
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    expected = (Facts(recorded_at=START, place_exists=True, touched=2),)
    for place in (repo.path / "src", tmp_path / "bare.git"):
        assert gather_facts(place, [conv("src/", first)]) == expected


def test_without_a_commit_nothing_is_known(tmp_path: Path) -> None:
    repo = make_empty_repo(tmp_path / "empty")
    assert gather_facts(repo.path, [conv("src", "a" * 40)]) == (Facts(),)


def test_more_scopes_than_fit_in_one_command(history: tuple[Repo, str]) -> None:
    repo, first = history
    entries = [conv(f"gone-{number}", first) for number in range(1100)] + [conv("src", first)]
    facts = gather_facts(repo.path, entries)
    assert [fact.place_exists for fact in facts] == [False] * 1100 + [True]
