"""GitHub through a `gh` that replays recorded answers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.references.errors import NothingFetchedError
from llm_kb.references.fetch.create import create_topic, plan_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan.plan import summarize_plan
from llm_kb.references.sources.records import GitSource
from llm_kb.references.topic.topic_file import Description
from tests.references.remotes import Remote


def request(source: GitSource) -> Description:
    return Description(id="topic-frob", title="Frob", body="", sources=(source,))


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, object]], Path]:
    """A `gh` that plays recorded answers by endpoint; returns its log."""

    def install(answers: dict[str, object]) -> Path:
        directory = tmp_path / "bin"
        directory.mkdir()
        log = directory / "log"
        (directory / "answers.json").write_text(json.dumps(answers))
        script = directory / "gh"
        script.write_text(
            "#!/usr/bin/env python3\n"
            "import json, sys\n"
            f"open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
            f"answers = json.load(open({str(directory / 'answers.json')!r}))\n"
            "answer = answers.get(sys.argv[-1])\n"
            "if isinstance(answer, int): sys.exit(answer)\n"
            "if answer is None: sys.exit('gh: Not Found (HTTP 404)')\n"
            "print(json.dumps(answer))\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        return log

    return install


@pytest.fixture
def github(library: Library, remote: Remote) -> Library:
    """A library for which the repository `o/frob` of GitHub is the one on this disk."""
    key = f"url.{remote.directory.as_uri()}.insteadOf"
    subprocess.run(["git", "config", "--global", key, "https://github.com/o/frob"], check=True)
    return replace(library, resolver=lambda host, port: ["140.82.112.3"])


def recorded(remote: Remote) -> dict[str, object]:
    """What GitHub would say of the repository."""
    entries = []
    for line in remote.git("ls-tree", "-r", "-t", "-l", "HEAD").splitlines():
        meta, path = line.split("\t")
        mode, kind, sha, size = meta.split()
        entry = {"path": path, "mode": mode, "type": kind, "sha": sha}
        entries.append(entry | ({"size": int(size)} if kind == "blob" else {}))
    commit = remote.commit
    return {
        "repos/o/frob/commits/HEAD": {"sha": commit, "commit": {"message": "x"}},
        f"repos/o/frob/git/trees/{commit}?recursive=1": {
            "sha": commit,
            "tree": entries,
            "truncated": False,
        },
    }


def test_github_is_asked_for_sizes_and_nothing_is_fetched_for_a_plan(
    github: Library, remote: Remote, gh: Callable[[dict[str, object]], Path]
) -> None:
    log = gh(recorded(remote))
    source = GitSource(url="https://github.com/o/frob", paths=("docs/", "README.md"))
    remote.directory.rename(remote.directory.with_name("unreachable"))
    plan = plan_topic(github, request(source))
    assert (plan.files, summarize_plan(plan)) == (2, "o/frob (2 files, 81 B)")
    assert [line.split()[-1] for line in log.read_text().splitlines()] == [
        "repos/o/frob/commits/HEAD",
        f"repos/o/frob/git/trees/{plan.sources[0].source.commit}?recursive=1",  # type: ignore[union-attr]
    ]


def test_a_topic_from_github_is_fetched_at_the_planned_commit_and_refreshed_by_one_request(
    github: Library, remote: Remote, gh: Callable[[dict[str, object]], Path]
) -> None:
    log = gh(recorded(remote))
    planned = remote.commit
    source = GitSource(url="https://github.com/o/frob")

    def approve(plan: object) -> bool:
        remote.write({"later.md": "not planned"})
        return True

    assert create_topic(github, request(source), approve).file_count == 3
    topic = github.read("topic-frob")
    assert topic.sources == (replace(source, commit=planned),)
    log.write_text("")
    assert refresh_topic(github, "topic-frob", lambda plan, reason: True).changed is False
    assert log.read_text() == "api --method GET repos/o/frob/commits/HEAD\n"


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({"repos/o/frob/commits/HEAD": 4}, id="logged out"),
        pytest.param(None, id="too many files to list"),
    ],
)
def test_plain_git_is_asked_where_gh_cannot_tell(
    github: Library,
    remote: Remote,
    gh: Callable[[dict[str, object]], Path],
    answers: dict[str, object] | None,
) -> None:
    if answers is None:
        answers = recorded(remote)
        tree = next(key for key in answers if "trees" in key)
        answers[tree] = {"sha": "x", "tree": [], "truncated": True}
    else:
        tree = f"repos/o/frob/git/trees/{remote.commit}?recursive=1"
        answers = {**answers, tree: 4}
    gh(answers)
    plan = plan_topic(github, request(GitSource(url="https://github.com/o/frob")))
    assert (plan.files, plan.size) == (3, 123)


def test_what_gh_says_of_a_missing_repository_is_passed_on(
    github: Library, gh: Callable[[dict[str, object]], Path]
) -> None:
    gh({})
    with pytest.raises(NothingFetchedError, match=r"gh: Not Found \(HTTP 404\)"):
        plan_topic(github, request(GitSource(url="https://github.com/o/private")))
