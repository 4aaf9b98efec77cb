"""The `References` toolbox through the real `llm`: only the operator approves."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import llm
import pytest
from llm.models import EmbeddingModel
from llm.plugins import pm

from llm_kb.errors import KbError
from llm_kb.references.calls import ALL, current_library
from llm_kb.references.errors import ApprovalNeededError
from llm_kb.references.plan import PendingPlans, Plan
from llm_kb.references.toolbox import approve_plan, make_references
from tests.conftest import RunLlm
from tests.references.remotes import Remote
from tests.references.sites import Site, serve_site
from tests.scripted import Script
from tests.search.embedding import HashingModel


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback."""
    with serve_site() as site:
        yield site


pytestmark = pytest.mark.usefixtures("trusting")


def fields(remote: Remote, **more: Any) -> dict[str, Any]:
    return {
        "title": "Frob - Widgets",
        "body": "Frob frobnicates widgets.",
        "sources": [{"type": "git", "url": remote.url, "ref": "main"}],
        "tags": ["widgets"],
        **more,
    }


def call(toolbox: llm.Toolbox, name: str, **arguments: Any) -> Any:
    tool = next(tool for tool in toolbox.tools() if tool.name == name)
    assert tool.implementation is not None
    return tool.implementation(**arguments)


def test_the_toolbox_yields_the_five_tools_with_their_schemas() -> None:
    tools = list(make_references().tools())
    assert [tool.name for tool in tools] == [
        "reference_topic_create",
        "reference_topic_search",
        "reference_topic_list",
        "reference_topic_update",
        "reference_search",
    ]
    properties = {tool.name: sorted(tool.input_schema["properties"]) for tool in tools}
    assert properties == {
        "reference_topic_create": [
            "body",
            "max_age_days",
            "sources",
            "tags",
            "title",
            "trust_score",
        ],
        "reference_topic_search": ["query"],
        "reference_topic_list": ["include_obsolete"],
        "reference_topic_update": ["body", "max_age_days", "status", "tags", "topic_id"],
        "reference_search": ["paths", "question", "role", "tags", "topic"],
    }
    assert [tool.description for tool in tools] == [text.description for text in ALL]


def test_create_search_list_and_update_answer_with_the_fields_of_the_seed(remote: Remote) -> None:
    toolbox = make_references(approve=lambda plan: True, ghost="ghost-a", model="m-1")
    created = call(toolbox, "reference_topic_create", **fields(remote))
    assert created == {"topic_id": "topic-frob-widgets", "file_count": 1, "chunk_count": 1}

    (entry,) = call(toolbox, "reference_topic_list")
    fetched_at = entry["fetched_at"]
    assert entry == {
        "topic_id": "topic-frob-widgets",
        "title": "Frob - Widgets",
        "status": "active",
        "is_stale": False,
        "fetched_at": fetched_at,
        "max_age_days": 30,
        "created_by_ghost": "ghost-a",
        "source_count": 1,
        "file_count": 1,
        "tags": ["widgets"],
    }
    (hit,) = call(toolbox, "reference_topic_search", query="widget frobnication")
    assert hit == {
        "topic_id": "topic-frob-widgets",
        "title": "Frob - Widgets",
        "status": "active",
        "is_stale": False,
        "fetched_at": fetched_at,
        "tags": ["widgets"],
        "score": hit["score"],
        "snippet": "Frob frobnicates widgets.",
    }
    assert 0 < hit["score"] <= 1
    assert call(toolbox, "reference_topic_search", query="quantum chromodynamics") == []

    answer = call(toolbox, "reference_search", topic="frob", question="how to frobnicate")
    assert list(answer) == ["topics", "legs", "results"]
    assert answer["topics"] == [
        {
            "topic_id": "topic-frob-widgets",
            "title": "Frob - Widgets",
            "description": "Frob frobnicates widgets.",
        }
    ]
    assert "keyword" in answer["legs"]
    (result,) = answer["results"]
    assert result == {
        "topic_id": "topic-frob-widgets",
        "file": "docs/guide.md",
        "lines": "1-5",
        "origin": f"{remote.url} @ {remote.commit}, fetched {fetched_at}",
        "title": result["title"],
        "role": "docs",
        "score": result["score"],
        "text": "# Guide\n\n## Hooks\n\nCall `on_mount` to frobnicate.",
    }
    updated = call(
        toolbox, "reference_topic_update", topic_id="topic-frob-widgets", status="obsolete"
    )
    assert updated["status"] == "obsolete"
    assert call(toolbox, "reference_topic_list") == []
    assert len(call(toolbox, "reference_topic_list", include_obsolete=True)) == 1


