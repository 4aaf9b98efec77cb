"""`llm kb mcp`, spoken to by the SDK's own client."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client

from llm_kb.host.mcp.server import Server
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import LEARN, SEARCH_KNOWLEDGE
from llm_kb.rendering.section import HEADER
from tests.conftest import RunLlm
from tests.mcp_client import call, read, start_process, talk
from tests.repositories import make_repo

CONFIG = """
[kb]
search = true

[kb.topic.project]
title = "General"
introduction = "How we work."
subjects = "project"
disabled = ["secret"]
"""

LISTING = """\
# Topic: General (project)

## Available subjects:

- review

Use the `learn` tool with the `subjects` argument to learn specific subjects."""


async def read_instructions(client: Client) -> str:
    return client.instructions or ""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a visible, a hidden and a disabled subject."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "review.md").write_text("# Review\n\nTwo eyes.\n", encoding="utf-8")
    (tmp_path / "project" / ".notes.md").write_text("Hidden eyes.\n", encoding="utf-8")
    (tmp_path / "project" / "secret.md").write_text("Secret eyes.\n", encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def test_tools_are_those_of_the_knowledge_base(workspace: Path) -> None:
    async def list_tools(client: Client) -> list[types.Tool]:
        return (await client.list_tools()).tools

    learn, search = talk(list_tools, workspace)
    schema = {key: LEARN.schema[key] for key in ("type", "properties", "required")}
    assert (learn.name, learn.input_schema) == ("learn", schema)
    assert learn.description == (
        "Learn about knowledge base topics and subjects. Available topics: project (General)."
        " One call can load several subjects, those of another topic as topic/subject."
    )
    assert search.name == "search_knowledge"
    assert [tool.annotations.read_only_hint for tool in (learn, search)] == [True, True]


def test_instructions_hold_the_menu_and_what_is_pre_loaded(
    workspace: Path, run_llm: RunLlm
) -> None:
    instructions = talk(read_instructions, start_process("-k", "project/review", cwd=workspace))
    first, _, rest = instructions.partition("\n\n")
    assert first.startswith("Search this knowledge before you answer or change something: General")
    start = f"<knowledge>\n{HEADER}- project "
    assert rest.startswith(start)
    assert instructions.index('<subject "review">') > len(start)


def test_learn_lists_loads_and_finds_hidden_subjects_by_name(workspace: Path) -> None:
    async def conversation(client: Client) -> list[tuple[str, bool]]:
        calls: list[dict[str, object]] = [
            {"topic": "general"},
            {"topic": "project", "subjects": "review"},
            {"topic": "project", "subjects": ["notes"]},
        ]
        return [read(await client.call_tool("learn", arguments)) for arguments in calls]

    listing, review, notes = talk(
        conversation, start_process("-d", str(workspace), cwd=workspace.parent)
    )
    assert listing == (
        LISTING,
        False,
    )
    assert review == ("# Review\n\nTwo eyes.\n", False)
    assert notes == ("Hidden eyes.\n", False)


def test_a_list_may_be_written_as_json_as_for_the_tool_of_the_host(workspace: Path) -> None:
    arguments = {"topic": "project", "subjects": '["notes", "review"]'}
    assert call(workspace, "learn", arguments) == (
        '<subject "notes">\nHidden eyes.\n</subject>\n\n'
        '<subject "review">\n# Review\n\nTwo eyes.\n</subject>',
        False,
    )


def test_search_answers_with_places_and_never_with_what_is_hidden(workspace: Path) -> None:
    async def conversation(client: Client) -> list[tuple[str, bool]]:
        return [
            read(await client.call_tool("search_knowledge", {"question": "EYES"})),
            read(
                await client.call_tool(
                    "search_knowledge", {"question": "nothing", "topic": "project"}
                )
            ),
        ]

    assert talk(conversation, workspace) == [
        (
            '<passage "project/review#review (lines 1-3)">\n# Review\n\nTwo eyes.\n</passage>\n',
            False,
        ),
        (
            "Nothing in project has a word of that question. Try the words such a text would"
            " use, another topic, or `learn` with only a topic, which lists its subjects.\n\n"
            "(note: not found in any text: nothing)\n",
            False,
        ),
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("learn", {"topic": "project", "subjects": ["./review.md"]}),
        ("learn", {"topic": "project", "subject": "@review"}),
        ("learn", {"topic": "project", "subjects": "review.md:1-3"}),
        ("search_knowledge", {"query": "eyes"}),
        (
            "search_knowledge",
            {"question": "eyes", "topic": "null", "limit": "null", "role": "null"},
        ),
        ("search_knowledge", {"question": "eyes", "paths": "./project/review.md", "tags": "null"}),
    ],
)
def test_a_call_is_understood_as_models_write_it(
    workspace: Path, name: str, arguments: dict[str, object]
) -> None:
    text, is_error = call(workspace, name, arguments)
    assert (is_error, "Two eyes.\n" in text) == (False, True)


def test_what_is_served_forbids_no_name(workspace: Path) -> None:
    listed = Server(partial(KnowledgeBase.discover, workspace, tools=["References"])).answer(
        {"id": 1, "method": "tools/list"}, lambda *_: None
    )
    assert "additionalProperties" not in json.dumps(listed)
    assert LEARN.schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        pytest.param(
            "learn",
            {"topic": "nope"},
            "unknown topic 'nope'; valid topics: project",
            id="unknown topic",
        ),
        pytest.param(
            "learn",
            {"topic": "project", "subjects": "secret"},
            "no subject of topic 'project' matches 'secret'",
            id="disabled subject",
        ),
        pytest.param(
            "learn",
            {"subjects": "review"},
            "learn: topic: missing; its arguments are topic (required), subjects; valid topics:"
            " project",
            id="missing argument",
        ),
        pytest.param(
            "search_knowledge",
            {"question": [3]},
            "search_knowledge: question: found a list; allowed: a string; its arguments are"
            f" question (required), {', '.join([*SEARCH_KNOWLEDGE.schema['properties']][1:])}",
            id="wrong type",
        ),
        pytest.param(
            "search_knowledge",
            {"question": " . "},
            "the question has no word to look for",
            id="no word",
        ),
        pytest.param(
            "write",
            {},
            "unknown tool 'write'; tools: learn, search_knowledge",
            id="unknown tool",
        ),
    ],
)
def test_a_wrong_call_says_how_to_correct_it(
    workspace: Path, name: str, arguments: dict[str, object], message: str
) -> None:
    assert call(workspace, name, arguments) == (message, True)


def test_a_wrong_call_is_a_result_and_the_server_goes_on(workspace: Path) -> None:
    async def conversation(client: Client) -> list[tuple[str, bool]]:
        return [
            read(await client.call_tool("learn", {"topic": "nope"})),
            read(await client.call_tool("learn", {"topic": "project"})),
        ]

    assert talk(conversation, workspace) == [
        ("unknown topic 'nope'; valid topics: project", True),
        (LISTING, False),
    ]


def test_a_change_on_disk_is_seen_without_a_restart(workspace: Path) -> None:
    async def conversation(client: Client) -> tuple[str, bool]:
        await client.call_tool("learn", {"topic": "project"})
        (workspace / "project" / "new.md").write_text("Fresh.\n", encoding="utf-8")
        return read(await client.call_tool("learn", {"topic": "project", "subjects": "new"}))

    assert talk(conversation, workspace) == ("Fresh.\n", False)


def test_a_broken_configuration_is_told_to_the_client(workspace: Path) -> None:
    path = workspace / "llm-kb.toml"
    path.write_text("[kb.topic.project]\nsubject = 1\n", encoding="utf-8")

    async def conversation(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        described = {tool.name: tool.description for tool in tools}
        answer = read(await client.call_tool("learn", {"topic": "project"}))
        path.write_text(CONFIG, encoding="utf-8")
        return client.instructions, described, answer, len((await client.list_tools()).tools)

    instructions, described, answer, later = talk(conversation, start_process(cwd=workspace))
    assert instructions.startswith("The knowledge base cannot be read. Tell the user the reason: ")
    assert set(described) == {"learn"}
    assert answer[1]
    for text in (instructions, *described.values(), answer[0]):
        assert str(path) in text
        assert "kb.topic.project.subject: " in text
    assert later == 2


def test_without_topics_search_says_so(tmp_path: Path) -> None:
    text, is_error = call(tmp_path, "search_knowledge", {"question": "anything"})
    assert is_error
    assert text.startswith(f"{tmp_path}: there is no knowledge base here: ")


NAMES = {
    "references": [
        "reference_topic_create",
        "reference_topic_search",
        "reference_topic_list",
        "reference_search",
    ],
    "capture": ["emit_knowledge"],
}
READING = {
    *("learn", "search_knowledge", "reference_search"),
    *("reference_topic_search", "reference_topic_list"),
}


async def list_names(client: Client) -> list[tuple[str, bool | None]]:
    tools = (await client.list_tools()).tools
    return [(t.name, t.annotations.read_only_hint if t.annotations else None) for t in tools]


@pytest.mark.parametrize("added", [*NAMES, "references,capture", ""])
def test_the_tools_of_others_are_served_where_they_are_asked_for(
    workspace: Path, added: str
) -> None:
    options = ["--with", added] if added else []
    make_repo(workspace)
    names = ["learn", "search_knowledge"]
    for name in ("capture", "references"):
        names += NAMES[name] if name in added.split(",") else []
    listed = talk(list_names, start_process(*options, cwd=workspace))
    assert listed == [(name, name in READING) for name in names]


def test_a_name_that_nothing_has_is_an_error(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "mcp", "--with", "capture,nope"])
    assert result.exit_code == 2
    assert "'nope' is not one of capture, proposals, references" in result.stderr


@pytest.mark.parametrize(
    ("subjects", "names"), [(2, ["learn"]), (70, ["learn", "search_knowledge"])]
)
def test_the_search_is_served_where_it_helps(
    tmp_path: Path, subjects: int, names: list[str]
) -> None:
    (tmp_path / "kb").mkdir()
    for number in range(subjects):
        (tmp_path / "kb" / f"{number}.md").write_text(f"Text {number}.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.t]\nsubjects = "kb"\n')
    assert [name for name, _ in talk(list_names, tmp_path)] == names
    assert talk(read_instructions, tmp_path).count("search_knowledge") == len(names) - 1
    assert call(tmp_path, "search_knowledge", {"question": "text 1"})[1] is False


def test_tools_of_five_topics_are_short(tmp_path: Path) -> None:
    tables = ["[kb]\nsearch = true\n"]
    for number in range(5):
        (tmp_path / f"kb{number}").mkdir()
        (tmp_path / f"kb{number}" / "a.md").write_text("A.\n")
        title = f"The handbook of department {number}"
        tables.append(f'[kb.topic.department-{number}]\ntitle = "{title}"\nsubjects = "kb{number}"')
    (tmp_path / "llm-kb.toml").write_text("\n".join(tables))
    listed = Server(partial(KnowledgeBase.discover, tmp_path)).answer(
        {"id": 1, "method": "tools/list"}, lambda *_: None
    )
    texts = [
        text
        for tool in listed["tools"]
        for text in (
            tool["name"],
            tool["description"],
            json.dumps(tool["inputSchema"], separators=(",", ":"), ensure_ascii=False),
        )
    ]
    assert sum(map(len, texts)) <= 2_200


def test_entries_are_written(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")

    async def write(client: Client) -> list[tuple[str, bool]]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("emit_knowledge", {"entry_type": "convention", "scope": "gone/", "rule": "r"}),
            ("emit_knowledge", {"entry_type": "convention", "scope": "*", "rule": "r"}),
        ]
        return [read(await client.call_tool(name, arguments)) for name, arguments in calls]

    refused, written = talk(write, repo.path, added=["emit_knowledge"])
    assert (refused[1], "does not exist at" in refused[0]) == (True, True)
    assert written == ("recorded convention conv-1 (*): r", False)
    assert repo.note_json()["conventions"][0]["decided_in"] == repo.head


def test_emitting_is_offered_as_configured(workspace: Path, user_dir: Path) -> None:
    (user_dir / "kb.toml").write_text("[kb.capture]\noffer = true\n")
    assert [name for name, _ in talk(list_names, workspace)] == ["learn", "search_knowledge"]
    make_repo(workspace)
    assert [name for name, _ in talk(list_names, workspace)][2:] == ["emit_knowledge"]
