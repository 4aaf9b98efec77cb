"""Data in one long line: searched if it describes an API or other data, else named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm

ROWS = [{"summary": f"Read walrus number {number}"} for number in range(900)]

DATA = {
    "x.json": json.dumps(ROWS),
    "x.xml": "<a>" + "".join(f"<b>walrus {number}</b>" for number in range(2_000)) + "</a>",
    "x.yaml": json.dumps(ROWS),
}

DESCRIPTIONS = {
    "openapi.json": json.dumps({"paths": ROWS, "openapi": "3.1.0"}),
    "api.yaml": json.dumps({"swagger": "2.0", "paths": ROWS}),
    "a.json": json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "a": ROWS}),
    "a.xml": f"<xs:schema>{DATA['x.xml']}</xs:schema>",
}


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.kb]\nsubjects = "kb"\nintroduction = "x"\n')
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/page.md").write_text("# Page\n\nseal\n")
    return tmp_path / "kb"


@pytest.mark.parametrize("name", DATA)
def test_data_is_named_below_an_empty_answer_and_by_check(
    kb: Path, run_llm: RunLlm, name: str
) -> None:
    (kb / name).write_text(DATA[name])
    for _ in range(2):
        result = run_llm(["kb", "search", "walrus"])
        assert result.exit_code == 1
        assert f"not searched: kb/{name} (data in one long line)" in result.stderr
        assert name not in run_llm(["kb", "search", "seal"]).output
        (kb / name).touch()
    assert f"{name}: note: no search reads it: it is " in run_llm(["kb", "check"]).stdout


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_is_searched(kb: Path, run_llm: RunLlm, name: str) -> None:
    (kb / name).write_text(DESCRIPTIONS[name])
    assert name in run_llm(["kb", "search", "walrus 7", "--json"]).stdout
    assert "no search reads it" not in run_llm(["kb", "check"]).stdout
