"""Tools as `llm tools` shows them, and the check of a call's arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.host.request import name_tools
from llm_kb.knowledge_base.tool_text import (
    ToolText,
    integer,
    object_schema,
    read_arguments,
    string,
    strings,
)
from tests.conftest import RunLlm
from tests.git_templates import copy_empty_repository

DEEP: list[object] = []
for _ in range(5_000):
    DEEP = [DEEP]

TOOL = ToolText(
    "find",
    "Find things.",
    object_schema(
        ["name"],
        name=string("What to find."),
        tags=strings("Words."),
        most=integer("How many."),
        deep={"type": "boolean", "description": "Also below."},
        places={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"b": integer("B."), "c": strings("C.")},
                "required": [],
            },
            "description": "Where.",
        },
    ),
)


def test_llm_tools_shows_the_arguments_of_a_model(run_llm: RunLlm, tmp_path: Path) -> None:
    copy_empty_repository(tmp_path)
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')
    shown = run_llm(["tools", "list"]).stdout + run_llm(["tools", "list", "References"]).stdout
    ours = [line.strip() for line in shown.splitlines() if "(plugin: kb)" in line]
    names = [line.partition("(")[0] for line in ours]
    assert sorted(names) == sorted(name_tools() - {"search_knowledge", "propose_subject"})
    assert "learn(topic: str, subjects: list[str] | None = None) (plugin: kb)" in ours
    assert "  reference_search(question: str, topic: str | None = None, role: str | None" in shown


def test_arguments_with_a_value_are_returned() -> None:
    given = {"name": "a", "tags": ["x"], "most": 0, "deep": False}
    assert read_arguments(TOOL, given) == given


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}, id="list as JSON"),
        pytest.param({"tags": "docs/"}, {"tags": ["docs/"]}, id="only item"),
        pytest.param({"tags": "a, b,c,"}, {"tags": ["a", "b", "c"]}, id="commas"),
        pytest.param({"tags": 3}, {"tags": ["3"]}, id="number for a list"),
        pytest.param({"tags": ["x", 3, None, " "]}, {"tags": ["x", "3"]}, id="odd items"),
        pytest.param({"tag": "a"}, {"tags": ["a"]}, id="singular"),
        pytest.param({"places": '{"b": 1}'}, {"places": [{"b": 1}]}, id="object as JSON"),
        pytest.param({"places": {"b": "1"}}, {"places": [{"b": 1}]}, id="only object"),
        pytest.param(
            {"places": [{"b": 2.0, "c": "x,y", "d": 4}, {"b": None, "c": []}]},
            {"places": [{"b": 2, "c": ["x", "y"]}, {}]},
            id="fields of objects",
        ),
        pytest.param({"places": ["x", {"b": "y"}]}, {"places": ["x", {"b": "y"}]}, id="left"),
        pytest.param({"most": "12"}, {"most": 12}, id="number as text"),
        pytest.param({"most": 3.0}, {"most": 3}, id="whole float"),
        pytest.param({"deep": "True"}, {"deep": True}, id="flag as text"),
        pytest.param({"most": "", "deep": None, "tags": [], "places": "[]"}, {}, id="filled in"),
        pytest.param({"self": 1, "tool": 2, "x" * 9999: DEEP}, {}, id="unknown"),
    ],
)
def test_what_models_write_is_understood(
    written: dict[str, object], meant: dict[str, object]
) -> None:
    assert read_arguments(TOOL, {"name": 7, **written}) == {"name": "7", **meant}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({}, "name: missing", id="missing"),
        pytest.param({"name": None}, "name: missing", id="null"),
        pytest.param({"name": ""}, "name: missing", id="empty"),
        pytest.param({"name": True}, "name: found true; allowed: a string", id="flag"),
        pytest.param(
            {"name": "a", "places": 3},
            "places: found the number 3; allowed: a list",
            id="not a list",
        ),
        pytest.param(
            {"name": "a", "most": True},
            "most: found true; allowed: a whole number, 0 or more",
            id="bool",
        ),
        pytest.param(
            {"name": "a", "deep": "no"}, "deep: found 'no'; allowed: true or false", id="text"
        ),
        pytest.param(
            {"name": "a", "places": [{"path": "a"}] * 10_001},
            "places: found 10,001 objects; allowed: at most 10,000",
            id="too many objects",
        ),
        pytest.param(
            {"name": {"a": "b"}, "most": "x" * 500},
            "name: found a table; allowed: a string; most: found '" + "x" * 56 + "...;"
            " allowed: a whole number, 0 or more",
            id="two problems, one of them long",
        ),
    ],
)
def test_wrong_arguments_are_all_named(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(KbError) as raised:
        read_arguments(TOOL, arguments)
    allowed = "; its arguments are name (required), tags, most, deep, places"
    assert str(raised.value) == f"find: {problem}{allowed}"
