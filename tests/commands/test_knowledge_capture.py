"""`llm kb knowledge capture`: the agent loop, with a model that follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import llm
import pytest
from llm.cli import logs_db_path

from llm_kb.capture.commits.briefing import SYSTEM_PROMPT
from llm_kb.host.capture_agent import MAX_ENTRIES
from tests.capture.repositories import Repo, make_repo
from tests.conftest import RunLlm
from tests.scripted import Script

CAPTURE = ["kb", "knowledge", "capture"]
SCRIPTED = [*CAPTURE, "-m", "scripted"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = make_repo(tmp_path / "repo")
    monkeypatch.chdir(made.path)
    return made


def emit(script: Script, pattern: str) -> Script:
    return script.call("emit_knowledge", entry_type="anti_pattern", pattern=pattern, instead="i")


def test_a_model_sees_each_commit_and_records_what_it_shows(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    second = repo.commit("second", a_py="x = 1\n", logo_png=b"\0")
    third = repo.commit("third", b_py="y = 1\n")
    emit(script, "p").say("recorded")
    emit(script, "P!").say("known")
    result = run_llm([*SCRIPTED, "HEAD~2..HEAD"])
    assert result.exit_code == 0
    assert result.stdout == (
        "commit        written  duplicates  subject\n"
        f"{second[:12]}        1           0  second\n"
        "              ap-1\n"
        "              left out: logo.png (binary)\n"
        f"{third[:12]}        0           1  third\n"
        "total               1           1\n"
    )
    prompts = [request for request in script.requests if request.prompt]
    assert [request.system for request in prompts] == [SYSTEM_PROMPT] * 2
    assert [request.tool_names for request in prompts] == [("emit_knowledge",)] * 2
    assert "+x = 1" in prompts[0].prompt
    assert "+y = 1" in prompts[1].prompt
    assert repo.note_json()["anti_patterns"] == [
        {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": second}
    ]


def test_most_commits_yield_nothing(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.say("nothing to record")
    result = run_llm(SCRIPTED)
    assert result.stdout.splitlines()[-1] == "total               0           0"
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_a_commit_is_looked_at_once(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.say("a").say("b")
    assert run_llm(SCRIPTED).exit_code == 0
    again = run_llm(SCRIPTED)
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "1 commit was looked at before; --again looks again.\n"
    assert len(script.requests) == 1
    assert run_llm([*SCRIPTED, "--again"]).exit_code == 0
    assert len(script.requests) == 2


class FailingModel(llm.Model):
    """Works for one commit and then fails, as a provider may."""

    model_id = "failing"
    supports_tools = True

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.calls = 0

    def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,
        response: llm.Response,
        conversation: llm.Conversation | None = None,
    ) -> Iterator[str]:
        """Answer once."""
        self.calls += 1
        if self.calls > 1:
            raise self.error
        yield "ok"


class FailingPlugin:
    """Registers it."""

    def __init__(self, error: BaseException) -> None:
        self.model = FailingModel(error)

    @llm.hookimpl
    def register_models(self, register: Callable[..., None]) -> None:
        """Register the model."""
        register(self.model)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("rate limit\nreached"), "Error: the model failed on {}: RuntimeError: rate"),
        (KeyboardInterrupt(), "Aborted!"),
    ],
    ids=["error", "Ctrl-C"],
)
def test_an_interrupted_run_goes_on_where_it_stopped(
    repo: Repo, script: Script, run_llm: RunLlm, error: BaseException, message: str
) -> None:
    for name in ("second", "third"):
        repo.commit(name)
    plugin = FailingPlugin(error)
    llm.plugins.pm.register(plugin)
    try:
        result = run_llm([*CAPTURE, "-m", "failing", "HEAD~2..HEAD"])
    finally:
        llm.plugins.pm.unregister(plugin)
    assert result.exit_code == 1
    assert message.format(repo.head[:12]) in result.stderr
    assert [line.split()[-1] for line in result.stdout.splitlines()[1:-1]] == ["second"]
    script.say("ok")
    result = run_llm([*SCRIPTED, "HEAD~2..HEAD"])
    assert result.exit_code == 0
    assert [line.split()[-1] for line in result.stdout.splitlines()[1:-1]] == ["third"]


def test_a_dry_run_calls_no_model_and_writes_nothing(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    repo.commit("second", a_py="x\n", Cargo_lock="y\n")
    result = run_llm([*SCRIPTED, "--dry-run"])
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.split()[0::2] == [repo.head[:12], "tokens"]
    assert second == "              left out: Cargo.lock (generated)"
    tokens = first.split()[1]
    assert result.stderr == f"1 commit, about {tokens} tokens; no model was called.\n"
    assert script.requests == []
    assert not (repo.path / ".git" / "llm-kb").exists()


@pytest.mark.parametrize(("start", "said"), [("HEAD", "0 commits"), ("HEAD~2", "2 commits")])
def test_a_dry_run_says_how_many_commits_there_are(
    repo: Repo, run_llm: RunLlm, start: str, said: str
) -> None:
    repo.commit("second", a_py="x\n")
    repo.commit("third", a_py="y\n")
    result = run_llm([*CAPTURE, "--dry-run", f"{start}..HEAD"])
    assert result.stderr.startswith(f"{said}, about ")


def test_a_diff_that_talks_the_model_into_much_adds_a_bounded_number(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    calls = [
        llm.ToolCall(
            name="emit_knowledge",
            arguments={"entry_type": "anti_pattern", "pattern": f"p {n}", "instead": "i"},
        )
        for n in range(MAX_ENTRIES + 3)
    ]
    script.call_all(*calls).say("done")
    assert run_llm(SCRIPTED).exit_code == 0
    refused = [output for output in script.last.outputs if output.startswith("Error: ")]
    assert (
        refused == ["Error: 10 entries were recorded from this commit, and that is the limit"] * 3
    )
    assert len(repo.note_json()["anti_patterns"]) == MAX_ENTRIES


def test_the_model_can_do_nothing_but_emit(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.call("learn", topic="x").call("run", command="rm").say("done")
    assert run_llm(SCRIPTED).exit_code == 0
    assert script.last.outputs == ('Error: tool "run" does not exist',)
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_merges_are_left_out_and_said_so(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("side")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main")
    repo.git("merge", "--quiet", "--no-edit", "side")
    result = run_llm(SCRIPTED)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "1 merge left out.\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-m", "no-such-model"], "no-such-model"),
        (["-m", "scripted-no-tools"], "scripted-no-tools does not support tools"),
        (["-m", "scripted", "no-such-commit"], "no commit is called 'no-such-commit'"),
    ],
)
def test_errors_before_any_model_is_called(
    repo: Repo, script: Script, run_llm: RunLlm, args: list[str], message: str
) -> None:
    result = run_llm([*CAPTURE, *args])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert script.requests == []


def test_work_trees_share_the_record(
    repo: Repo, script: Script, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.say("ok")
    run_llm(SCRIPTED)
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "other", str(linked))
    monkeypatch.chdir(linked)
    assert "looked at before" in run_llm(SCRIPTED).stderr
    record = (repo.path / ".git" / "llm-kb" / "captured.jsonl").read_text()
    assert [json.loads(line) for line in record.splitlines()] == [
        {"commit": repo.head, "model": "scripted", "written": 0, "duplicates": 0}
    ]


def logged(run_llm: RunLlm) -> list[tuple[str, str]]:
    """Return what llm has logged, oldest first: prompts and answers."""
    listed = json.loads(run_llm(["logs", "list", "-n", "0", "--json"]).stdout or "[]")
    return [(entry["prompt"], entry["response"]) for entry in listed]


def test_what_was_said_is_logged(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    emit(script, "p").say("recorded one")
    assert run_llm(SCRIPTED).exit_code == 0
    assert logged(run_llm) == [(script.requests[0].prompt, ""), ("", "recorded one")]


@pytest.mark.parametrize("option", ["-n", "--no-log", None])
def test_nothing_is_logged_that_is_not_wanted(
    repo: Repo,
    script: Script,
    run_llm: RunLlm,
    option: str | None,
) -> None:
    script.say("nothing")
    if option is None:
        run_llm(["logs", "off"])
    assert run_llm([*SCRIPTED, *([option] if option else [])]).exit_code == 0
    assert len(script.requests) == 1
    assert not logs_db_path().exists() or logged(run_llm) == []


def test_without_a_log_that_can_be_used_no_model_is_called(
    repo: Repo,
    script: Script,
    run_llm: RunLlm,
) -> None:
    logs_db_path().write_text("no database, and long enough to be seen as none" * 10)
    result = run_llm(SCRIPTED)
    assert (result.exit_code, script.requests) == (1, [])
    assert result.stderr.startswith(f"Error: llm's log, {str(logs_db_path())!r}, cannot be used: ")
    script.say("nothing")
    assert run_llm([*SCRIPTED, "-n"]).exit_code == 0


def test_a_log_that_fails_later_loses_nothing(
    repo: Repo, script: Script, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_chain: object, _db: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(llm.models.ChainResponse, "log_to_db", fail)
    emit(script, "p").say("recorded")
    result = run_llm(SCRIPTED)
    assert result.exit_code == 0
    assert "Warning: not logged: disk full" in result.stderr
    assert [entry["id"] for entry in repo.note_json()["anti_patterns"]] == ["ap-1"]