def test_obsolete_topics_are_not_searched_and_stale_hits_say_since_when(remote: Remote) -> None:
    toolbox = make_references(approve=lambda plan: True)
    call(toolbox, "reference_topic_create", **fields(remote))
    library = current_library()
    library.update("topic-frob-widgets", {"fetched_at": "2025-01-01T00:00:00Z"})
    (result,) = call(toolbox, "reference_search", question="frobnicate")["results"]
    assert result["stale_since"] == "2025-02-01T00:00:00Z"
    assert result["origin"].endswith(
        "fetched 2025-01-01T00:00:00Z, STALE since 2025-02-01T00:00:00Z"
    )
    assert call(toolbox, "reference_topic_list")[0]["status"] == "stale"

    library.update("topic-frob-widgets", {"status": "obsolete"})
    assert call(toolbox, "reference_search", question="frobnicate")["results"] == []
    with pytest.raises(Exception, match="marked obsolete"):
        call(toolbox, "reference_search", topic="Frob - Widgets", question="frobnicate")


def test_without_a_terminal_the_model_is_told_and_the_plan_waits(
    run_llm: RunLlm, script: Script, remote: Remote
) -> None:
    script.call("reference_topic_create", **fields(remote)).say("I wait.")
    result = run_llm(["-m", "scripted", "-T", "References", "Learn frob"])
    assert result.exit_code == 0, result.output
    (output,) = script.requests[1].outputs
    (pending,) = json.loads(run_llm(["kb", "review", "--json"]).stdout)
    assert output == (
        f"Error: fetching 'Frob - Widgets' ({remote.url}) from {remote.url} "
        f"needs the user's approval: llm kb review --yes {pending['id']}. Tell the user so, "
        "go on without it, and do not try again"
    )
    assert f"llm kb review --yes {pending['id']}" in result.stderr
    assert current_library().ids() == []

    approved = run_llm(["kb", "review", "--yes", pending["id"]])
    assert approved.stdout.endswith("\ntopic-frob-widgets: 1 page\n")
    again = run_llm(["kb", "review", "--yes", pending["id"]])
    assert (again.exit_code, "waits; waiting: nothing" in again.stderr) == (1, True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def sit_at_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> Terminal:
    """Answer every question on the terminal; return what is written to it."""
    screen = Terminal()
    for name, stream in {"stdin": Terminal(f"{answer}\n" * 9), "stderr": screen}.items():
        monkeypatch.setattr(sys, name, stream)
    return screen


@pytest.mark.parametrize(("answer", "created"), [("y", True), ("n", False)])
def test_on_a_terminal_the_operator_is_asked(
    monkeypatch: pytest.MonkeyPatch, remote: Remote, answer: str, created: bool
) -> None:
    screen = sit_at_terminal(monkeypatch, answer)
    if created:
        call(make_references(), "reference_topic_create", **fields(remote))
    else:
        with pytest.raises(Exception, match=r"user denied .* suggest a smaller scope"):
            call(make_references(), "reference_topic_create", **fields(remote))
    shown = screen.getvalue()
    assert "Create reference topic 'Frob - Widgets'?" in shown
    assert f"  git {remote.url}\n" in shown
    assert "how much it holds is not known; at most 50,000 files, 500 MB\n" in shown
    assert bool(current_library().ids()) is created


def test_a_denied_plan_is_not_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, remote: Remote
) -> None:
    screen = sit_at_terminal(monkeypatch, "n")
    toolbox = make_references()
    for body in ("Words.", "Words.", "Other words."):
        with pytest.raises(Exception, match="user denied"):
            call(toolbox, "reference_topic_create", **fields(remote, body=body))
    assert screen.getvalue().count("Create reference topic") == 2


