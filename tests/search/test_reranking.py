"""What BM25 does not see decides between chunks that it finds about as good."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.reranking import (
    SCORE_BESIDE_DENSE,
    WEIGHTS,
    Candidate,
    Features,
    find_features,
    rerank,
)

WORDS = ("parse", "arguments")
FREQUENCIES = {"parse": 10, "arguments": 10}


def make(
    name: str,
    text: str = "",
    heading: str = "",
    *,
    title: str = "",
    score: float = 1.0,
    line: int = 1,
    rank: int | None = None,
) -> Candidate:
    """Make a candidate of ten lines; a name with a slash says which file it is of."""
    return Candidate(
        score=score,
        path=name.partition("/")[0],
        title=title or heading,
        heading=heading,
        text=text or name,
        first_line=line,
        last_line=line + 9,
        rank=rank,
    )


def best_of(*candidates: Candidate) -> str:
    scores = rerank(candidates, WORDS, FREQUENCIES, 1000)
    return candidates[scores.index(max(scores))].text


def describe(*candidates: Candidate) -> Features:
    """Return the features of the first candidate."""
    return find_features(candidates, WORDS, FREQUENCIES, 1000)[0]


NOTHING = Features(*[0.0] * len(Features._fields))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([make("a", "x")], {}),
        ([make("a", "x", "About")], {"opens": 1}),
        ([make("a", "x", "Parsing and more")], {"opens": 1, "focus": 1 / 3} | {
            "adjoining": 0.5, "file_share": 0.5}),
        ([make("a", "He parsed it")], {"lead": 0.5, "adjoining": 0.5, "file_share": 0.5}),
        ([make("a", "." * 400 + " parse")], {"adjoining": 0.5, "file_share": 0.5}),
        ([make("a", "." * 400 + " arguments to parse")], {
            "near": 1, "adjoining": 1, "file_share": 1}),
        ([make("a", "." * 400 + " parse arguments")], {
            "near": 1, "beside": 1, "adjoining": 1, "file_share": 1}),
        ([make("parser.py", "x")], {"path": 0.5, "adjoining": 0.5, "file_share": 0.5}),
        ([make("a", "x", title="T"), make("a", "y", title="T", score=2.0, line=40)], {
            "section": 1, "file": 1}),
        ([make("a", "x", title="T"), make("a", "y", title="T > U", score=2.0, line=40)], {
            "below": 1, "file": 1}),
        ([make("a", "x", title="T"), make("a", "y", title="Two", score=2.0, line=40)], {"file": 1}),
        ([make("a", "x"), make("a", "parse", title="T", score=0.5, line=12)], {
            "adjoining": 0.5, "file": 1, "file_share": 0.5}),
        ([make("a", "x", line=40), make("a", "parse", title="T", score=0.5)], {
            "file": 1, "file_share": 0.5}),
        ([make("a", "x"), make("b", "parse", score=2.0)], {"file": 0.5}),
        ([make("a", "x", rank=1)], {"dense": 1, "file_dense": 1}),
        ([make("a", "x"), make("a", "y", title="T", rank=22, line=40), make("b", "z")], {
            "file": 1, "file_dense": 0.5}),
    ],
    ids=[
        *("nothing", "opens", "focus", "lead", "late", "near", "beside", "path", "section"),
        *("below", "another title", "adjoining", "further on", "another file"),
        *("nearest", "its file's nearest"),
    ],
)  # fmt: skip
def test_features(candidates: list[Candidate], expected: dict[str, float]) -> None:
    alone = {"file": 1.0} if len(candidates) == 1 else {}

    assert describe(*candidates) == pytest.approx(NOTHING._replace(**alone, **expected))


def test_rare_words_are_a_greater_share() -> None:
    features = find_features([make("a", "parse")], WORDS, {"parse": 1, "arguments": 900}, 1000)

    assert features[0].lead > 0.9


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (make("a", "it parses arguments"), make("b", "parse the given arguments")),
        (make("a", "x", "Parsing"), make("b", "y", "Parsing and much more of other things")),
        (make("parse.md", "x"), make("b", "y")),
        (make("a", "good", score=10.0), make("b", "fair arguments to parse")),
        (make("a", "x", rank=2), make("b", "y", rank=9)),
        (make("a", "x", score=0.0, rank=1), make("b", "y", score=0.0, rank=2)),
        (make("a", "good", score=10.0), make("b", "y", rank=1)),
    ],
    ids=["beside", "focus", "path", "a much better score stands", "nearer", "no words", "clearer"],
)
def test_the_better_comes_first(better: Candidate, worse: Candidate) -> None:
    assert best_of(worse, better) == better.text


def test_nothing_to_rank_or_to_rank_by() -> None:
    assert rerank([], ["a"], {}, 0) == []
    assert rerank([make("a", "text")], [], {}, 0) == [WEIGHTS.file]


@pytest.mark.parametrize(("rank", "expected"), [(None, 1.0), (1, SCORE_BESIDE_DENSE)])
def test_a_score_counts_less_beside_a_dense_leg(rank: int | None, expected: float) -> None:
    half, whole, _ = rerank(
        [make("a", "x", score=0.5), make("b", "y"), make("c", "z", rank=rank)], [], {}, 0
    )

    assert whole - half == pytest.approx(expected * math.log(2) + WEIGHTS.file / 2)


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        score=st.floats(0, 100),
        path=st.sampled_from(["a", "parse/b"]),
        title=st.sampled_from(["", "T", "T > U", "T.u"]),
        heading=st.sampled_from(["", "U", "Parse arguments"]),
        text=st.text() | st.just("parse arguments"),
        first_line=st.integers(1, 50),
        last_line=st.integers(1, 50),
        rank=st.none() | st.integers(1, 60),
    ),
    unique=True,
)


@given(CANDIDATES, st.lists(st.sampled_from(["parse", "arguments", "b", "\U0001f600"])))
def test_features_are_between_0_and_1(candidates: list[Candidate], words: list[str]) -> None:
    for features in find_features(candidates, words, {"parse": 3}, 10):
        assert all(0 <= feature <= 1 + 1e-9 for feature in features)
