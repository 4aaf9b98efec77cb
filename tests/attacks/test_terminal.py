"""Content that tries to control the reader's terminal.

Anybody may write it: a file of a cloned repository, a fetched page, a stranger's note.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llm_kb.texts.safe import UNUSABLE
from tests.conftest import RunLlm
from tests.console import iter_commands
from tests.references.remotes import Remote
from tests.repositories import Repo, make_repo
from tests.scripted import Script
from tests.terminal import run_on_terminal

EVIL = "\x1b]0;PWNED\x07\x1b[2J\x1b[31mRED\x9b31m\u202eback\u2066w\u061c\U000e0041 日本語"
"""Window title, cleared screen, colour as two kinds of code, reordered and invisible text."""

EVIL_JSON = json.dumps(EVIL, ensure_ascii=False)
STORE = f"""{{
  "schema": "chronicle/knowledge-v1",
  "conventions": [
    {{"id": "conv-1", "scope": "src/", "rule": {EVIL_JSON}, "stability": "permanent"}}
  ],
  "boundaries": [],
  "anti_patterns": []
}}
"""

PROGRESS_BAR = re.compile(r"\r(?:\x1b\[\?25l)?Indexing[ #%\d\[\]-]*(?:\x1b\[\?25h)?")
"""The one thing of ours that moves the cursor."""

# Commands that show content, or names of things that others made.
COMMANDS = [
    ["show", "--as-model", "t"],
    ["show", "--as-model", "t/a"],
    ["show", "--as-model", "t/*"],
    ["show", "--as-model", "repo-knowledge/conventions"],
    ["prompt"],
    ["prompt", "-k", "t/a"],
    ["prompt", "--tokens", "-k", "t/a"],
    ["show", "t/a"],
    ["list"],
    ["list", "t", "--all"],
    ["search", "needle"],
    ["check"],
    ["config"],
    ["config", "--path"],
    ["knowledge", "list"],
    ["references", "list"],
    ["references", "show", "topic-evil"],
    ["references", "show", "--verify"],
    ["review", "--json"],
]

# Every command with --json, with arguments under which it prints something.
JSON_COMMANDS = {
    "check": ["check"],
    "config": ["config"],
    "list": ["list"],
    "review": ["review"],
    "search": ["search", "needle"],
    "used": None,  # needs a log: below
    "knowledge list": ["knowledge", "list"],
    "references create": ["references", "create", "--title", "New", "--git", "URL", "-y"],
    "references list": ["references", "list"],
    "references refresh": ["references", "refresh", "topic-evil", "-y"],
    "references show": ["references", "show", "topic-evil"],
}


@pytest.fixture(autouse=True)
def workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm, user_dir: Path
) -> Repo:
    """A repository whose every text is hostile: subjects, configuration, notes, a reference."""
    monkeypatch.setenv("NO_COLOR", "1")
    repo = make_repo(tmp_path / "ws")
    monkeypatch.chdir(repo.path)
    (repo.path / "kb").mkdir()
    (repo.path / "kb/a.md").write_text(f"# needle {EVIL}\n{EVIL}\n", encoding="utf-8")
    (repo.path / "kb/b\x1b[31m.md").write_text(EVIL, encoding="utf-8")
    texts = "".join(f'{key} = "\u202e日本\u2066"\n' for key in ("introduction", "description"))
    config = f'[kb.topic.t]\nsubjects = "kb"\n{texts}'
    (repo.path / "llm-kb.toml").write_text(config, encoding="utf-8")
    repo.write_note(STORE)
    body = f"About {EVIL}"
    created = run_llm(
        [
            *("kb", "references", "create", "--title", "Evil", "-y"),
            *("--git", Remote.of(repo.path / "kb", user_dir).url),
            *("--body", body),
        ]
    )
    assert created.exit_code == 0, created.output
    return repo


@pytest.mark.slow
def test_nothing_acts_on_a_terminal() -> None:
    shown = [run_on_terminal(["kb", *command])[0] for command in COMMANDS]
    outputs = [PROGRESS_BAR.sub("", output) for output in shown]
    acting = {
        " ".join(command): found
        for command, output in zip(COMMANDS, outputs, strict=True)
        if (found := sorted(set(UNUSABLE.findall(output)) - {"\n", "\t"}))
    }
    assert acting == {}
    # Seen, not left out: the person must know that it is there.
    assert [o.count("\\x1b[2J") for o in outputs[1:3]] == [2, 2]
    assert "\\u202e日本\\u2066" in outputs[0]


def test_nothing_acts_on_a_terminal_while_entries_are_reviewed(workspace: Repo) -> None:
    """Their ids are as hostile as their texts."""
    entries = [
        {
            "id": f"conv-{n}\x1b[2J\u202e",
            "scope": "src/",
            "rule": f"{EVIL} {n}",
            "stability": "provisional",
        }
        for n in range(2)
    ]
    store = {"schema": "chronicle/knowledge-v1", "conventions": entries}
    workspace.write_note(json.dumps(store))
    shown, _ = run_on_terminal(["kb", "review"], "q\n", question="Enter: ")
    assert "src/" in shown
    assert sorted(set(UNUSABLE.findall(shown)) - {"\n", "\t"}) == []


def test_a_pipe_gets_the_bytes(run_llm: RunLlm, workspace: Repo) -> None:
    data = (workspace.path / "kb/a.md").read_bytes()
    assert run_llm(["kb", "show", "t/a"]).stdout_bytes == data
    learned = run_llm(["kb", "show", "--as-model", "t/a"]).stdout_bytes
    assert learned.count("\x1b]0;PWNED\x07\x1b[2J\x1b[31mRED\x9b31m".encode()) == 2
    prompt = run_llm(["kb", "prompt", "-k", "t/a"]).stdout_bytes
    assert prompt.count(b"\x1b]0;PWNED\x07") == 2


def test_every_command_with_json_is_tried() -> None:
    with_json = {
        name.removeprefix("llm kb ")
        for name, command in iter_commands()
        if any("--json" in param.opts for param in command.params)
    }
    assert with_json == JSON_COMMANDS.keys()


@pytest.mark.parametrize("name", [name for name, args in JSON_COMMANDS.items() if args])
def test_json_holds_no_code(run_llm: RunLlm, name: str) -> None:
    """And what it says is the same as ever: real characters stay as they are."""
    arguments = JSON_COMMANDS[name]
    assert arguments is not None
    url = (Path.cwd() / "kb").as_uri()
    arguments = [url if word == "URL" else word for word in arguments]
    result = run_llm(["kb", *arguments, "--json"])
    assert set(UNUSABLE.findall(result.stdout)) <= {"\n"}
    json.loads(result.stdout)
    if EVIL[-3:] in json.dumps(json.loads(result.stdout), ensure_ascii=False):
        assert EVIL[-3:] in result.stdout


@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_what_is_read_from_the_log_holds_no_code(
    run_llm: RunLlm, script: Script, options: list[str]
) -> None:
    script.call("learn", topic="t", subjects=[f"absent{EVIL}"]).say("done")
    run_llm(["-m", "scripted", "-T", "learn", "question"])
    shown = run_llm(["kb", "used", *options]).stdout
    assert "absent" in shown
    assert set(UNUSABLE.findall(shown)) <= {"\n"}


def test_json_keeps_what_was_written(run_llm: RunLlm) -> None:
    """The escaped characters are still those of the store."""
    store = json.loads(run_llm(["kb", "knowledge", "list", "--json"]).stdout)
    assert store["conventions"][0]["rule"] == EVIL
