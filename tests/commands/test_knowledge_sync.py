"""`llm kb knowledge pull` and `push`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.repositories import Repo, make_clones
from tests.conftest import RunLlm

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Repo, Repo]:
    return make_clones(tmp_path)


def test_a_round_between_two_clones(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = clones
    origin = f"origin ({one.path.parent / 'shared.git'})"

    def run(clone: Repo, *args: str) -> tuple[str, str]:
        monkeypatch.chdir(clone.path)
        result = run_llm([*KNOWLEDGE, *args])
        assert result.exit_code == 0
        return result.stdout, result.stderr

    def add(clone: Repo, rule: str) -> None:
        run(clone, "add", "--type", "convention", "--scope", "*", "--rule", rule)

    assert run(one, "pull") == ("", "origin: the remote has no knowledge store.\n")
    add(one, "a")
    assert run(one, "push") == (f"Pushed 1 entry to {origin}.\n", "")
    add(two, "A.")
    add(two, "b")
    assert run(two, "push") == (
        f"Duplicate: conv-1 (*): A. is conv-1 (*): a there\nPushed 2 entries to {origin}.\n",
        "2 entries.\n",
    )
    add(one, "c")
    assert run(one, "pull", "origin") == (
        "Received: conv-2 (*): b\nRenumbered: conv-2 (*): c is now conv-3\n",
        "3 entries.\n",
    )
    assert run(one, "pull") == ("", "origin: nothing new.\n")


def test_a_remote_that_does_not_exist_is_named(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clones[0].path)
    run_llm([*KNOWLEDGE, "add", "a"])
    for command in ("pull", "push"):
        result = run_llm([*KNOWLEDGE, command, "upstream"])
        message = "Error: no remote is called 'upstream' here; `git remote -v` lists them\n"
        assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)


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


def test_push_names_the_place_without_its_secrets(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = clones[0]
    monkeypatch.chdir(one.path)
    run_llm([*KNOWLEDGE, "add", "--type", "convention", "--scope", "*", "--rule", "a"])
    place = (one.path.parent / "shared.git").as_uri().removeprefix("file://")
    run_llm([*KNOWLEDGE, "push", f"file://{place}"])
    one.git("config", "remote.origin.pushurl", f"file://me:secret@{place}?token=secret\x1b[31m")
    monkeypatch.setattr("llm_kb.commands.knowledge.sync.push_store", lambda *_: ())
    for given, shown in {
        "origin": f"origin (file://{place})",
        f"https://me:p@ss@host.example{place}": f"https://host.example{place}",
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


def test_two_clones_that_edit_one_entry_keep_both_texts(
    clones: tuple[Repo, Repo], run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = clones

    def run(clone: Repo, *args: str) -> str:
        monkeypatch.chdir(clone.path)
        result = run_llm([*KNOWLEDGE, *args])
        assert result.exit_code == 0
        return result.stdout

    run(one, "add", "--type", "anti-pattern", "--pattern", "shell=True", "--instead", "a list")
    run(one, "push")
    run(two, "pull")
    run(one, "edit", "ap-1", "--instead", "a list of arguments")
    run(two, "edit", "ap-1", "--instead", "shlex.quote")
    run(one, "push")
    assert run(two, "push") == (
        "Conflict: ap-1: shell=True\n"
        "  ours:   instead: shlex.quote\n"
        "  theirs: instead: a list of arguments\n"
        "  Both are kept; `llm kb knowledge edit ap-1` settles it.\n"
        f"Pushed 1 entry to origin ({one.path.parent / 'shared.git'}).\n"
    )
    run(one, "pull")
    for clone in clones:
        lines = [line.strip() for line in run(clone, "list").splitlines()]
        assert lines[3:5] == [
            "instead: a list of arguments",
            "another version: instead: shlex.quote",
        ]
    run(one, "edit", "ap-1", "--instead", "a list, quoted")
    assert "another version" not in run(one, "list")
