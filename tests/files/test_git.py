"""Running git."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llm_kb.files.git import GitError, git_environment, run_git
from tests.repositories import Repo, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo")


def test_the_repository_of_a_hook_is_not_inherited(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git exports GIT_DIR and more to its hooks; the directory decides all the same."""
    other = make_repo(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    top = run_git("rev-parse", "--show-toplevel", cwd=repo.path)
    assert top.decode().strip() == str(repo.path)


def test_who_the_user_is_and_how_servers_are_reached_is_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = {
        "GIT_AUTHOR_NAME": "me",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    for name, value in {**wanted, "GIT_AUTHOR_DATE": "1", "GIT_TRACE": "1"}.items():
        monkeypatch.setenv(name, value)
    made = git_environment()
    assert {k: v for k, v in made.items() if k in wanted} == wanted
    assert {"GIT_AUTHOR_DATE", "GIT_TRACE"} & made.keys() == set()
    assert made["GIT_TERMINAL_PROMPT"] == "0"


def test_a_failure_says_what_git_said(repo: Repo) -> None:
    with pytest.raises(GitError, match="git rev-parse failed: fatal: Needed a single revision"):
        run_git("rev-parse", "--verify", "nothing-here", "--", cwd=repo.path)


def test_a_command_that_takes_too_long_is_stopped(repo: Repo) -> None:
    wait = "alias.wait=!echo begun; exec sleep 5"
    with pytest.raises(GitError, match=r"git -c failed: timed out after 0\.2 s") as caught:
        run_git("-c", wait, "wait", cwd=repo.path, timeout=0.2)
    assert caught.value.data == b"begun\n"


def test_without_git_the_error_says_so(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo.path))
    with pytest.raises(GitError, match="git is not installed or not on PATH"):
        run_git("status", cwd=repo.path)


@pytest.mark.slow
def test_a_git_that_hangs_is_ended_with_its_children() -> None:
    started = time.monotonic()
    with pytest.raises(GitError, match="timed out after 1 s"):
        run_git("-c", "alias.x=!sleep 60 & sleep 60", "x", server=True, timeout=1)
    assert time.monotonic() - started < 40


def test_a_watch_that_raises_ends_the_command() -> None:
    def refuse() -> None:
        raise ZeroDivisionError

    started = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        run_git("-c", "alias.x=!sleep 60", "x", server=True, timeout=30, watch=refuse)
    assert time.monotonic() - started < 40
