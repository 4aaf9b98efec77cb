"""Fusing and spreading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.ranking import fuse, spread

RANKINGS = st.lists(st.integers(0, 30), unique=True, max_size=20)


def test_agreement_wins() -> None:
    fused = fuse([(1.0, ["a", "b", "c"]), (1.0, ["b", "d"])])

    assert list(fused) == ["b", "a", "d", "c"]
    assert fused["b"] == pytest.approx((1 / 62 + 1 / 61) / (2 / 61))


def test_first_in_every_ranking_scores_one() -> None:
    assert fuse([(1.0, ["a"]), (0.5, ["a", "b"])])["a"] == 1.0


@given(RANKINGS)
def test_a_leg_that_did_not_run_changes_nothing(ranking: list[int]) -> None:
    assert list(fuse([(1.0, ranking), (0.0, [])])) == ranking


@given(RANKINGS, RANKINGS)
def test_the_lighter_leg_alone_never_outranks_the_first(
    keyword: list[int], dense: list[int]
) -> None:
    fused = list(fuse([(1.0, keyword), (0.5, dense)]))

    assert set(fused) == {*keyword, *dense}
    if keyword and fused[0] != keyword[0]:
        assert fused[0] in keyword


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
