"""`emit_knowledge` as llm registers it and models call it."""

from __future__ import annotations

from pathlib import Path

import llm
import pytest

from llm_kb.capture.emission import EMIT_DESCRIPTION, EMIT_SCHEMA
from llm_kb.host.hooks import make_tools
from llm_kb.knowledge_base.api import KnowledgeBase
from tests.conftest import RunLlm
from tests.repositories import Repo, make_empty_repo, make_repo
from tests.scripted import Script


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = make_repo(tmp_path / "repo")
    monkeypatch.chdir(made.path)
    return made


def make_emit_tool() -> llm.Tool:
    (tool,) = KnowledgeBase.discover().added_tools(["emit_knowledge"])
    assert isinstance(tool, llm.Tool)
    return tool


def offered() -> list[llm.Tool]:
    """Return the tool if it is among those that llm registers here."""
    tools = [tool for tool in make_tools() if isinstance(tool, llm.Tool)]
    return [tool for tool in tools if tool.name == "emit_knowledge"]


def test_the_tool_is_offered_in_a_repository_alone(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # finding it out starts no process
    (tool,) = offered()
    assert (tool.name, tool.description, tool.input_schema) == (
        "emit_knowledge",
        EMIT_DESCRIPTION,
        EMIT_SCHEMA,
    )
    monkeypatch.chdir(tmp_path)
    assert offered() == []


def test_a_chain_emits_reads_the_answers_and_corrects_itself(repo: Repo, script: Script) -> None:
    (repo.path / "src").mkdir()
    script.call("emit_knowledge", entry_type="convention", rule="Use x")
    script.call_all(
        *(
            llm.ToolCall(name="emit_knowledge", arguments=arguments)
            for arguments in (
                {"entry_type": "convention", "rule": "Use x", "scope": "src/"},
                {"entry_type": "convention", "rule": "use x!", "scope": "src/"},
            )
        )
    )
    script.say("done")
    chain = llm.get_model("scripted").chain("go", tools=[make_emit_tool()])
    assert chain.text() == "done"
    assert [request.outputs for request in script.requests] == [
        (),
        ("Error: scope: required for convention",),
        ("recorded convention conv-1 (src/): Use x", "already exists: conv-1 (src/): Use x"),
    ]
    assert repo.note_json()["conventions"] == [
        {
            "id": "conv-1",
            "scope": "src/",
            "rule": "Use x",
            "decided_in": repo.head,
            "stability": "provisional",
        }
    ]


def test_llm_prompt_emits(repo: Repo, script: Script, run_llm: RunLlm) -> None:
    script.call("emit_knowledge", entry_type="anti_pattern", pattern="p", instead="i").say("noted")
    result = run_llm(["-m", "scripted", "-T", "emit_knowledge", "look"])
    assert (result.exit_code, result.stdout) == (0, "noted\n")
    assert [entry["id"] for entry in repo.note_json()["anti_patterns"]] == ["ap-1"]


def test_a_repository_without_a_commit_is_a_tool_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    monkeypatch.chdir(make_empty_repo(tmp_path / "empty").path)
    script.call("emit_knowledge", entry_type="anti_pattern", pattern="p", instead="i").say("oh")
    llm.get_model("scripted").chain("go", tools=[make_emit_tool()]).text()
    (output,) = script.last.outputs
    assert output.startswith("Error: the repository has no commit yet")


def test_a_repository_among_the_files_of_a_clone_is_never_written_to(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its configuration, which anyone could have committed, would run programs."""
    inner = repo.path / "evil.git"
    repo.git("clone", "--quiet", "--bare", ".", str(inner))
    hook = inner / "hooks" / "reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    monkeypatch.chdir(inner)
    tool = make_emit_tool()
    assert tool.implementation is not None
    tool.implementation(entry_type="anti_pattern", pattern="p", instead="i")
    assert len(repo.note_json()["anti_patterns"]) == 1
    assert list(repo.path.rglob("ran")) == []


def test_a_directory_that_was_deleted_has_no_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert offered() == []


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "not trusted"])
def test_it_comes_with_learn_where_the_workspace_offers_it(
    repo: Repo, script: Script, run_llm: RunLlm, is_trusted: bool
) -> None:
    (repo.path / "kb").mkdir()
    (repo.path / "kb" / "a.md").write_text("# a\n")
    config = '[kb.capture]\noffer = true\n[kb.topic.project]\nsubjects = "kb"\n'
    (repo.path / "llm-kb.toml").write_text(config)
    if is_trusted:
        assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    script.say("ok").say("ok")
    result = run_llm(["-m", "scripted", "-T", "learn", "hi"])
    assert result.exit_code == 0
    assert script.last.tool_names == ("learn", *(["emit_knowledge"] if is_trusted else []))
    assert ("kb.capture.offer" in result.stderr) is not is_trusted
    run_llm(["-m", "scripted", "hi"])
    assert script.last.tool_names == ()
