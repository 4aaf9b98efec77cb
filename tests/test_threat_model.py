"""The map in docs/security.md has a row for every way in that the code has."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import llm_kb
from llm_kb.addons import find_tools
from llm_kb.config.layers import find_tables
from llm_kb.host.mcp.tools import TOOLS
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.calls import ALL
from llm_kb.references.sources.records import TYPES
from llm_kb.texts.formats import list_formats
from tests.attacks.test_writing import COMMANDS
from tests.console import PROJECT, iter_commands

TEXT = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
SOURCE = "\n".join(path.read_text() for path in Path(llm_kb.__file__).parent.rglob("*.py"))


def read_rows() -> dict[str, str]:
    """Return the tests of each row of the map, by the way in."""
    table = TEXT.partition("\n## The map\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows[1:] if not row[0].startswith("**")}


ROWS = read_rows()


def find_named(start: str = "") -> set[str]:
    """Return what the ways in that begin so name."""
    ways = (way for way in ROWS if way.startswith(start))
    return {name for way in ways for name in re.findall(r"`([^`]+)`", way)}


def list_calls() -> set[str]:
    """Return every tool with its arguments."""
    kb = KnowledgeBase.discover()
    added = [text for each in find_tools().values() for text, _ in each.open(kb)]
    texts = (*(text for text, _ in TOOLS), *ALL, *added)
    return {f"{text.name}({', '.join(text.schema['properties'])})" for text in texts}


def list_sources() -> set[str]:
    """Return every type of source with its fields."""
    return {
        f"{name}({', '.join(each.name for each in fields(source))})"
        for name, source in TYPES.items()
    }


def list_variables() -> set[str]:
    """Return the variables of the environment that our code asks for."""
    asked = set(re.findall(r'environ\.get\("(\w+)"\)', SOURCE))
    return asked | set(re.findall(r'^VARIABLE = "(\w+)"', SOURCE, re.MULTILINE))


FOUND = {
    "keys": {f"{table}.{name}" for table, keys in find_tables().items() for name in keys},
    "tools": list_calls(),
    "sources": list_sources(),
    "converters": {each.converter for each in list_formats() if each.converter},
    "variables": list_variables(),
    "messages": set(re.findall(r'(?:method|message\["method"\]) == "([^"]+)"', SOURCE)),
}


@pytest.mark.parametrize("kind", FOUND)
def test_every_way_in_has_a_row(kind: str) -> None:
    assert len(FOUND[kind]) >= 3
    assert FOUND[kind] - find_named() == set()


def test_every_command_writes_somewhere_or_only_reads() -> None:
    names = {name.removeprefix("llm kb").strip() for name, _ in iter_commands(hidden=True)}
    names |= {"knowledge annotate", "knowledge schema"}  # for programs, in no help
    groups = {"", "knowledge", "references"}
    assert find_named("writes") | find_named("reads:") == names - groups
    assert find_named("writes") & find_named("reads:") == set()
    tried = {" ".join(arguments) for _, arguments in COMMANDS.values()}
    writers = find_named("writes in the workspace") - {"review"}  # see test_proposals.py
    assert {each for each in writers if not any(line.startswith(each) for line in tried)} == set()


def test_the_keys_of_a_row_are_those_that_the_code_treats_so() -> None:
    own = {
        f"{t}.{name}" for t, keys in find_tables().items() for name in keys if keys[name].user_only
    }
    assert find_named("yours alone") == own
    acting = {
        f"{t}.{name}" for t, keys in find_tables().items() for name in keys if keys[name].acts
    }
    assert find_named("counts once it is trusted") == acting
    lists = {
        f"{t}.{name}" for t, keys in find_tables().items() for name in keys if keys[name].is_list
    }
    assert lists - own - find_named("a place") == find_named("a list")


def test_every_row_names_a_test() -> None:
    """That these exist is tested with the other documents."""
    assert len(ROWS) > 30
    assert [way for way, test in ROWS.items() if "test_" not in test] == []
