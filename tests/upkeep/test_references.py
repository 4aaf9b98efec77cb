"""References to subjects in texts."""

from __future__ import annotations

import pytest

from llm_kb.upkeep.links import find_references


@pytest.mark.parametrize(
    ("text", "references"),
    [
        pytest.param('learn("skills")', [("skills", "")], id="topic"),
        pytest.param("learn('skills', 'a/*')", [("skills", "a/*")], id="subject"),
        pytest.param(
            'learn(topic: "skills", subjects: ["a", "b"])',
            [("skills", "a"), ("skills", "b")],
            id="named",
        ),
        pytest.param(
            "learn(\n  topic='other one',\n  subjects=[\n'a'])", [("other one", "a")], id="lines"
        ),
        pytest.param('learn("skills", [])', [("skills", "")], id="no subject"),
        pytest.param('relearn("a") learn(a)', [], id="something else"),
        pytest.param('learn("skills", "a#part")', [("skills", "a")], id="part"),
    ],
)
def test_references(text: str, references: list[tuple[str, str]]) -> None:
    found = [reference for reference, _ in find_references(text)]
    assert found == references
