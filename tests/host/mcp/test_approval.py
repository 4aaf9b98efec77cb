"""Approval of a model's plan by the client's user, over both versions of the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import mcp_types as types
from mcp.client import Client

from llm_kb.api import KnowledgeBase, current_library
from llm_kb.host.mcp.server import KnowledgeServer
from llm_kb.references.plan.pending import open_pending
from tests.mcp_client import call, read, start_process, talk
from tests.references.remotes import Remote

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])

CREATED = {"topic_id": "topic-frob", "file_count": 1, "chunk_count": 1}


pytestmark = pytest.mark.usefixtures("trusting")


def fields(remote: Remote, title: str = "Frob") -> dict[str, Any]:
    """Return the arguments of a call of `reference_topic_create`."""
    source = {"type": "git", "url": remote.url, "ref": "main"}
    return {"title": title, "body": "Frobnicates widgets.", "sources": [source]}


class Person:
    """Answers what a client asks; `meanwhile` happens while they read."""

    def __init__(self, action: str, approve: bool = True, **more: Any) -> None:
        self.result = types.ElicitResult(
            action=action,  # type: ignore[arg-type]  # of the tests' tables
            content={"approve": approve} if action == "accept" else None,
        )
        self.meanwhile: Callable[[], object] = more.get("meanwhile", lambda: None)
        self.asked: list[str] = []

    async def __call__(self, _context: object, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        self.meanwhile()
        return self.result


def waiting() -> list[str]:
    """Return the titles of the plans that wait."""
    return [each.plan.request.title for each in open_pending(current_library()).read_all()[0]]


def topics() -> list[str]:
    """Return the ids of the topics there are."""
    return [topic.id for topic in current_library().topics()[0]]


@MODES
def test_what_the_person_approves_is_fetched_with_progress(
    remote: Remote, tmp_path: Path, mode: str
) -> None:
    person = Person("accept")
    steps: list[str] = []

    async def conversation(client: Client) -> Any:
        async def watch(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message or "")

        created = await client.call_tool(
            "reference_topic_create", fields(remote), progress_callback=watch
        )
        tools = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
        found = await client.call_tool("reference_search", {"question": "on_mount"})
        listed = await client.call_tool("reference_topic_list", {})
        return read(created), tools, read(found), read(listed)

    created, tools, found, listed = talk(
        conversation, tmp_path, mode=mode, elicitation_callback=person
    )
    assert (json.loads(created[0]), created[1]) == (CREATED, False)
    (asked,) = person.asked
    assert "Frob: " in asked
    assert remote.url in asked
    assert remote.commit in asked
    assert {"reference_search", "reference_topic_search", "reference_topic_list"} < set(tools)
    assert json.loads(found[0])["results"][0]["file"] == "docs/guide.md"
    assert json.loads(listed[0])[0]["created_by_ghost"] == "mcp"
    assert steps[-1] == "indexing"  # a busy machine may miss those before
    assert waiting() == []


@MODES
@pytest.mark.parametrize(
    ("person", "left"),
    [
        pytest.param(Person("decline"), [], id="declined"),
        pytest.param(Person("accept", approve=False), [], id="sent without the tick"),
        pytest.param(Person("cancel"), ["Frob"], id="dismissed"),
    ],
)
def test_nothing_else_is_fetched(
    remote: Remote, tmp_path: Path, mode: str, person: Person, left: list[str]
) -> None:
    answer, is_error = call(
        tmp_path, "reference_topic_create", fields(remote), mode=mode, elicitation_callback=person
    )
    assert is_error
    expected = "llm kb references approve" if left else "the user denied fetching 'Frob'"
    assert expected in answer
    assert topics() == []
    assert waiting() == left


@MODES
def test_a_client_that_cannot_ask_leaves_the_plan_waiting(
    remote: Remote, tmp_path: Path, mode: str
) -> None:
    """And once it is approved elsewhere, the same call carries it out."""
    answer, is_error = call(tmp_path, "reference_topic_create", fields(remote), mode=mode)
    assert is_error
    assert "Tell the user so, go on without it, and do not try again" in answer
    (plan,) = open_pending(current_library()).read_all()[0]
    open_pending(current_library()).approve(plan.plan.id)
    answer, is_error = call(tmp_path, "reference_topic_create", fields(remote), mode=mode)
    assert (json.loads(answer), is_error) == (CREATED, False)


@MODES
def test_what_was_shown_is_fetched_though_the_source_has_changed_since(
    remote: Remote, tmp_path: Path, mode: str
) -> None:
    """What was approved is a commit: a newer one is not fetched in its place."""
    person = Person("accept")
    person.meanwhile = lambda: remote.write({"docs/evil.md": "Newer.\n"})
    answer, is_error = call(
        tmp_path, "reference_topic_create", fields(remote), mode=mode, elicitation_callback=person
    )
    assert (json.loads(answer), is_error) == (CREATED, False)
    assert len(person.asked) == 1


def test_an_answer_carries_out_the_plan_of_its_own_call_alone(
    remote: Remote, tmp_path: Path
) -> None:
    """A client of the newer protocol says which plan it answers; any other one is refused."""
    assert call(tmp_path, "reference_topic_create", fields(remote, "Other"))[1]
    (other,) = open_pending(current_library()).read_all()[0]
    yes = types.ElicitResult(action="accept", content={"approve": True})

    async def conversation(client: Client) -> Any:
        results = []
        for plan_id in (other.plan.id, "0" * 32, "../../secret", ""):
            result = await client.session.call_tool(
                "reference_topic_create",
                fields(remote),
                input_responses={"approval": yes},
                request_state=plan_id,
                allow_input_required=True,
            )
            results.append(result)
        return results

    results = talk(conversation, tmp_path, elicitation_callback=Person("accept"))
    texts = [read(result)[0] for result in results[:3]]
    assert "it was made for another request" in texts[0]
    assert all("plan" in text for text in texts[1:])
    # Without a plan it is a new call, which is asked about.
    assert isinstance(results[3], types.InputRequiredResult)
    assert topics() == []


def test_who_may_not_write_cannot_create_or_approve(remote: Remote, tmp_path: Path) -> None:
    served = KnowledgeServer(lambda: KnowledgeBase.discover(tmp_path), can_write=False)
    person = Person("accept")
    answer = call(served, "reference_topic_create", fields(remote), elicitation_callback=person)
    assert answer == ("unknown tool 'reference_topic_create'; tools: learn, search", True)
    assert (person.asked, waiting()) == ([], [])


@pytest.mark.slow
@MODES
def test_it_works_over_standard_input_and_output(remote: Remote, tmp_path: Path, mode: str) -> None:
    answer, is_error = call(
        start_process(cwd=tmp_path),
        "reference_topic_create",
        fields(remote),
        mode=mode,
        elicitation_callback=Person("accept"),
    )
    assert (json.loads(answer), is_error) == (CREATED, False)
