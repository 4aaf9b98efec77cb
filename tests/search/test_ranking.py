"""What stands around the words of a question decides between chunks with similar scores."""

from __future__ import annotations

import pytest

from llm_kb.search.question import Question, parse_question
from llm_kb.search.ranking import Hit, Rarities, rank
from llm_kb.search.roles import Role

STEMS = {"parse": "pars", "arguments": "argument"}
ASKED = parse_question("how to parse the arguments")


def make(
    name: str,
    text: str = "",
    heading: str = "",
    *,
    title: str = "",
    score: float = 1.0,
    line: int = 1,
    cosine: float | None = None,
    role: Role = Role.DOCS,
) -> Hit:
    """Make a hit of ten lines."""
    return Hit(
        topic="t",
        path=name,
        first_line=line,
        last_line=line + 9,
        title=title or heading,
        heading=heading,
        text=text or name,
        bm25=score,
        cosine=cosine,
        role=role,
    )


def order(
    *hits: Hit, asked: Question = ASKED, frequencies: dict[str, int] | None = None
) -> list[Hit]:
    counts = frequencies or dict.fromkeys(STEMS, 10)
    stems = {word: STEMS.get(word, word) for word in counts}
    forms = {word: {word: count} if count else {} for word, count in counts.items()}
    return rank(hits, asked, Rarities(forms, stems, 1000))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (make("a", "x", "How to parse the arguments"), make("b", "y", "How to parse arguments")),
        (make("a", "to parse the: x"), make("b", "the parse")),
        (make("a", "toParse(the)"), make("b", "the parse")),
        (make("a", "good", score=30.0, role=Role.CODE), make("b", "to parse", role=Role.CODE)),
        (make("a", "parse, then parse"), make("b", "parse, then not")),
        (make("a", "x", cosine=0.5), make("b", "y", cosine=0.4)),
        (make("a", "x", score=0.0, cosine=0.5), make("b", "y", score=0.0, cosine=0.4)),
        (make("a", "good", score=30.0), make("b", "y", cosine=0.5)),
        (make("a", "x"), make("b", "x2", role=Role.EXAMPLES)),
    ],
    ids=[
        *("named", "run", "run as one word"),
        *("a much better score stands", "says it twice", "nearer", "no words", "clearer", "role"),
    ],
)
def test_the_better_comes_first(better: Hit, worse: Hit) -> None:
    assert [hit.path for hit in order(worse, better)] == [better.path, worse.path]


def test_a_page_with_several_good_chunks_comes_first() -> None:
    page = [make("a", f"parse {n}", score=0.9, line=100 * n) for n in range(5)]
    alone = make("b", "parse it")

    assert order(alone, page[0])[0].path == "b"
    assert order(alone, *page[:2])[0].path == "a"
    long = [make("c", f"parse {n}", score=0.7, line=100 * n) for n in range(9)]
    assert order(*long, *page[:3])[0].path == "a"


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("get the item", "Box > Get the Item"),
        ("get item", "Box.get_item, Box.set_item"),
        ("Box.get_item", "get_item"),
        ("get_item", "Box.get_item(self, key)"),
        ("unset", "OPTIONS > --add <name>, --unset <name>"),
        ("push", "Vec::push"),
    ],
)
def test_what_a_question_names_comes_first(asked: str, title: str) -> None:
    question = parse_question(asked)
    named = make("a", "x", title=title, heading="its own")
    goes_on = make("b", "y", title=title)
    opens = make("c", "z", title="Other", heading="its own", score=1.8)

    found = order(goes_on, opens, named, asked=question, frequencies={"gone": 0})

    assert [hit.path for hit in found] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        (make("a", "arguments to parse"), 1.0),
        (make("a", "x", title="Parsing"), 0.5),
        (make("a", "x", cosine=0.3), 0.3),
        (make("a", "parse", cosine=0.9), 0.5),
        (make("a", "x", cosine=-0.2), 0.0),
    ],
)
def test_how_well_a_hit_answers(hit: Hit, expected: float) -> None:
    assert [each.score for each in order(hit)] == [expected]


def test_rare_words_are_a_greater_share_and_unknown_ones_no_greater() -> None:
    rare = {"parse": 1, "arguments": 900}
    unknown = {"parse": 0, "arguments": 100}

    assert order(make("a", "parse"), frequencies=rare)[0].score > 0.9
    assert order(make("a", "arguments"), frequencies=unknown)[0].score == 0.5


