"""`llm kb knowledge capture`: the agent loop, with a model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import llm
import pytest
from click.testing import Result
from llm.cli import logs_db_path

from llm_kb.capture.commands.agent import MAX_ENTRIES
from llm_kb.capture.commits import SYSTEM_PROMPT
from tests.conftest import RunLlm
from tests.repositories import Repo, make_repo
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
    """Answers, calls a tool or fails, turn by turn, as a provider may."""

    model_id = "failing"
    supports_tools = True

    def __init__(self, *turns: BaseException | llm.ToolCall | None) -> None:
        self.turns = list(turns)
        self.calls = 0

    def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,
        response: llm.Response,
        conversation: llm.Conversation | None = None,
    ) -> Iterator[str]:
        """Answer, call the tool or raise the error of this turn."""
        self.calls += 1
        turn = self.turns.pop(0)
        if isinstance(turn, BaseException):
            raise turn
        if turn:
            response.add_tool_call(turn)
        yield "ok"


class FailingPlugin:
    """Registers it."""

    def __init__(self, model: FailingModel) -> None:
        self.model = model

    @llm.hookimpl
    def register_models(self, register: Callable[..., None]) -> None:
        """Register the model."""
        register(self.model)


def run_failing(run_llm: RunLlm, model: FailingModel, *args: str) -> Result:
    plugin = FailingPlugin(model)
    llm.plugins.pm.register(plugin)
    try:
        return run_llm([*CAPTURE, "-m", "failing", *args])
    finally:
        llm.plugins.pm.unregister(plugin)


def test_an_interrupted_run_says_what_it_did_and_goes_on_where_it_stopped(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    commits = [repo.commit(name, a_py=name) for name in ("second", "third", "fourth", "fifth")]
    arguments = {"entry_type": "anti_pattern", "pattern": "p", "instead": "i"}
    call = llm.ToolCall(name="emit_knowledge", arguments=arguments)
    model = FailingModel(None, ValueError("no"), call, KeyboardInterrupt())
    result = run_failing(run_llm, model, "HEAD~4..HEAD")
    assert result.exit_code == 1
    assert result.stdout == (
        "commit        written  duplicates  subject\n"
        f"{commits[0][:12]}        0           0  second\n"
        f"{commits[1][:12]}        0           0  third\n"
        "              failed: ValueError: no\n"
        "total               0           0\n"
    )
    tokens, _, aborted = result.stderr.splitlines()[-3:]
    assert re.fullmatch(r"[\d,]+ tokens sent, [\d,]+ received\.", tokens)
    assert aborted == "Aborted!"
    assert [entry["id"] for entry in repo.note_json()["anti_patterns"]] == ["ap-1"]
    result = run_llm([*SCRIPTED, "HEAD~4..HEAD"])
    assert result.exit_code == 0
    assert [line.split()[-1] for line in result.stdout.splitlines()[1:-1]] == [
        "third",
        "fourth",
        "fifth",
    ]


def test_a_commit_that_fails_does_not_stop_a_range(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    commits = [repo.commit(name, a_py=name) for name in ("second", "third", "fourth")]
    error = RuntimeError("context\ntoo long")
    result = run_failing(run_llm, FailingModel(None, error, None), "HEAD~3..HEAD")
    assert result.exit_code == 1
    assert result.stdout == (
        "commit        written  duplicates  subject\n"
        f"{commits[0][:12]}        0           0  second\n"
        f"{commits[1][:12]}        0           0  third\n"
        "              failed: RuntimeError: context too long\n"
        f"{commits[2][:12]}        0           0  fourth\n"
        "total               0           0\n"
    )
    assert " sent, 2 received.\n" in result.stderr
    assert "Error: the model failed on 1 commit of 3; the same command tries again" in result.stderr
    answers = [answer for _, answer in logged(run_llm)]
    assert answers == ["ok", "ok"]

    emit(script, "p").say("done")
    again = run_llm([*SCRIPTED, "HEAD~3..HEAD"])
    assert "2 commits were looked at before; --again looks again.\n" in again.stderr
    assert again.exit_code == 0
    assert [line.split()[-1] for line in again.stdout.splitlines()[1:-2]] == ["third"]
    assert len(script.requests) == 2


def test_a_run_stops_where_all_commits_fail(repo: Repo, run_llm: RunLlm) -> None:
    for number in range(8):
        repo.commit(f"c{number}", a_py=f"{number}")
    model = FailingModel(*[ValueError("no")] * 20)
    result = run_failing(run_llm, model, "HEAD~8..HEAD")
    assert (result.exit_code, model.calls) == (1, 5)
    assert "Error: stopped: 5 commits in a row failed" in result.stderr


class RateLimitError(Exception):
    """What a provider's library raises."""

    status_code = 429


@pytest.mark.usefixtures("repo")
def test_an_empty_answer_is_a_failure(script: Script, run_llm: RunLlm) -> None:
    script.say("")
    result = run_llm(SCRIPTED)
    assert result.exit_code == 1
    assert "              failed: the answer is empty" in result.stdout


