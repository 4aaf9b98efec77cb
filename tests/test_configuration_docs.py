"""The configuration reference and the parser have the same keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_kb.config.layers import TOPIC, LayerSource, find_tables, list_defaults, parse_layer
from llm_kb.config.settings import Layer, Origin
from llm_kb.files.fields import decode_toml

TEXT = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by their key."""
    body = TEXT.partition(f"## `{heading}`\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", body, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in lines}


def heading(table: str) -> str:
    return f"[{table}.<id>]" if table == TOPIC else f"[{table}]"


@pytest.mark.parametrize("table", find_tables())
def test_every_key_is_documented_and_no_other(table: str) -> None:
    assert rows(heading(table)).keys() == find_tables()[table].keys()


@pytest.mark.parametrize("table", find_tables())
def test_documented_defaults_are_the_real_ones(table: str) -> None:
    defaults = list_defaults()
    for name, (_type, default, _meaning) in rows(heading(table)).items():
        if (value := defaults.get(f"{table}.{name}")) is not None:
            value = list(value) if isinstance(value, tuple) else value
            assert decode_toml(f"value = {default.strip('`')}") == {"value": value}


def test_what_only_the_user_may_set_is_marked() -> None:
    assert {name for name, key in find_tables()["kb"].items() if key.user_only} == {
        name for name, cells in rows("[kb]").items() if "*User layer only.*" in cells[2]
    }
    references = find_tables()["kb.references"].items()
    assert [name for name, key in references if not key.user_only] == []
    assert not any(key.user_only for key in find_tables()[TOPIC].values())


def test_every_example_is_a_valid_layer() -> None:
    examples = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    source = LayerSource(origin=Origin(layer=Layer.USER), base=Path("/u"))
    keys = [parse_layer(decode_toml(example), source).keys() for example in examples]
    assert [len(key) for key in keys] == [8, 9, 1, 1]
