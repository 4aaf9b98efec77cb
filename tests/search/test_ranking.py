"""What ranks count, and spreading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.reranking import reciprocal_rank, score_place, spread


def test_what_ranks_and_places_count() -> None:
    assert [reciprocal_rank(rank) for rank in (1, 2, 22)] == [1, 21 / 22, 0.5]
    assert [score_place(place) for place in (1, 2, 62)] == [1, 61 / 62, 0.5]


def test_one_group_does_not_fill_the_results() -> None:
    items = ["a1", "a2", "a3", "b1", "a4", "c1"]

    assert spread(items, lambda item: item[0], per_group=2, limit=4) == ["a1", "a2", "b1", "c1"]
    assert spread(items, lambda item: item[0], per_group=2, limit=6) == [
        *("a1", "a2", "b1", "c1"),
        *("a3", "a4"),
    ]


@given(st.lists(st.sampled_from("aab")), st.integers(1, 3), st.integers(0, 9))
def test_spreading_loses_nothing(items: list[str], per_group: int, limit: int) -> None:
    numbered = list(enumerate(items))
    chosen = spread(numbered, lambda item: item[1], per_group=per_group, limit=limit)

    assert len(chosen) == min(limit, len(items))
    assert len(set(chosen)) == len(chosen)