def test_a_callback_is_handed_the_plan(remote: Remote) -> None:
    plans: list[Plan] = []

    def deny(plan: Plan) -> bool:
        plans.append(plan)
        return False

    toolbox = make_references(approve=deny)
    with pytest.raises(Exception, match="denied"):
        call(toolbox, "reference_topic_create", **fields(remote))
    assert [(plan.hosts, plan.files) for plan in plans] == [((remote.url,), 0)]


def test_a_paused_chain_goes_on_once_the_plan_is_approved(script: Script, remote: Remote) -> None:
    model = llm.get_model("scripted")
    toolbox = make_references(pause=True)
    script.call("reference_topic_create", **fields(remote))
    with pytest.raises(llm.PauseChain) as paused:
        model.chain("Learn frob", tools=[toolbox]).text()
    error = paused.value.args[0]
    assert paused.value.tool_call is not None
    with pytest.raises(llm.PauseChain):  # not yet approved: it pauses again
        call(toolbox, "reference_topic_create", **paused.value.tool_call.arguments)
    approve_plan(error.plan_id)
    created = call(toolbox, "reference_topic_create", **paused.value.tool_call.arguments)
    assert created["file_count"] == 1
    assert PendingPlans(current_library()).read_all()[0] == []


def test_a_call_repeated_after_its_approval_is_answered_with_the_topic(
    run_llm: RunLlm, remote: Remote
) -> None:
    with pytest.raises(KbError, match="and do not try again") as waits:
        call(make_references(), "reference_topic_create", **fields(remote))
    needed = waits.value.__cause__
    assert isinstance(needed, ApprovalNeededError)
    run_llm(["kb", "review", "--yes", needed.plan_id])
    created = call(make_references(), "reference_topic_create", **fields(remote))
    assert created["topic_id"] == "topic-frob-widgets"
    with pytest.raises(KbError, match="topic-frob-widgets"):
        call(make_references(), "reference_topic_create", **fields(remote, body="Other words."))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            {"type": "local", "url": "/etc"}, "allowed: crawl, git, package, web", id="local"
        ),
        pytest.param({"type": "git", "url": "ext::sh -c id"}, "never run", id="ext"),
        pytest.param({"type": "git", "url": "/etc"}, "must be a URL of file or http", id="path"),
        pytest.param({"type": "web", "url": "file:///etc/passwd"}, "must be http", id="file"),
        pytest.param(
            {"type": "git", "url": "https://e.org/x", "ref": "--upload-pack=id"},
            "not the name of a branch",
            id="ref",
        ),
        pytest.param(
            {"type": "git", "url": "https://e.org/x", "paths": ["../x"]}, "inside", id="paths"
        ),
        pytest.param({"type": "web", "url": "https://u:p@e.org/"}, "password", id="password"),
    ],
)
def test_a_model_cannot_name_what_it_may_not_have(source: dict[str, str], message: str) -> None:
    toolbox = make_references(approve=lambda plan: True)
    with pytest.raises(Exception, match=message):
        call(toolbox, "reference_topic_create", title="T", body="b", sources=[source])


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        pytest.param(
            "reference_topic_create",
            {"name": "T", "sources": 3},
            "sources: found the number 3; allowed: a list; title: missing; body: missing; "
            "its arguments are title (required), "
            "body (required), sources (required), tags, max_age_days, trust_score",
            id="create",
        ),
        pytest.param(
            "reference_topic_search",
            {},
            "query: missing; its arguments are query (required)",
            id="topic search",
        ),
        pytest.param(
            "reference_topic_list",
            {"include_obsolete": "yes", "query": "x"},
            "include_obsolete: found 'yes'; allowed: true or false; "
            "its arguments are include_obsolete",
            id="list",
        ),
        pytest.param(
            "reference_topic_update",
            {"id": "topic-frob", "max_age_days": True},
            "max_age_days: found true; allowed: a whole number, 0 or more; topic_id: missing; "
            "its arguments are topic_id (required), status, max_age_days, body, tags",
            id="update",
        ),
        pytest.param(
            "reference_search",
            {"words": "hooks", "question": None},
            "question: missing; its arguments are topic, question (required), role, paths, tags",
            id="search",
        ),
        pytest.param(
            "reference_search",
            {"tool": 1, "implementation": 2, "self": 3, "question": [4]},
            "question: found a list; allowed: a string; its arguments are topic, "
            "question (required), role, paths, tags",
            id="names of ours",
        ),
    ],
)
def test_wrong_arguments_are_answered_with_the_right_ones(
    run_llm: RunLlm, script: Script, tool: str, arguments: dict[str, Any], message: str
) -> None:
    script.call_all(llm.ToolCall(name=tool, arguments=arguments)).say("I see.")
    run_llm(["-m", "scripted", "-T", "References", "hi"])
    assert script.requests[1].outputs == (f"Error: {tool}: {message}",)


