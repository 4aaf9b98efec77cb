"""The kinds of topics."""

from __future__ import annotations

from llm_kb.knowledge_base import kinds


def test_the_ids_of_kinds_do_not_meet() -> None:
    given = kinds.given_kinds()
    ids = [kind.ids for kind in given]
    assert len(set(ids)) == len(ids) == len(kinds.find_kinds()) - 1
    for kind in given:
        assert [other.ids for other in given if other.covers(kind.ids)] == [kind.ids]
