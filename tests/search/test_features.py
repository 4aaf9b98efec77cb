"""The features decide between chunks with similar BM25 scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.features import (
    ASKED,
    PASTED,
    Features,
    Question,
    find_features,
    find_stems,
    measure_answer,
)
from llm_kb.search.hits import Hit
from llm_kb.search.question import fold, split_words
from llm_kb.search.ranking import WEIGHTS, weigh

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


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([make("a", "x")], {}),
        ([make("a", "x", "About")], {"opens": 1}),
        ([make("a", "x", "Parsing")], {"opens": 1, "adjoining": 0.5}),
        ([make("a", "He parsed it")], {"adjoining": 0.5}),
        ([make("a", "arguments; parse")], {"adjoining": 1}),
        ([make("a", "how to, PARSE the: x")], {"run": 0.8, "adjoining": 0.5}),
        ([make("a", "howTo(Parse)")], {"run": 0.6, "adjoining": 0.5}),
        ([make("parser.py", "x")], {"adjoining": 0.5}),
        ([make("a", "x"), make("a", "parse", score=0.5, line=12)], {"file": 0.5, "adjoining": 0.5}),
        ([make("a", "x", line=40), make("a", "parse", score=0.5)], {"file": 0.5}),
        ([make("a", "x"), make("b", "parse", score=2.0)], {}),
        ([make("a", "x", score=0.5), make("a", line=40)], {"file": 1}),
        ([make("a", "x", cosine=0.5)], {"dense": 1}),
        ([make("a", "x", cosine=0.5), make("b", cosine=0.6)], {"dense": (5 / 6) ** 4}),
        ([make("a", "x"), make("a", cosine=0.6, line=12)], {"file": 1, "dense": 0.4}),
        ([make("a", "x"), make("a", cosine=0.6, line=40)], {"file": 1, "dense": 0.25}),
    ],
    ids=[
        *("nothing", "opens", "a word of its heading", "a word", "words", "run"),
        *(
            "run as one word",
            "a word of its path",
            "adjoining",
            "further on",
            "another file",
            "a better one of its file",
            "nearest",
            "next",
        ),
        *("beside the nearest", "in the file of the nearest"),
    ],
)
def test_features(hits: list[Hit], expected: dict[str, float]) -> None:
    assert describe(*hits) == pytest.approx(NOTHING._replace(**expected))


@pytest.mark.parametrize(
    ("asked", "name", "title"),
    [
        ("get the item", "", "Box > Get the Item"),
        ("get item", "", "Box.get_item, Box.set_item"),
        ("Box.get_item", "getitem", "get_item"),
        ("get_item", "getitem", "Box.get_item(self, key)"),
        ("unset", "unset", "OPTIONS > --add <name>, --unset <name>"),
        ("push", "push", "Vec::push"),
    ],
)
def test_what_a_question_names(asked: str, name: str, title: str) -> None:
    question = Question([], [], 0, split_words(asked), name=name)

    assert question.is_name_of(make("a", title=title, heading="its own"))
    assert not question.is_name_of(make("a", title=title)), "it goes on with what has the name"
    other = Question([], [], 0, [*split_words(asked), "more"], name=f"{name}more")
    assert not other.is_name_of(make("a", title=title, heading="its own"))


def test_rare_words_are_a_greater_share() -> None:
    question = Question(["pars", "argument"], [1, 900], 1000)

    assert find_features([make("a", "parse")], question)[0].adjoining > 0.9


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
        (make("a", "x", "How to parse the arguments"), make("b", "y", "How to parse arguments")),
        (make("parse.md", "x"), make("b", "y")),
        (make("a", "to parse the: x"), make("b", "the parse")),
        (make("a", "good", score=10.0), make("b", "fair arguments to parse")),
        (make("a", "x", cosine=0.5), make("b", "y", cosine=0.4)),
        (make("a", "x", score=0.0, cosine=0.5), make("b", "y", score=0.0, cosine=0.4)),
        (make("a", "good", score=10.0), make("b", "y", cosine=0.5)),
    ],
    ids=[
        "named",
        "path",
        "run",
        "a much better score stands",
        "nearer",
        "no words",
        "clearer",
    ],
)
def test_the_better_comes_first(better: Hit, worse: Hit) -> None:
    assert best_of(worse, better) == better.text


def test_nothing_to_rank_or_to_rank_by() -> None:
    assert weigh([], Question(["a"], [0], 0)) == []
    assert weigh([make("a", "text")], Question([], [], 0)) == [0]


@pytest.mark.parametrize(
    ("text", "heading", "asked", "expected"),
    [
        ("z", "", "red sea", 1.0),
        ("red", "", "red sea lion", 1.0),
        ("red sea", "", "red sea lion", (PASTED - 2) / (PASTED - ASKED)),
        ("what is the best way to", "", "what is the best way to swim", 1.0),
        ("red sea lion", "", "red sea lion", (PASTED - 3) / (PASTED - ASKED)),
        ("the red sea lion", "", "is the red sea lion gone", (PASTED - 3) / (PASTED - ASKED)),
        ("no red sea lion eats grass today", "", "no red sea lion eats grass today", 0.0),
        ("z", "red sea", "red sea", 0.0),
    ],
    ids=["meaning", "one word", "two", "stop words", "three", "three of four", "pasted", "a name"],
)
def test_meaning_counts_less_beside_exact_words(
    text: str, heading: str, asked: str, expected: float
) -> None:
    question = Question([], [], 0, split_words(asked))
    hits = [make("a", text, heading, title=heading), make("b", "x", cosine=0.5), make("c", "x")]
    _, nearest, other = weigh(hits, question)

    assert nearest - other == pytest.approx(expected * WEIGHTS.dense)


@pytest.mark.parametrize(
    ("asked", "expected"), [("red", 1.0), ("no red sea lion eats grass today", 0.0)]
)
def test_what_is_pasted_need_not_open_a_section(asked: str, expected: float) -> None:
    hits = [make("a", "x", "About"), make("b", asked)]

    assert find_features(hits, Question([], [], 0, asked.split()))[0].opens == expected


def test_a_hit_with_a_line_of_a_pasted_log_answers_it() -> None:
    noise = [f"noise{number}" for number in range(40)]
    log = [*noise, "cannot", "open", "the", "walrus", "gate", "again"]
    question = Question(noise, [1] * len(noise), 1000, log)

    assert measure_answer(make("a", "It says: cannot open the walrus gate!"), question) == 0.4
    assert measure_answer(make("a", "It says: cannot open it!"), question) == 0.2


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


# Where words stand


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("or Parsing", True),
        ("reparse sparse", False),
        ("reparse, parsed", True),
        ("getParser", True),
        ("HTTPParser", True),
        ("a_parse", True),
        ("SPARSE", False),
        ("İ parse", True),
        ("", False),
    ],
)
def test_find_stems(text: str, *, is_found: bool) -> None:
    assert find_stems(text, ["pars", "gone"]) == (["pars"] if is_found else [])


def test_in_a_script_without_spaces_a_word_begins_anywhere() -> None:
    assert find_stems("如何部署", ["部署"]) == ["部署"]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Cannot find the file: 'x'", "cannot find the file", "cannot find the file"),
        ("find the other file", "cannot find the file", "find the"),
        ("the file; the_file is gone", "is the file is gone", "the file is gone"),
        ("findTheFile", "then find the file", "find the file"),
        ("Ändern: Cannot find_the file", "cannot find the file", "cannot find the file"),
        ("find it", "find", ""),
        ("Version 0.13.7", "3 7", ""),
        ("since Python 3.10", "python 3 10", "python 3 10"),
        ("refuse them", "find the", ""),
        ("", "a b", ""),
        ("a b", "", ""),
    ],
)
def test_the_longest_run_of_words(text: str, words: str, expected: str) -> None:
    assert " ".join(Question([], [], 0, words.split()).find_longest_run(text)) == expected


@given(st.text(), st.lists(st.text(min_size=1)))
def test_stems_that_are_found_are_in_the_text(text: str, stems: list[str]) -> None:
    assert all(stem in fold(text) for stem in find_stems(text, stems))
