"""`llm kb used`: the subjects that models read, counted from a log that `llm` wrote."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.scripted import Script
from tests.terminal import run_on_terminal

CONFIG = """
[kb]
search = true

[kb.topic.project]
title = "General"
subjects = "kb/project"

[kb.topic.skills]
subjects = "kb/skills"
"""


def make_workspace(path: Path) -> None:
    for name, text in {
        "llm-kb.toml": CONFIG,
        "kb/project/review.md": "Two people review.\n",
        "kb/project/release.md": "Tag it.\n",
        "kb/project/old.md": "Nobody reads this.\n",
        "kb/skills/grep.md": "Search by structure.\n",
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path, user_dir: Path, run_llm: RunLlm, script: Script) -> Path:
    """The log of three conversations, in the workspace that the test runs in."""
    make_workspace(tmp_path)
    for _ in range(2):
        script.call("learn", topic="general").call("learn", topic="project", subjects="review")
        script.say("done")
        assert run_llm(["-m", "scripted", "-T", "learn", "hi"]).exit_code == 0
    script.call("learn", topic="projct", subjects=["review"])
    script.call("learn", topic="project", subjects=["re*", "skills/grep", "nope"])
    script.call("search_knowledge", question="Who reviews?")
    script.call("search_knowledge", question="zyzzyva")
    script.say("done")
    args = ["-m", "scripted", "-k", "project/release#L1", "-T", "learn", "--cl", "9", "again"]
    assert run_llm(args).exit_code == 0
    return user_dir / "logs.db"


def test_counts(run_llm: RunLlm, log: Path, tmp_path: Path) -> None:
    result = run_llm(["kb", "used"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "project: read 4 times\n"
        "    read   found    sent  subject\n"
        "       3       1       0  review\n"
        "       1       0       1  release\n"
        "  never: old\n"
        "skills: read 1 time\n"
        "    read   found    sent  subject\n"
        "       1       0       0  grep\n"
        "names that failed:\n"
        "       1  projct/review\n"
        "       1  project/nope\n"
        "searches that found nothing:\n"
        "       1  zyzzyva\n"
    )

    usage = json.loads(run_llm(["kb", "used", "--json"]).stdout)
    assert usage == {
        "conversations": 3,
        "topics": [
            {
                "id": "project",
                "subjects": [
                    {"slug": "review", "loaded": 3, "found": 1, "given": 0},
                    {"slug": "release", "loaded": 1, "found": 0, "given": 1},
                    {"slug": "old", "loaded": 0, "found": 0, "given": 0},
                ],
            },
            {
                "id": "skills",
                "subjects": [{"slug": "grep", "loaded": 1, "found": 0, "given": 0}],
            },
        ],
        "failed": [{"name": "projct/review", "times": 1}, {"name": "project/nope", "times": 1}],
        "found_nothing": [{"question": "zyzzyva", "times": 1}],
    }

    # A subject that was renamed since is a name that fails.
    (tmp_path / "kb/project/review.md").rename(tmp_path / "kb/project/reviews.md")
    usage = json.loads(run_llm(["kb", "used", "--json"]).stdout)
    assert {"name": "project/review", "times": 2} in usage["failed"]
    assert usage["topics"][0]["subjects"][0] == {
        "slug": "release",
        "loaded": 1,
        "found": 0,
        "given": 1,
    }


def test_other_places(
    run_llm: RunLlm, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was asked in this workspace counts."""
    make_workspace(tmp_path / "other")
    monkeypatch.chdir(tmp_path / "other")
    result = run_llm(["kb", "used"])
    assert result.stdout == (
        "project: read 0 times\n  never: old, release, review\n"
        "skills: read 0 times\n  never: grep\n"
    )
    assert result.stderr == "llm-kb: the log has no request with knowledge of this workspace\n"


def test_a_log_that_is_not_there(run_llm: RunLlm, user_dir: Path, tmp_path: Path) -> None:
    make_workspace(tmp_path)
    result = run_llm(["kb", "used"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: the log of llm, '{user_dir}/logs.db', is not there;"
        " `llm logs status` says whether llm keeps one\n",
    )
    assert not (user_dir / "logs.db").exists()


@pytest.mark.slow
def test_a_log_that_is_locked(run_llm: RunLlm, user_dir: Path) -> None:
    log = user_dir / "logs.db"
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.execute("create table turns (id)")
        other.execute("begin exclusive")
        result = run_llm(["kb", "used"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: the log of llm, '{log}', cannot be read: database is locked\n",
    )


def test_what_is_not_the_log_of_this_version(
    run_llm: RunLlm, tmp_path: Path, user_dir: Path
) -> None:
    make_workspace(tmp_path)
    log = user_dir / "logs.db"
    with closing(sqlite3.connect(log)) as database:
        database.execute("create table responses (id)")
    old = run_llm(["kb", "used"])
    message = f"Error: the log of llm, '{log}', cannot be read"
    assert (old.exit_code, old.stderr) == (1, f"{message}: no such table: turns\n")
    log.write_text("no database\n" * 100)
    text = run_llm(["kb", "used"])
    assert (text.exit_code, text.stderr) == (1, f"{message}: file is not a database\n")


def test_what_models_wrote_does_not_act_on_a_terminal(
    run_llm: RunLlm, script: Script, tmp_path: Path
) -> None:
    make_workspace(tmp_path)
    script.call("learn", topic="\x1b[31mred", subjects={"not": "a list"})
    script.call("learn", topic=["project"]).call("search_knowledge", question="\x1b]0;zyzzyva")
    script.say("done")
    run_llm(["-m", "scripted", "-T", "learn", "hi"])
    result = run_llm(["kb", "used"])
    assert (result.exit_code, "\x1b" in result.stdout) == (0, False)
    assert "zyzzyva" in result.stdout


def test_fragments_of_a_search_count_once_a_conversation(
    run_llm: RunLlm, script: Script, tmp_path: Path
) -> None:
    """Two passages of one subject, beside the same subject by `-k`, are one."""
    make_workspace(tmp_path)
    long = "\n\n".join(
        f"# Reviewers {n}\n\n" + "Reviewers meet on Mondays. " * 60 for n in range(3)
    )
    (tmp_path / "kb/project/review.md").write_text(long, encoding="utf-8")
    for options in (["-k", "project/review"], [], []):
        args = ["-f", "kb-search:project:reviewers", *options, "hi"]
        assert run_llm(["-m", "scripted", *args]).exit_code == 0
    assert script.last.prompt.count('<passage "project/review#') > 1
    usage = json.loads(run_llm(["kb", "used", "--json"]).stdout)
    assert usage["conversations"] == 3
    assert usage["topics"][0]["subjects"][0] == {
        "slug": "review",
        "loaded": 0,
        "found": 0,
        "given": 3,
    }


@pytest.mark.parametrize("color", [True, False])
def test_on_a_terminal_names_stand_out_and_long_lines_are_folded(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, color: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "" if color else "1")
    monkeypatch.setenv("COLUMNS", "60")
    names = [f"a-rather-long-name-{number:02}" for number in range(9)]
    for name in names:
        (tmp_path / "kb" / "skills" / f"{name}.md").write_text("x\n", encoding="utf-8")
    shown, _ = run_on_terminal(["kb", "used"])
    assert ("\x1b[1mproject: " in shown) is color
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 60
    assert re.findall(r"a-rather-long-name-\d+", "".join(lines)) == names
