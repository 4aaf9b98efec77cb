"""`llm kb knowledge pull` and `push`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.repositories import Repo, make_repo
from tests.conftest import RunLlm

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Repo, Repo]:
    origin = make_repo(tmp_path / "origin")
    origin.git("clone", "--quiet", "--bare", ".", str(tmp_path / "shared.git"))
    for name in ("one", "two"):
        origin.git("clone", "--quiet", str(tmp_path / "shared.git"), str(tmp_path / name))
    return Repo(path=tmp_path / "one"), Repo(path=tmp_path / "two")


def test_a_round_between_two_clones(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = clones

    def run(clone: Repo, *args: str) -> tuple[str, str]:
        monkeypatch.chdir(clone.path)
        result = run_llm([*KNOWLEDGE, *args])
        assert result.exit_code == 0
        return result.stdout, result.stderr

    def add(clone: Repo, rule: str) -> None:
        run(clone, "add", "--type", "convention", "--scope", "*", "--rule", rule)

    assert run(one, "pull") == ("", "origin: the remote has no knowledge store.\n")
    add(one, "a")
    assert run(one, "push") == ("Pushed to origin.\n", "")
    add(two, "A.")
    add(two, "b")
    assert run(two, "push") == (
        "Duplicate: conv-1 (*): A. is conv-1 (*): a there\nPushed to origin.\n",
        "2 entries.\n",
    )
    add(one, "c")
    assert run(one, "pull", "origin") == (
        "Received: conv-2 (*): b\nRenumbered: conv-2 (*): c is now conv-3\n",
        "3 entries.\n",
    )
    assert run(one, "pull") == ("", "origin: nothing new.\n")


def test_one_entry_is_no_entries(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = clones
    monkeypatch.chdir(one.path)
    run_llm([*KNOWLEDGE, "add", "--type", "convention", "--scope", "*", "--rule", "a"])
    run_llm([*KNOWLEDGE, "push"])
    monkeypatch.chdir(two.path)
    result = run_llm([*KNOWLEDGE, "pull"])
    assert (result.stdout, result.stderr) == ("Received: conv-1 (*): a\n", "1 entry.\n")


def test_nothing_to_push(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    result = run_llm([*KNOWLEDGE, "push"])
    assert result.exit_code == 1
    assert "there is nothing to push" in result.stderr


@pytest.mark.parametrize("command", ["pull", "push"])
def test_an_option_is_no_remote(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(clones[0].path)
    result = run_llm([*KNOWLEDGE, command, "--", "--upload-pack=touch x"])
    assert result.exit_code == 2
    assert "is no remote" in result.stderr
