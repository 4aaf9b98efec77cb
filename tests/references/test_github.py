"""Private repositories of GitHub: git logs in as `gh` does."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.git import ask_server
from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import Policy, host_and_port


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `git` that writes its settings to a file, and a `gh`."""
    directory = tmp_path / "bin"
    directory.mkdir()
    log = directory / "log"
    for name, script in {"git": f'echo "$@" > {log}; exit 1', "gh": "exit 1"}.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return log


@pytest.mark.parametrize(
    ("url", "is_asked"),
    [
        ("https://github.com/o/private", True),
        ("https://github.com/o/private.git", True),
        ("https://github.com.evil.example/o/private", False),
        ("http://github.com/o/private", False),
        ("https://e.org/o/private", False),
    ],
)
def test_gh_is_the_credential_helper_for_github_alone(
    asked: Path, url: str, is_asked: bool
) -> None:
    source = GitSource(url=url)
    trusted = frozenset({host_and_port(url)})
    policy = Policy(resolver=lambda host, port: ["140.82.112.3"], trusted=trusted)
    helper = "credential.https://github.com.helper=!gh auth git-credential"
    with pytest.raises(FetchError):
        ask_server(source, policy, ["ls-remote"])
    assert (helper in asked.read_text()) is is_asked
    with pytest.raises(FetchError):
        ask_server(source, replace(policy, trusted=frozenset()), ["ls-remote"])
    assert helper not in asked.read_text()
