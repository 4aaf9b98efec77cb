"""Entries in `llm kb review`; `llm kb knowledge edit` and `export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_kb.files.git import run_git
from tests.conftest import RunLlm
from tests.repositories import Repo, make_repo

KNOWLEDGE = ["kb", "knowledge"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with two conventions, which come near, and an anti-pattern."""
    made = make_repo(tmp_path / "repo")
    monkeypatch.chdir(made.path)
    commit = made.commit("Add src", src__a_py="x = 1\n")
    stable = {"decided_in": commit, "stability": "provisional"}
    store = {
        "schema": "chronicle/knowledge-v1",
        "conventions": [
            {"id": "conv-1", "scope": "src/", "rule": "Use x always", **stable, "by": "me"},
            {"id": "conv-2", "scope": "gone/", "rule": "use x always here", **stable},
        ],
        "anti_patterns": [{"id": "ap-1", "pattern": "p", "instead": "i"}],
    }
    made.write_note(json.dumps(store))
    return made


def test_without_a_terminal_nothing_is_asked(repo: Repo, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "review"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: 3 to review, and no terminal to ask on; --json,")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm) -> Callable[..., str]:
    """Run a command with typed answers, as if on a terminal."""
    monkeypatch.setattr("llm_kb.terminal.screen.has_terminal", lambda: True)

    def run(*args: str, typed: str) -> str:
        result = run_llm(["kb", *args], input=typed)
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_one_entry_at_a_time_is_kept_edited_or_rejected(
    repo: Repo, answer: Callable[..., str]
) -> None:
    # conv-2, whose place is gone: reject it; conv-1: keep it; ap-1: edit its `instead`.
    output = answer("review", typed="r\nk\ne\n\nneither\ns\n")
    assert "1/3\n- use x always here — `gone/`, provisional (conv-2; " in output
    assert "; place gone)\n" in output
    assert "Removed: conv-2" in output
    assert "Kept: conv-1 (src/): Use x always" in output
    store = repo.note_json()
    assert store["anti_patterns"] == [{"id": "ap-1", "pattern": "p", "instead": "neither"}]
    assert store["conventions"] == [
        {
            "id": "conv-1",
            "scope": "src/",
            "rule": "Use x always",
            "decided_in": repo.head,
            "stability": "permanent",
            "by": "me",
            "reviewed_in": repo.head,
        }
    ]
    output = answer("review", typed="r\n")
    assert "1/1" in output
    assert "Removed: ap-1: p" in output
    assert answer("review", typed="") == "Nothing to review.\n"


def test_a_review_can_be_left_and_skips(repo: Repo, answer: Callable[..., str]) -> None:
    before = repo.note_json()
    output = answer("review", typed="s\nx\nq\n")
    assert "'x' is not one of" in output
    assert "3/3" not in output
    assert repo.note_json() == before


def test_editing_keeps_id_and_provenance(repo: Repo, run_llm: RunLlm) -> None:
    args = ["--stability", "permanent", "--scope", "src/a.py"]
    result = run_llm([*KNOWLEDGE, "edit", "conv-1", *args])
    assert result.stdout == "Changed: conv-1 (src/a.py): Use x always\n"
    assert repo.note_json()["conventions"][0] == {
        "id": "conv-1",
        "scope": "src/a.py",
        "rule": "Use x always",
        "decided_in": repo.head,
        "stability": "permanent",
        "by": "me",
    }
    commits = ["rev-list", "--count", "refs/notes/chronicle-knowledge"]
    before = repo.git(*commits)
    result = run_llm([*KNOWLEDGE, "edit", "conv-1", *args])
    assert result.stdout == "Changed: conv-1 (src/a.py): Use x always\n"
    assert repo.git(*commits) == before


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["conv-1"], 2, "nothing to change: give an option such as --rule"),
        (["conv-7", "--rule", "x"], 1, "no entry is called 'conv-7'"),
        (
            ["conv-1", "--pattern", "x"],
            1,
            "pattern: is not a field of convention, which takes scope",
        ),
        (["conv-1", "--rule", " "], 1, "rule: required for convention"),
        (
            ["conv-1", "--rule", "use x always here.", "--scope", "gone"],
            1,
            "'conv-2' says the same already",
        ),
    ],
)
def test_edits_that_are_refused(
    repo: Repo, run_llm: RunLlm, args: list[str], code: int, message: str
) -> None:
    before = repo.note_json()
    result = run_llm([*KNOWLEDGE, "edit", *args])
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert repo.note_json() == before


def test_entries_are_exported_into_a_file_and_kept_up_to_date(repo: Repo, run_llm: RunLlm) -> None:
    agents = repo.path / "AGENTS.md"
    agents.write_text("# Agents\n\nBe kind.\n")
    export = [*KNOWLEDGE, "export", "--to", "AGENTS.md"]
    assert run_llm(export).stderr == "AGENTS.md: written, 3 entries.\n"
    text = agents.read_text()
    assert text.startswith("# Agents\n\nBe kind.\n\n<!-- llm-kb knowledge: begin")
    assert "- Use x always — `src/`, provisional <!-- conv-1 -->\n" in text
    commits = repo.git("rev-list", "--count", "refs/notes/chronicle-knowledge")
    assert run_llm(export).stderr == "AGENTS.md: up to date, 3 entries.\n"
    assert agents.read_text() == text
    assert repo.git("rev-list", "--count", "refs/notes/chronicle-knowledge") == commits
    assert run_llm([*KNOWLEDGE, "export"]).stdout == text.partition("Be kind.\n\n")[2]


@pytest.mark.parametrize("place", ["../x.md", "../new/x.md"])
def test_an_export_stays_in_the_repository(repo: Repo, run_llm: RunLlm, place: str) -> None:
    result = run_llm([*KNOWLEDGE, "export", "--to", place])
    assert (result.exit_code, ", outside the directory" in result.stderr) == (1, True)
    assert not (repo.path / place).exists()


def test_an_export_from_a_repository_without_a_commit_writes_nothing(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "empty"
    run_git("init", "--quiet", str(path), cwd=tmp_path)
    monkeypatch.chdir(path)
    result = run_llm([*KNOWLEDGE, "export", "--to", "X.md"])
    assert (result.exit_code, result.stderr) == (0, "Nothing to export.\n")
    assert not (path / "X.md").exists()


def test_without_entries_there_is_nothing_to_export_but_an_old_block_is_emptied(
    repo: Repo, run_llm: RunLlm
) -> None:
    export = [*KNOWLEDGE, "export", "--to", "AGENTS.md"]
    run_llm(export)
    text = (repo.path / "AGENTS.md").read_text()
    for id_ in ("conv-1", "conv-2", "ap-1"):
        run_llm([*KNOWLEDGE, "remove", id_])
    assert run_llm(export).stderr == "AGENTS.md: written, 0 entries.\n"
    assert len((repo.path / "AGENTS.md").read_text()) < len(text)
    (repo.path / "AGENTS.md").unlink()
    for args in (export, export[:-2]):
        result = run_llm(args)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing to export.\n")
    assert not (repo.path / "AGENTS.md").exists()
