"""Fusing, spreading and reranking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.ranking import fuse, spread
from llm_kb.references.reranking import Candidate, rerank

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


def rank(*candidates: Candidate, words: tuple[str, ...] = ("parse", "arguments")) -> list[str]:
    scores = rerank(candidates, words, {"parse": 5, "arguments": 50}, 1000)
    order = sorted(range(len(candidates)), key=lambda at: -scores[at])
    return [candidates[at].path for at in order]


def make(path: str, text: str = "", heading: str = "", score: float = 1.0) -> Candidate:
    return Candidate(score, path, heading, heading, text)


def test_covering_more_of_the_question_counts() -> None:
    assert rank(make("half", "arguments arguments"), make("whole", "arguments to parse")) == [
        "whole",
        "half",
    ]


def test_words_standing_together_count() -> None:
    apart, together = "parse the given arguments", "he parses arguments"

    assert rank(make("apart", apart), make("together", together)) == ["together", "apart"]


def test_a_heading_about_the_question_and_little_else_counts() -> None:
    long, short = "Parsing and much more of other things", "Parsing"

    assert rank(make("long", "", long), make("short", "", short)) == ["short", "long"]


def test_a_much_better_score_stands() -> None:
    good = make("good", "parse", score=10.0)

    assert rank(make("fair", "parse arguments", "Parse arguments"), good) == ["good", "fair"]


def test_nothing_to_rank_or_to_rank_by() -> None:
    assert rerank([], ["a"], {}, 0) == []
    assert rerank([make("a", "text")], [], {}, 0) == [1.4]