def test_what_a_failing_commit_wrote_is_reported_and_bounded_over_runs(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    for number in range(30):
        emit(script, f"p {number}")
    result = run_llm(SCRIPTED)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[2:4] == [
        "              " + ", ".join(f"ap-{number}" for number in range(1, 11)),
        "              failed: ValueError: Chain limit of 15 exceeded.",
    ]
    result = run_llm(SCRIPTED)
    assert result.exit_code == 1
    assert len(repo.note_json()["anti_patterns"]) == MAX_ENTRIES


def test_entries_that_were_removed_leave_room_for_others(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    for number in range(MAX_ENTRIES):
        emit(script, f"p {number}")
    script.say("done")
    assert run_llm(SCRIPTED).exit_code == 0
    for removed in ("ap-1", "ap-2"):
        assert run_llm(["kb", "knowledge", "remove", removed]).exit_code == 0
    for number in range(3):
        emit(script, f"q {number}")
    script.say("done")
    assert run_llm([*SCRIPTED, "--again"]).exit_code == 0
    patterns = [entry["pattern"] for entry in repo.note_json()["anti_patterns"]]
    assert patterns == [f"p {number}" for number in range(2, MAX_ENTRIES)] + ["q 0", "q 1"]


def test_a_long_run_asks_first(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    for number in range(21):
        repo.commit(f"commit {number}", a_py=f"{number}")
    result = run_llm([*SCRIPTED, "HEAD~21..HEAD"])
    assert (result.exit_code, script.requests) == (1, [])
    assert re.search(r"21 commits, about [\d,]+ tokens to send\. Go on\? Pass -y", result.stderr)
    assert run_llm([*SCRIPTED, "HEAD~21..HEAD", "-y"]).exit_code == 0
    assert len(script.requests) == 21


def test_a_dry_run_calls_no_model_and_writes_nothing(
    repo: Repo, script: Script, run_llm: RunLlm
) -> None:
    repo.commit("second", a_py="x\n", Cargo_lock="y\n", logo_png=b"\0", other_png=b"\0")
    result = run_llm([*SCRIPTED, "--dry-run"])
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.split()[0::2] == [repo.head[:12], "tokens"]
    assert second == "              left out: Cargo.lock (generated) and 2 others"
    tokens = first.split()[1]
    assert result.stderr == (f"1 commit, about {tokens} tokens to send. No model was called.\n")
    assert script.requests == []
    assert not (repo.path / ".git" / "llm-kb").exists()


@pytest.mark.parametrize(
    ("start", "said"), [("HEAD", "No commit to look at: "), ("HEAD~2", "2 commits, about ")]
)
def test_a_dry_run_says_how_many_commits_there_are(
    repo: Repo, run_llm: RunLlm, start: str, said: str
) -> None:
    repo.commit("second", a_py="x\n")
    repo.commit("third", a_py="y\n")
    result = run_llm([*CAPTURE, "--dry-run", f"{start}..HEAD"])
    assert result.stderr.startswith(said)
    assert result.stderr.endswith(" No model was called.\n")


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
    result = run_llm(SCRIPTED)
    assert result.exit_code == 0
    assert "              3 more refused: at most 10 of a commit\n" in result.stdout
    refused = [output for output in script.last.outputs if output.startswith("Error: ")]
    assert refused == ["Error: no more entries are recorded from this commit"] * 3
    assert len(repo.note_json()["anti_patterns"]) == MAX_ENTRIES


def test_the_model_can_do_nothing_but_emit(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.call("learn", topic="x").call("run", command="rm").say("done")
    assert run_llm(SCRIPTED).exit_code == 0
    assert script.last.outputs == ('Error: tool "run" does not exist',)
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_merges_are_left_out_and_said_so(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("side", side_py="1")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main")
    repo.git("merge", "--quiet", "--no-edit", "side")
    result = run_llm(SCRIPTED)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "merges and the end of a shallow clone are left out" in result.stderr
    again = run_llm([*SCRIPTED, "HEAD^1..HEAD", "--dry-run"])
    assert again.stdout.endswith("  side\n")
    assert "No commit to look at" not in again.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-m", "no-such-model"], "Error: Unknown model: no-such-model"),
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
    assert (repo.path / ".git" / "llm-kb" / "captured").read_text() == f"{repo.head}\n"


def logged(run_llm: RunLlm) -> list[tuple[str, str]]:
    """Return what llm has logged, oldest first: prompts and answers."""
    listed = json.loads(run_llm(["logs", "list", "-n", "0", "--json"]).stdout or "[]")
    return [(entry["prompt"], entry["response"]) for entry in listed]


def test_what_was_said_is_logged(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    emit(script, "p").say("recorded one")
    assert run_llm(SCRIPTED).exit_code == 0
    assert logged(run_llm) == [(script.requests[0].prompt, ""), ("", "recorded one")]


def test_nothing_is_logged_that_is_not_wanted(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.say("nothing")
    run_llm(["logs", "off"])
    assert run_llm(SCRIPTED).exit_code == 0
    assert len(script.requests) == 1
    assert not logs_db_path().exists() or logged(run_llm) == []


def test_a_log_that_fails_later_loses_nothing(
    repo: Repo, script: Script, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_chain: object, _db: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(llm.Response, "log_to_db", fail)
    emit(script, "p").say("recorded")
    result = run_llm(SCRIPTED)
    assert result.exit_code == 0
    assert "Warning: not logged: disk full" in result.stderr
    assert [entry["id"] for entry in repo.note_json()["anti_patterns"]] == ["ap-1"]