def test_null_stands_for_an_argument_left_out() -> None:
    assert call(make_references(), "reference_topic_list", include_obsolete=None) == []


@pytest.mark.parametrize("name", ["approve", "refresh", "delete", "_approve", "verify"])
def test_models_have_no_tool_to_approve_refresh_or_delete(name: str) -> None:
    assert not [tool for tool in make_references().tools() if name in tool.name]


def test_nothing_but_the_five_tools_is_listed(run_llm: RunLlm) -> None:
    listed = json.loads(run_llm(["tools", "list", "--json"]).stdout)
    (toolbox,) = (box for box in listed["toolboxes"] if box["name"] == "References")
    assert toolbox["tools"] == []  # they are made when the toolbox is
    named = json.loads(run_llm(["tools", "list", "References", "--json"]).stdout)
    (toolbox,) = named["toolboxes"]
    assert [tool["name"] for tool in toolbox["tools"]] == [text.name for text in ALL]


def test_recent_topics_are_in_the_prompt_beside_the_toolbox(
    run_llm: RunLlm, script: Script, remote: Remote
) -> None:
    call(make_references(approve=lambda plan: True), "reference_topic_create", **fields(remote))
    script.say("ok").say("ok")
    run_llm(["-m", "scripted", "-T", "References", "hi"])
    run_llm(["-m", "scripted", "hi"])
    listed = "## Available Reference Topics\n\n- Frob - Widgets (`topic-frob-widgets`) — widgets"
    assert listed in script.requests[0].system
    assert script.requests[1].system == ""


def test_beside_a_menu_a_topic_stands_once_in_the_prompt(
    run_llm: RunLlm, script: Script, remote: Remote
) -> None:
    call(make_references(approve=lambda plan: True), "reference_topic_create", **fields(remote))
    script.say("ok")
    run_llm(["-m", "scripted", "-T", "References", "-T", "learn", "hi"])
    system = script.requests[0].system
    assert system.count("topic-frob-widgets") == 1
    assert "- topic-frob-widgets (**Frob - Widgets**)" in system


def test_a_reference_is_learned_like_any_topic_with_its_origin(
    run_llm: RunLlm, remote: Remote
) -> None:
    call(make_references(approve=lambda plan: True), "reference_topic_create", **fields(remote))
    learned = run_llm(["kb", "show", "--as-model", "topic-frob-widgets/docs/guide"]).stdout
    assert learned.startswith(f"{remote.url} @ {remote.commit}, fetched 20")
    assert learned.rstrip().endswith("Call `on_mount` to frobnicate.")
    assert "topic-frob-widgets" in run_llm(["kb", "list"]).stdout


