"""Fusing and spreading."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.ranking import fuse, score_place, spread

RANKINGS = st.lists(st.integers(0, 30), unique=True, max_size=20)


def test_what_both_legs_find_wins() -> None:
    scores = {"a": 2.0, "b": 1.5, "c": 1.0}

    assert fuse(scores, ["b", "d"], weight=1.0) == ["b", "a", "d", "c"]
    # b: 1.5 + 1; d: the least there is, 1.0, + 11 / 12.


def test_a_leg_that_did_not_run_changes_nothing() -> None:
    assert fuse({"a": 2.0, "b": 2.0, "c": -1.0}, [], weight=1.0) == ["a", "b", "c"]
    assert fuse({}, ["b", "a"], weight=1.0) == ["b", "a"]


@given(st.dictionaries(st.integers(0, 30), st.floats(-9, 9)), RANKINGS)
def test_fusing_keeps_what_both_legs_agree_on(scores: dict[int, float], ranking: list[int]) -> None:
    fused = fuse(scores, ranking, weight=1.5)

    assert sorted(fused) == sorted({*scores, *ranking})
    for better, worse in pairwise(ranking):
        if scores.get(better, -9) > scores.get(worse, -9):
            assert fused.index(better) < fused.index(worse)


def test_a_clear_score_stands() -> None:
    assert fuse({"a": 2.0, "b": 0.0}, ["b"], weight=1.5) == ["a", "b"]


def test_the_score_of_a_place() -> None:
    assert score_place(1) == 1
    assert score_place(62) == 0.5


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
