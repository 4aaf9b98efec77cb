"""Entries and their ids."""

from __future__ import annotations

import pytest

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry, KnowledgeStore


def test_entries_are_kept_kind_by_kind() -> None:
    anti = Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"})
    first = Entry(CONVENTION, {"id": "conv-2", "scope": "*", "rule": "r"})
    second = Entry(CONVENTION, {"id": "conv-1", "scope": "*", "rule": "q"})
    store = KnowledgeStore(extra={"x": 1}).with_entries([anti, first, second])
    assert store == KnowledgeStore(entries=(first, second, anti), extra={"x": 1})


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        pytest.param([], "conv-1", id="first"),
        pytest.param(["conv-1", "conv-9"], "conv-10", id="after the highest"),
        pytest.param(["errors", "conv-x", "conv-٣", "bound-8"], "conv-1", id="other ids"),
        pytest.param(["conv-" + "9" * 5000], "conv-1", id="absurd number"),
    ],
)
def test_the_next_id_is_above_all_others(ids: list[str], expected: str) -> None:
    entries = tuple(Entry(CONVENTION, {"id": id_, "scope": "*", "rule": "r"}) for id_ in ids)
    assert KnowledgeStore(entries=entries).next_id(CONVENTION) == expected
