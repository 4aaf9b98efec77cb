"""What the skill of capture says is what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.capture.annotation import CATEGORIES, parse_live_input
from llm_kb.capture.entries import KINDS, Kind

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "llm_kb" / "capture" / "skills" / "knowledge-capture.md").read_text(
    encoding="utf-8"
)


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
