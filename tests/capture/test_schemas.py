"""The JSON Schema of an annotation agrees with what is read."""

from __future__ import annotations

from llm_kb.capture.annotation import CATEGORIES
from llm_kb.capture.entries import KINDS
from llm_kb.host.capture_tools import LIVE_INPUT


def test_the_live_input() -> None:
    found = LIVE_INPUT
    assert found["required"] == ["commit", "summary"]
    assert found["additionalProperties"] is False
    entry = found["properties"]["knowledge"]["items"]
    assert entry["properties"]["type"]["enum"] == [kind.name for kind in KINDS]
    assert set(entry["properties"]) == {"type"}.union(*(kind.settable for kind in KINDS))
    assert entry["required"] == ["type"]
    wisdom = found["properties"]["wisdom"]["items"]
    assert wisdom["properties"]["category"]["enum"] == list(CATEGORIES)
    assert wisdom["required"] == ["category", "content"]
