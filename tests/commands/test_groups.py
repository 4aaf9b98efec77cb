"""The groups `kb`, `kb knowledge` and `kb references`: their default, and what they suggest."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from llm_kb import plugin
from tests.conftest import RunLlm

GROUPS = [["kb"], ["kb", "knowledge"], ["kb", "references"]]


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_without_a_subcommand_a_group_lists(run_llm: RunLlm, group: list[str]) -> None:
    alone, listed = run_llm(group), run_llm([*group, "list"])
    assert (alone.exit_code, alone.output) == (listed.exit_code, listed.output)


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_options_of_a_group_are_those_of_list(run_llm: RunLlm, group: list[str]) -> None:
    alone, listed = run_llm([*group, "--json"]), run_llm([*group, "list", "--json"])
    assert (alone.exit_code, alone.output) == (listed.exit_code, listed.output)


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["kb", "serach", "x"], "'cli kb search'"),
        (["kb", "serach"], "'cli kb search'"),
        (["kb", "chekc", "--json"], "'cli kb check'"),
        (["kb", "references", "refersh", "x"], "'cli kb references refresh'"),
        (["kb", "knowledge", "anotate", "x"], "'cli kb knowledge annotate'"),
    ],
    ids=" ".join,
)
def test_a_mistyped_command_is_suggested(
    run_llm: RunLlm, arguments: list[str], suggested: str
) -> None:
    result = run_llm(arguments)
    assert result.exit_code != 0
    assert re.search(f"[Dd]id you mean (the command )?{suggested}", result.stderr)
    assert "unexpected" not in result.stderr


def test_a_command_like_no_other_is_refused_in_words(run_llm: RunLlm) -> None:
    assert run_llm(["kb", "knowledge", "frob"]).stderr.endswith(
        "\nError: 'frob' is not a command; 'cli kb knowledge --help' lists them\n"
    )


def test_a_topic_is_no_mistyped_command(run_llm: RunLlm, tmp_path: Path) -> None:
    """Where `list` knows the first argument, nothing is suggested, not even in an error."""
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.serach]\nsubjects = "kb"\n', encoding="utf-8")
    assert run_llm(["kb", "serach"]).exit_code == 0
    (tmp_path / "llm-kb.toml").write_text("[kb]\nnonsense = 1\n", encoding="utf-8")
    assert "Did you mean the command" not in run_llm(["kb", "serach"]).stderr


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_the_help_of_a_group_has_whole_sentences_in_80_columns(
    run_llm: RunLlm, group: list[str]
) -> None:
    lines = run_llm([*group, "--help"]).output.splitlines()
    headings = [number for number, line in enumerate(lines) if re.match(r"[A-Z].*:$", line)]
    members = [line for line in lines[headings[1] :] if line.startswith(" ")]
    assert members
    assert not [line for line in members if line.endswith("...")]
    assert not [line for line in members if line.startswith("    ")]


def test_every_command_is_in_one_section_of_the_help(run_llm: RunLlm) -> None:
    members = [*chain(*plugin.COMMANDS.values())]
    assert sorted(chain(*plugin.SECTIONS.values())) == sorted(members)
    shown = run_llm(["kb", "--help"]).output
    assert [shown.index(f"\n{heading}:\n") for heading in plugin.SECTIONS] == sorted(
        shown.index(f"\n{heading}:\n") for heading in plugin.SECTIONS
    )
    assert re.search(r"(?s)\nWrite:\n  add .*\n  preload .*\n\nFetch and capture:\n", shown)
