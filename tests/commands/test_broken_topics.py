"""Unreadable reference topics, through every interface: no other topic is affected."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.preloaded import Process
from tests.references.remotes import Remote
from tests.scripted import Script

FRONT = '+++\nid = "{id}"\ntitle = "{title}"\ntype = "ReferenceTopic"\n{more}+++\n\nAbout it.\n'

Shut = Callable[[Path], None]
Break = Callable[[Path, Shut], None]


def add(root: Path, topic_id: str, title: str, more: str = "") -> Path:
    """Put a topic with one file on disk."""
    directory = root / topic_id
    directory.mkdir(parents=True)
    text = FRONT.format(id=topic_id, title=title, more=more)
    (directory / "topic.md").write_text(text)
    (directory / "hooks.md").write_text("# Hooks\n\nCall them first.\n")
    (directory / ".provenance.json").write_text('{"version": 1, "request": "", "files": {}}')
    return directory


@pytest.fixture
def root(user_dir: Path) -> Path:
    """The directory of all topics, with one that is sound."""
    root = user_dir / "kb" / "references"
    add(root, "topic-good", "Good", "fetched_at = 2026-11-22\n")
    return root


def replaced(**changes: str) -> Break:
    """Break a topic by other lines in its `topic.md`."""

    def apply(directory: Path, _: Shut) -> None:
        more = "".join(f"{key} = {value}\n" for key, value in changes.items())
        text = FRONT.format(id=directory.name, title="Bad", more=more)
        (directory / "topic.md").write_text(text)

    return apply


def lost(directory: Path, _: Shut) -> None:
    """Lose `topic.md`."""
    (directory / "topic.md").unlink()


def pipe(directory: Path, _: Shut) -> None:
    """Put a FIFO in the place of `topic.md`."""
    (directory / "topic.md").unlink()
    os.mkfifo(directory / "topic.md")


def shut_all(directory: Path, shut: Shut) -> None:
    """Let nobody look into the topic."""
    shut(directory)


BREAKS: dict[str, tuple[Break, str]] = {
    "a time of day": (replaced(fetched_at="10:00:00"), "fetched_at: found"),
    "an early time": (
        replaced(fetched_at='"0001-01-01T00:00:00+14:00"'),
        "fetched_at: found",
    ),
    "a kind in a list": (
        replaced(sources='[{type = ["git"], url = "x"}]'),
        "sources[0].type: found a list; allowed: crawl, git, package, web",
    ),
    "a number nobody can print": (
        replaced(max_age_days=f"0x{'f' * 5000}"),
        "max_age_days: found the number too long to print; allowed",
    ),
    "topic.md is lost": (lost, "it is missing; restore it"),
    "topic.md is a FIFO": (pipe, "not a regular file"),
    "nobody may enter": (shut_all, "Permission denied"),
}


@pytest.fixture(params=BREAKS)
def broken(request: pytest.FixtureRequest, root: Path, shut: Shut) -> tuple[Path, str]:
    """A topic beside the sound one that cannot be read, and what is said of it."""
    breaking, problem = BREAKS[request.param]
    directory = add(root, "topic-bad", "Bad")
    breaking(directory, shut)
    return directory, problem


def test_it_is_told_of_and_the_others_are_listed(run_llm: RunLlm, broken: tuple[Path, str]) -> None:
    directory, problem = broken
    listed = run_llm(["kb", "references", "list"])
    assert (listed.exit_code, listed.stdout) == (
        0,
        "topic-good  Good       0 pages  fetched 2026-11-22  active\n",
    )
    assert f"Left out: {directory}/topic.md: {problem}" in listed.stderr.replace("\n", " ")
    topics = run_llm(["kb", "list", "--json"])
    assert (topics.exit_code, [t["id"] for t in json.loads(topics.stdout)]) == (0, ["topic-good"])
    found = run_llm(["kb", "search", "call", "hooks"])
    assert (found.exit_code, "topic-good/hooks" in found.stdout) == (0, True)


@pytest.mark.parametrize("options", [["-T", "learn"], ["-T", "References"], ["-k", "topic-good"]])
def test_prompts_go_on_without_it(
    run_llm: RunLlm, script: Script, broken: tuple[Path, str], options: list[str]
) -> None:
    script.say("hello")
    result = run_llm(["-m", "scripted", *options, "hi"])
    assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr
    assert "Good" in script.last.system
    assert "topic-bad" not in script.last.system


@pytest.mark.parametrize("above", [0, 1], ids=["itself", "what it is in"])
def test_a_directory_of_topics_nobody_may_enter_stops_nothing(
    run_llm: RunLlm, script: Script, root: Path, shut: Shut, above: int
) -> None:
    shut([root, root.parent][above])
    script.say("hello")
    result = run_llm(["-m", "scripted", "-T", "learn", "-T", "References", "hi"])
    assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr
    assert run_llm(["kb", "list", "--json"]).exit_code == 0
    listed = run_llm(["kb", "references", "list"])
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert f"Left out: {root}: Permission denied" in listed.stderr.replace("\n", " ")


@pytest.mark.parametrize("way", ["no record", "of other types", "a FIFO", "nobody may read it"])
def test_a_broken_record_stops_no_prompt_and_is_verified_as_such(
    run_llm: RunLlm, script: Script, root: Path, shut: Shut, way: str
) -> None:
    record = root / "topic-good" / ".provenance.json"
    if way == "nobody may read it":
        shut(record)
    elif way == "a FIFO":
        record.unlink()
        os.mkfifo(record)
    else:
        files = '{"hooks.md": {"source": 0, "url": "u", "size": "x"}}'
        text = f'{{"version": 1, "request": "", "files": {files}}}'
        record.write_text(text if way == "of other types" else "{")
    script.say("hello")
    result = run_llm(["-m", "scripted", "-k", "topic-good/hooks", "hi"])
    assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr
    assert "Call them first." in script.last.system
    assert "topic-good/hooks" in run_llm(["kb", "search", "hooks"]).stdout
    verified = run_llm(["kb", "references", "show", "--verify"])
    assert verified.exit_code == 1
    assert verified.stdout.startswith(f"topic-good: differs\n  problem: {record}: ")
    assert verified.stdout.endswith("delete it and refresh the topic\n")


def test_verify_says_what_is_wrong_and_goes_on(run_llm: RunLlm, broken: tuple[Path, str]) -> None:
    directory, problem = broken
    result = run_llm(["kb", "references", "show", "--verify"])
    assert result.exit_code == 1
    assert result.stdout.startswith("topic-bad: differs\n")
    assert f"  problem: {directory}/topic.md: {problem}" in result.stdout
    assert result.stdout.endswith("topic-good: differs\n  unknown: hooks.md\n")


def test_it_can_be_deleted(run_llm: RunLlm, broken: tuple[Path, str]) -> None:
    directory, problem = broken
    result = run_llm(["kb", "references", "delete", "topic-bad", "-y"])
    if problem == "Permission denied":
        assert (result.exit_code, result.stderr) == (
            1,
            f"Error: cannot write '{directory}': {problem}\n",
        )
    else:
        assert (result.exit_code, os.path.lexists(directory)) == (0, False), result.stderr


@pytest.mark.slow
def test_names_that_are_no_text_are_told_as_codes(
    root: Path,
) -> None:
    """Standard output takes what is text alone."""
    (root / "topic-good" / os.fsdecode(b"\xff\x1b.md")).write_text("")
    shown, _ = Process(["kb", "references", "show", "--verify"]).communicate()
    assert shown == "topic-good: differs\n  unknown: hooks.md\n  unknown: \\udcff\\x1b.md\n"
    as_json, _ = Process(["kb", "references", "show", "--verify", "--json"]).communicate()
    assert json.loads(as_json)["topic-good"]["unknown"] == ["hooks.md", "\udcff\x1b.md"]


def test_a_directory_that_is_no_topic_is_left_alone(
    run_llm: RunLlm, root: Path, tmp_path: Path, user_dir: Path
) -> None:
    notes = root / "topic-precious" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("precious")
    remote = Remote.of(tmp_path / "src", user_dir)
    made = run_llm(
        [
            "kb",
            "references",
            "create",
            "--title",
            "precious",
            "--git",
            remote.url,
            "-y",
        ]
    )
    assert (made.exit_code, notes.read_text()) == (1, "precious")
    assert f"{notes.parent}: it is not a reference topic and was kept; move it away" in made.stderr
    assert run_llm(["kb", "references", "delete", "topic-precious", "-y"]).exit_code == 1
    assert notes.read_text() == "precious"