@pytest.mark.parametrize(
    ("cosines", "first"),
    [
        ((0.3, 0.5), "b"),
        ((0.83, 0.88), "b"),  # of a model whose cosines are all high
        ((0.3, 0.31), "a"),
        ((None, 0.5), "a"),  # only one is embedded
        ((1.0, 1.0), "a"),
    ],
)
def test_what_is_nearer_in_meaning_than_the_others_gains(
    cosines: tuple[float | None, float], first: str
) -> None:
    code = Role.CODE  # without vectors of words
    hits = [
        make("a", "parse one argument", score=1.0, cosine=cosines[0], role=code),
        make("b", "argument that is parsed", score=0.9, cosine=cosines[1], role=code),
    ]
    assert order(*hits)[0].path == first


@pytest.mark.parametrize("asked", ["parse_arguments", "parse arguments of a command"])
def test_meaning_lowers_no_order_that_words_decide(asked: str) -> None:
    question = parse_question(asked)
    named = make("a", "def parse_arguments(): parse arguments of a command", cosine=0.1)
    near = make("b", "the parser and its argument", score=0.9, cosine=0.9)
    assert order(named, near, asked=question)[0].path == "a"


def test_what_has_none_of_the_words_does_not_come_before_what_has_frequent_ones() -> None:
    frequent = make("a", "parse it", score=1e-6, cosine=0.3)
    without = make("b", "a giraffe", score=0.0, cosine=0.3)
    best = make("c", "arguments to parse", score=5.0, cosine=0.3)
    assert [hit.path for hit in order(without, frequent, best)] == ["c", "a", "b"]


def test_only_whole_beginnings_of_words_are_mentions() -> None:
    rarities = Rarities({"id": {"id": 10}}, {"id": "id"}, 1000)
    assert rarities.measure_uses("provide a valid width inside") == 0.0
    assert rarities.measure_uses("The id, and ids.") > 0.6
    assert rarities.measure_uses("id " * 10_000) <= 1.0


def test_what_does_not_count_for_a_name_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "llm_kb.search.ranking._measure_meaning",
        "llm_kb.search.ranking.Rarities.measure_uses",
    ):
        monkeypatch.setattr(name, None)
    hits = [make("a", "core.autocrlf"), make("b", "core.autocrlf: x", heading="core.autocrlf")]
    assert order(*hits, asked=parse_question("core.autocrlf"))[0].path == "b"


def test_nothing_to_rank_or_to_rank_by() -> None:
    assert order() == []
    assert [hit.path for hit in order(make("a", "text"), frequencies={"gone": 0})] == ["a"]


def test_a_text_is_a_hit_once_and_names_its_copies() -> None:
    hits = [make("1", "same", score=3.0), make("2", "other", score=2.0), make("3", "same\n")]

    found = order(*hits)

    assert [(hit.path, hit.also_in) for hit in found] == [("1", ("t/3",)), ("2", ())]


def test_a_text_is_named_where_it_is_nearest_to_the_top_of_a_file() -> None:
    whole = make("manual", "same", score=3.0)._replace(first_line=48_000, last_line=48_010)
    (found,) = order(whole, make("page", "same"))
    assert (found.path, found.also_in) == ("page", ("t/manual",))


@pytest.mark.parametrize(
    ("better", "worse", "asked"),
    [
        ("Cannot find the file: 'x'", "find the other file", "cannot find the file"),
        ("findTheFile", "find a file", "then find the file"),
        ("since Python 3.10", "of Python, 3.8, 10", "python 3 10"),
        ("find_the", "refuse them", "find the"),
        ("Ändern: Cannot find_the file", "find the: x", "cannot find the file"),
    ],
)
def test_words_in_a_row_count(better: str, worse: str, asked: str) -> None:
    hits = [make("b", worse), make("a", better)]
    found = order(*hits, asked=parse_question(asked), frequencies={"gone": 0})
    assert found[0].path == "a"


def test_what_is_in_quotes_comes_first() -> None:
    hits = [
        make("b", "connection pool limit: the connection pool has a limit", score=9.0),
        make("a", "Set the max_pool of connections to ten.", score=1.0),
    ]
    for asked, first in (("max pool of", "b"), ("“max pool” connection limit", "a")):
        frequencies = {"max": 10, "pool": 10, "connection": 10, "limit": 10}
        found = order(*hits, asked=parse_question(asked), frequencies=frequencies)
        assert found[0].path == first, asked


def test_a_word_has_several_forms() -> None:
    forms = {"status": {"status": 1, "statuses": 2}, "gone": {}}
    stems = {"status": "status", "statuses": "statuses", "gone": "gone"}
    rarities = Rarities(forms, stems, 1000)
    assert rarities.share("all statuses") == rarities.share("status") == 0.5
    assert rarities.measure_uses("statuses") == rarities.measure_uses("status12")


def test_numbers_alone_are_no_run() -> None:
    hits = [make("a", "x"), make("b", "Version 0.13.7")]
    found = order(*hits, asked=parse_question("3 7"), frequencies={"gone": 0})
    assert found[0].path == "a"
