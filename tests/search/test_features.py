"""What BM25 does not see decides between chunks that it finds about as good."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.features import Features, Question, find_features, measure_answer
from llm_kb.search.hits import Hit
from llm_kb.search.ranking import SCORE_BESIDE_DENSE, WEIGHTS, weigh

QUESTION = Question(
    ["pars", "argument"], [10, 10], 1000, ["how", "to", "parse", "the", "arguments"]
)


def make(
    name: str,
    text: str = "",
    heading: str = "",
    *,
    title: str = "",
    score: float = 1.0,
    line: int = 1,
    cosine: float | None = None,
) -> Hit:
    """Make a hit of ten lines; a name with a slash says which file it is of."""
    return Hit(
        topic="t",
        path=name.partition("/")[0],
        first_line=line,
        last_line=line + 9,
        title=title or heading,
        heading=heading,
        text=text or name,
        bm25=score,
        cosine=cosine,
    )


def best_of(*hits: Hit) -> str:
    scores = weigh(hits, QUESTION)
    return hits[scores.index(max(scores))].text


def describe(*hits: Hit) -> Features:
    """Return the features of the first hit."""
    return find_features(hits, QUESTION)[0]


NOTHING = Features(*[0.0] * len(Features._fields))


HALF = {"adjoining": 0.5, "file_share": 0.5}
WHOLE = {"adjoining": 1.0, "file_share": 1.0}


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([make("a", "x")], {}),
        ([make("a", "x", "About")], {"opens": 1}),
        ([make("a", "x", "Parsing and more")], {"opens": 1, "focus": 1 / 3, "page": 1 / 3, **HALF}),
        ([make("a", "He parsed it")], {"lead": 0.5, **HALF}),
        ([make("a", "." * 400 + " parse")], HALF),
        ([make("a", "." * 400 + " arguments to parse")], {"near": 1, **WHOLE}),
        ([make("a", "." * 400 + " parse arguments")], {"near": 1, "beside": 1, **WHOLE}),
        ([make("a", "how to, PARSE the: x")], {"lead": 0.5, "run": 0.8, **HALF}),
        ([make("parser.py", "x")], {"path": 0.5, **HALF}),
        ([make("a", "x"), make("a", "parse", title="T", score=0.5, line=12)], {
            "file": 1, **HALF}),
        ([make("a", "x", line=40), make("a", "parse", title="T", score=0.5)], {
            "file": 1, "file_share": 0.5}),
        ([make("a", "x"), make("b", "parse", score=2.0)], {"file": 0.5}),
        ([make("a", "x", cosine=0.5)], {"dense": 1, "file_dense": 1}),
        ([make("a", "x"), make("a", "y", cosine=0.5, line=40), make("b", cosine=0.6)], {
            "file": 1, "file_dense": 21 / 22}),
    ],
    ids=[
        *("nothing", "opens", "focus", "lead", "late", "near", "beside", "run", "path"),
        *("adjoining", "further on", "another file", "nearest", "its file's nearest"),
    ],
)  # fmt: skip
def test_features(hits: list[Hit], expected: dict[str, float]) -> None:
    alone = {"file": 1.0} if len(hits) == 1 else {}

    assert describe(*hits) == pytest.approx(NOTHING._replace(**alone, **expected))


def test_rare_words_are_a_greater_share() -> None:
    question = Question(["pars", "argument"], [1, 900], 1000)

    assert find_features([make("a", "parse")], question)[0].lead > 0.9


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        (make("a", "arguments to parse"), 1.0),
        (make("a", "x", title="Parsing"), 0.5),
        (make("a", "x", cosine=0.3), 0.3),
        (make("a", "parse", cosine=0.3), 0.5),
        (make("a", "x", cosine=-0.2), 0.0),
    ],
)
def test_how_well_a_hit_answers(hit: Hit, expected: float) -> None:
    assert measure_answer(hit, QUESTION) == expected


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (make("a", "it parses arguments"), make("b", "parse the given arguments")),
        (make("a", "x", "Parsing"), make("b", "y", "Parsing and much more of other things")),
        (make("parse.md", "x"), make("b", "y")),
        (make("a", "good", score=10.0), make("b", "fair arguments to parse")),
        (make("a", "x", cosine=0.5), make("b", "y", cosine=0.4)),
        (make("a", "x", score=0.0, cosine=0.5), make("b", "y", score=0.0, cosine=0.4)),
        (make("a", "good", score=10.0), make("b", "y", cosine=0.5)),
    ],
    ids=["beside", "focus", "path", "a much better score stands", "nearer", "no words", "clearer"],
)
def test_the_better_comes_first(better: Hit, worse: Hit) -> None:
    assert best_of(worse, better) == better.text


def test_nothing_to_rank_or_to_rank_by() -> None:
    assert weigh([], Question(["a"], [0], 0)) == []
    assert weigh([make("a", "text")], Question([], [], 0)) == [WEIGHTS.file]


@pytest.mark.parametrize(("cosine", "expected"), [(None, 1.0), (0.5, SCORE_BESIDE_DENSE)])
def test_a_score_counts_less_beside_a_dense_leg(cosine: float | None, expected: float) -> None:
    half, whole, _ = weigh(
        [make("a", "x", score=0.5), make("b", "y"), make("c", "z", cosine=cosine)],
        Question([], [], 0),
    )

    assert whole - half == pytest.approx(expected * math.log(2) + WEIGHTS.file / 2)


HITS = st.lists(
    st.builds(
        Hit,
        topic=st.just("t"),
        path=st.sampled_from(["a", "parse/b"]),
        first_line=st.integers(1, 50),
        last_line=st.integers(1, 50),
        title=st.sampled_from(["", "T", "T > U", "T.u"]),
        heading=st.sampled_from(["", "U", "Parse arguments"]),
        text=st.text() | st.just("parse arguments"),
        hash=st.just(b""),
        bm25=st.floats(0, 100),
        cosine=st.none() | st.floats(-1, 1),
        score=st.just(0.0),
        copies=st.just(()),
    )
)


@given(HITS, st.lists(st.sampled_from(["pars", "argument", "b", "\U0001f600"])))
def test_features_are_between_0_and_1(hits: list[Hit], stems: list[str]) -> None:
    question = Question(stems, [3] * len(stems), 10, stems)
    for features in find_features(hits, question):
        assert all(0 <= feature <= 1 + 1e-9 for feature in features)