def test_the_clock_of_a_library_is_utc() -> None:
    assert abs(current_library().clock() - datetime.now(timezone.utc)).total_seconds() < 5


class Hashing(EmbeddingModel):
    """Feature hashing as a model of llm."""

    model_id = "hashing"

    def embed_batch(self, items: Any, *, key: str | None = None) -> Iterator[list[float]]:
        yield from HashingModel()(list(items))


class Broken(EmbeddingModel):
    """A model whose server is down."""

    model_id = "broken"

    def embed_batch(self, items: Any, *, key: str | None = None) -> Iterator[list[float]]:
        raise ConnectionError("no network")


class Embeddings:
    """Registers both."""

    @llm.hookimpl
    def register_embedding_models(self, register: Any) -> None:
        register(Hashing())
        register(Broken())


@pytest.fixture
def embeddings() -> Iterator[None]:
    """Embedding models, of which none is the default."""
    pm.register(Embeddings(), name="test-embeddings")
    yield
    pm.unregister(name="test-embeddings")


@pytest.mark.usefixtures("embeddings")
def test_the_default_embedding_model_adds_a_dense_leg(remote: Remote) -> None:
    llm.set_default_embedding_model("hashing")
    toolbox = make_references(approve=lambda plan: True)
    call(toolbox, "reference_topic_create", **fields(remote))
    answer = call(toolbox, "reference_search", question="call on_mount")
    assert answer["legs"] == ["keyword", "dense"]
    assert [hit["file"] for hit in answer["results"]] == ["docs/guide.md"]


@pytest.mark.usefixtures("embeddings")
def test_a_model_that_fails_is_told_of_and_keywords_answer(remote: Remote) -> None:
    llm.set_default_embedding_model("broken")
    toolbox = make_references(approve=lambda plan: True)
    created = call(toolbox, "reference_topic_create", **fields(remote))
    assert "no network" in created["warnings"][0]
    answer = call(toolbox, "reference_search", question="call on_mount")
    assert (answer["legs"], len(answer["results"])) == (["keyword"], 1)
    assert answer["warnings"][0].startswith("searched by words only: ")
    assert len(call(toolbox, "reference_topic_search", query="widgets")) == 1


def test_an_embedding_model_that_is_not_there_is_told_of_by_name(
    user_dir: Path, remote: Remote
) -> None:
    with (user_dir / "kb.toml").open("a") as file:
        file.write('[kb]\nembedding_model = "nope"\n')
    toolbox = make_references(approve=lambda plan: True)
    call(toolbox, "reference_topic_create", **fields(remote))
    answer = call(toolbox, "reference_search", question="call on_mount")
    assert answer["warnings"] == [
        "searched by words only: embedding model 'nope' is unknown; see `llm embed-models`"
    ]


@pytest.mark.parametrize(
    ("spec", "created_by"),
    [
        ("References", {"ghost": "llm"}),
        ('References("my-agent")', {"ghost": "my-agent"}),
        ('References(ghost="my-agent", model="m-1")', {"ghost": "my-agent", "model": "m-1"}),
    ],
)
def test_arguments_of_the_toolbox_are_recorded_and_a_continued_conversation_keeps_its_tools(
    run_llm: RunLlm, script: Script, remote: Remote, spec: str, created_by: dict[str, str]
) -> None:
    script.call("reference_topic_create", **fields(remote)).say("ok")
    first = run_llm(["-m", "scripted", "-T", spec, "Learn frob"])
    assert first.exit_code == 0, first.output
    (pending,) = PendingPlans(current_library()).read_all()[0]
    assert pending.request.created_by == created_by
    script.call("reference_topic_list").say("ok")
    again = run_llm(["-c", "What is there?"])
    assert again.exit_code == 0, again.output
    assert script.requests[2].tool_names == tuple(text.name for text in ALL)
    assert script.requests[3].outputs == ("[]",)
