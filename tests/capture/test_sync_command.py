"""`llm kb knowledge sync`."""

from __future__ import annotations

import shlex
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

    hooks = ", without running hooks of a repository on this disk"
    assert run(one, "sync") == (
        "origin: the remote has no knowledge store.\n"
        "Not pushed to origin: no entry was ever captured here\n"
    )
    add(one, "a")
    assert run(one, "sync").endswith(f"Pushed 1 entry to origin{hooks}.\n")
    add(two, "b")
    add(two, "A.")
    assert run(two, "sync") == (
        f"Renumbered: conv-1 (*): b is now conv-3\n2 entries.\nPushed 2 entries to origin{hooks}.\n"
    )
    add(one, "c")
    assert run(one, "sync", "origin").startswith("Received: conv-3 (*): b\n3 entries.\n")
    assert run(one, "sync").startswith("origin: nothing new.\n")


@pytest.mark.parametrize(
    ("spec", "is_named"),
    [
        ("+refs/notes/*:refs/notes/*", True),
        ("+refs/*:refs/*", True),
        ("refs/notes/x:refs/notes/chronicle-knowledge", True),
        ("+refs/notes/*:refs/remotes/origin/notes/*", False),
        ("refs/notes/chronicle-knowledge", False),
        ("+refs/notes/*:refs/notes/*\n\x1b[2J", False),
        (f"+refs/notes/*:refs/notes/*{'x' * 1000}", False),
    ],
    ids=["notes", "all", "one", "elsewhere", "nowhere", "control characters", "long"],
)
def test_a_refspec_with_which_a_fetch_overwrites_entries_is_named(
    spec: str,
    is_named: bool,
    clones: tuple[Repo, Repo],
    run_llm: RunLlm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command that the warnings give ends them."""
    one, _ = clones
    monkeypatch.chdir(one.path)
    one.record("a")
    one.git("config", "--add", "remote.origin.fetch", spec)
    commands = ([*KNOWLEDGE, "add", "b"], [*KNOWLEDGE, "sync"], ["kb", "check"])
    outputs = [run_llm(command).output for command in commands]
    cure = f"git config --fixed-value --unset-all remote.origin.fetch {shlex.quote(spec)}"
    assert [cure in output for output in outputs] == [is_named] * 3
    assert ["overwrite" in output for output in outputs] == [is_named] * 3
    if is_named:
        one.git(*shlex.split(cure)[1:])
        assert not any("overwrite" in run_llm(command).output for command in commands)


def test_a_remote_that_does_not_exist_is_named(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    run_llm([*KNOWLEDGE, "add", "a"])
    result = run_llm([*KNOWLEDGE, "sync", "upstream"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "fatal: 'upstream' does not appear to be a git repository" in result.stderr


def test_push_names_the_place_without_its_secrets(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    run_llm([*KNOWLEDGE, "add", "a"])
    monkeypatch.setattr("llm_kb.capture.sync.push_refs", lambda *_: False)
    monkeypatch.setattr("llm_kb.capture.sync.pull", lambda *_: [])
    for given, shown in {
        "origin": "origin",
        "https://me:p@ss@host.example/x?token=secret": "https://host.example/x",
        "git@host.example:a/b.git": "git@host.example:a/b.git",
        "https://host.example/\x1b[31mred": "https://host.example/\\x1b[31mred",
    }.items():
        assert run_llm([*KNOWLEDGE, "sync", given]).stdout == f"Pushed 1 entry to {shown}.\n"


def test_an_option_is_no_remote(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    result = run_llm([*KNOWLEDGE, "sync", "--", "--upload-pack=touch x"])
    assert result.exit_code == 2
    assert "is not a remote" in result.stderr
