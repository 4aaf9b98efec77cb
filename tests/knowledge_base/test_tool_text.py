"""Tools as `llm tools` shows them, and the check of a call's arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.knowledge_base.tool_text import (
    ArgumentsError,
    ToolText,
    check_arguments,
    integer,
    object_schema,
    string,
    strings,
)
from tests.conftest import RunLlm
from tests.git_templates import copy_empty_repository

TOOL = ToolText(
    "find",
    "Find things.",
    object_schema(
        ["name"],
        name=string("What to find."),
        tags=strings("Words."),
        most=integer("How many."),
        deep={"type": ["boolean", "null"], "description": "Also below."},
    ),
)


def test_llm_tools_shows_the_arguments_of_a_model(run_llm: RunLlm, tmp_path: Path) -> None:
    copy_empty_repository(tmp_path)
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')
    shown = run_llm(["tools", "list"]).stdout + run_llm(["tools", "list", "References"]).stdout
    ours = [line.strip() for line in shown.splitlines() if "(plugin: kb)" in line]
    assert ours == [
        "emit_knowledge(entry_type: str, scope: str | None = None, rule: str | None = None,"
        " stability: str | None = None, module: str | None = None, owns: str | None = None,"
        " boundary: str | None = None, pattern: str | None = None, instead: str | None = None)"
        " (plugin: kb)",
        "learn(topic: str, subjects: str | list[str] | None = None) -> str (plugin: kb)",
        "References(ghost: str = 'llm', model: str | None = None) (plugin: kb)",
    ]
    assert (
        "  reference_search(question: str, topic: str | None = None, role: str | None = None,"
        " paths: list[str] | None = None, tags: list[str] | None = None)\n"
    ) in shown


def test_arguments_with_a_value_are_returned() -> None:
    given = {"name": "a", "tags": ["x", 3], "most": None, "deep": False}
    assert check_arguments(TOOL, given) == {"name": "a", "tags": ["x", 3], "deep": False}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('["a", {"b": 1}]', ["a", {"b": 1}]),
        ('{"b": 1}', [{"b": 1}]),
        ({"b": 1}, [{"b": 1}]),
        ("docs/", ["docs/"]),
    ],
)
def test_a_list_may_be_written_as_json_or_as_its_one_item(
    written: object, meant: list[object]
) -> None:
    assert check_arguments(TOOL, {"name": "a", "tags": written})["tags"] == meant


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({}, "name: missing", id="missing"),
        pytest.param({"name": None}, "name: missing", id="null"),
        pytest.param({"name": 3}, "name: found the number 3; allowed: a string", id="number"),
        pytest.param(
            {"name": "a", "tags": 3}, "tags: found the number 3; allowed: a list", id="not a list"
        ),
        pytest.param(
            {"name": "a", "most": True},
            "most: found true; allowed: a whole number, 0 or more",
            id="bool",
        ),
        pytest.param(
            {"name": "a", "deep": "no"}, "deep: found 'no'; allowed: true or false", id="text"
        ),
        pytest.param({"name": "a", "nmae": "b"}, "nmae: unknown argument", id="unknown"),
        pytest.param(
            {"name": {"a": "b"}, "x" * 500: 1},
            f"'{'x' * 56}...: unknown argument; name: found a table; allowed: a string",
            id="two problems, one of them long",
        ),
    ],
)
def test_wrong_arguments_are_all_named(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(ArgumentsError) as raised:
        check_arguments(TOOL, arguments)
    allowed = "; its arguments are name (required), tags, most, deep"
    assert str(raised.value) == f"find: {problem}{allowed}"
