"""`llm kb knowledge pull` and `push`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.repositories import Repo, make_clones

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Repo, Repo]:
    return make_clones(tmp_path)


def test_a_round_between_two_clones(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = clones

    def run(clone: Repo, *args: str) -> str:
        monkeypatch.chdir(clone.path)
        result = run_llm([*KNOWLEDGE, *args])
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def add(clone: Repo, rule: str) -> None:
        run(clone, "add", rule)

    assert run(one, "pull") == "origin: the remote has no knowledge store.\n"
    add(one, "a")
    assert run(one, "push") == "Pushed 1 entry to origin.\n"
    add(two, "b")
    add(two, "A.")
    assert run(two, "push") == (
        "Duplicate: conv-2 (*): A. is conv-1 (*): a there\n"
        "Renumbered: conv-1 (*): b is now conv-3\n"
        "2 entries.\nPushed 2 entries to origin.\n"
    )
    add(one, "c")
    assert run(one, "pull", "origin") == ("Received: conv-3 (*): b\n3 entries.\n")
    assert run(one, "pull") == "origin: nothing new.\n"


def test_a_remote_that_does_not_exist_is_named(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    run_llm([*KNOWLEDGE, "add", "a"])
    for command in ("pull", "push"):
        result = run_llm([*KNOWLEDGE, command, "upstream"])
        assert (result.exit_code, result.stdout) == (1, "")
        assert "fatal: 'upstream' does not appear to be a git repository" in result.stderr


def test_push_names_the_place_without_its_secrets(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    run_llm([*KNOWLEDGE, "add", "a"])
    monkeypatch.setattr("llm_kb.capture.sync.push_refs", lambda *_: None)
    for given, shown in {
        "origin": "origin",
        "https://me:p@ss@host.example/x?token=secret": "https://host.example/x",
        "git@host.example:a/b.git": "git@host.example:a/b.git",
        "https://host.example/\x1b[31mred": "https://host.example/\\x1b[31mred",
    }.items():
        assert run_llm([*KNOWLEDGE, "push", given]).stdout == f"Pushed 1 entry to {shown}.\n"


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
    assert "is not a remote" in result.stderr
