"""docs/capture.md documents every command and option."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from llm_kb.capture.annotation import CATEGORIES, parse_live_input
from llm_kb.capture.emission import EMIT_SCHEMA
from llm_kb.capture.entries import KINDS, STABILITIES, Kind
from tests.console import iter_commands

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
SKILL = (ROOT / "llm_kb" / "capture" / "skills" / "knowledge-capture.md").read_text(
    encoding="utf-8"
)

COMMANDS = {
    name.removeprefix("llm kb knowledge "): command
    for name, command in iter_commands()
    if name.startswith("llm kb knowledge ")
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_is_documented(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert f"`llm kb knowledge {name}`" in TEXT
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.name} has no help"
            for option in parameter.opts:
                assert f"`{option}" in TEXT, f"{option} of {name} is not documented"


@pytest.mark.parametrize("word", [*STABILITIES, *CATEGORIES])
def test_every_choice_is_documented(word: str) -> None:
    assert f"`{word}`" in TEXT


def test_every_argument_of_the_tool_is_documented() -> None:
    section = TEXT.split("## From a model\n")[1].split("\n## ")[0]
    arguments = EMIT_SCHEMA["properties"]
    assert isinstance(arguments, dict)
    names = [*arguments, *(kind.name for kind in KINDS)]
    assert [name for name in names if f"`{name}`" not in section] == []


def test_the_annotation_that_is_shown_is_valid() -> None:
    example = TEXT.split("```json\n")[1].split("```")[0]
    live = parse_live_input(example)
    assert (len(live.wisdom), len(live.knowledge)) == (1, 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_skill_names_each_type_with_its_fields(kind: Kind) -> None:
    row = next(line for line in SKILL.splitlines() if line.startswith(f"| `{kind.name}`"))
    for field in kind.settable:
        assert f"`{field}`" in row


def test_the_skill_shows_a_valid_annotation_and_the_knowledge_array() -> None:
    live = parse_live_input(SKILL.split("```json\n")[1].split("```")[0])
    assert (len(live.wisdom), len(live.knowledge)) == (1, 1)
    assert "include it in the `knowledge` array" in SKILL
    for name in ("commit", "summary", "wisdom", "knowledge", *CATEGORIES):
        assert name in SKILL
