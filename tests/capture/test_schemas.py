"""The JSON Schemas agree with what is read and written."""

from __future__ import annotations

from typing import Any

from llm_kb.capture.annotation import CATEGORIES
from llm_kb.capture.entries import KINDS, STABILITIES
from llm_kb.host.capture_tools import SCHEMAS


def schema(name: str) -> dict[str, Any]:
    return SCHEMAS[name]


def test_the_store() -> None:
    found = schema("knowledge")
    assert list(found["properties"]) == ["schema", *(kind.key for kind in KINDS)]
    for kind in KINDS:
        item = found["properties"][kind.key]["items"]
        assert tuple(item["properties"]) == kind.order
        assert set(item["required"]) == set(kind.order) - {kind.provenance}
        assert "additionalProperties" not in item  # unknown keys are kept
    stability = found["properties"]["conventions"]["items"]["properties"]["stability"]
    assert stability["enum"] == list(STABILITIES)


def test_the_live_input() -> None:
    found = schema("live-input")
    assert found["required"] == ["commit", "summary"]
    assert found["additionalProperties"] is False
    entry = found["properties"]["knowledge"]["items"]
    assert entry["properties"]["type"]["enum"] == [kind.name for kind in KINDS]
    assert set(entry["properties"]) == {"type"}.union(*(kind.settable for kind in KINDS))
    assert entry["required"] == ["type"]
    wisdom = found["properties"]["wisdom"]["items"]
    assert wisdom["properties"]["category"]["enum"] == list(CATEGORIES)
    assert wisdom["required"] == ["category", "content"]


def test_the_annotation() -> None:
    found = schema("annotation")
    assert found["properties"]["schema"] == {"const": "chronicle/v3"}
    assert found["required"] == ["schema", "commit", "timestamp", "summary", "provenance"]
