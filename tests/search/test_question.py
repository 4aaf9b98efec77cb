"""Any question becomes a valid FTS5 query."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.question import (
    MAX_CHARACTERS,
    MAX_COUNTED,
    MAX_WORDS,
    bound_question,
    build_match,
    find_name,
    fold,
    list_neighbours,
    list_runs,
    parse_question,
    replace_words,
    split_words,
)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How do I parse the arguments?", ("parse", "arguments")),
        ("what is it", ("what", "is", "it")),
        ("get_default model", ("default", "model", "get default")),
        ("HTTPServer", ("httpserver", "http", "server")),
        ("os.path.join", ("os", "path", "join", "os path join")),
        ("parse PARSE Parse", ("parse",)),
        ("naïve 検索する", ("naive", "検索", "索す", "する")),
        ("Django設定", ("設定", "django")),
        ("", ()),
        ("?! \ud800 \0", ()),
    ],
)
def test_parse_question(question: str, terms: tuple[str, ...]) -> None:
    assert parse_question(question) == terms


def test_stop_words_of_an_identifier_stay_in_its_phrase() -> None:
    assert parse_question("get_or_create") == ("create", "get or create")


def test_a_long_question_is_cut_before_its_words_are_counted() -> None:
    question = " ".join(f"word{number}" for number in range(50_000))

    terms = parse_question(question)

    assert len(terms) == MAX_COUNTED
    assert terms[0] == "word0"
    assert "word49999" in parse_question("x " * 10_000 + "word49999")
    assert len(split_words(question)) == MAX_COUNTED


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("ignoreTrailingSlash", "ignoretrailingslash"),
        ("--no-color", "nocolor"),
        ("django.db.models E301", "e301"),
        ("fixtures", "fixtures"),
        ("os.path.join", "join"),
        ("Vec::push", "push"),
        ("close()", "close"),
        ("...", ""),
        ("context managers", ""),
        ("what does E301 mean", ""),
        ("", ""),
    ],
)
def test_what_a_look_up_names(question: str, expected: str) -> None:
    assert find_name(question) == expected


def test_runs_are_four_words_that_tell_something() -> None:
    words = ["cannot", "open", "the", "file", "for", "you", "and", "me", "in", "there"]

    assert list_runs(words) == ["cannot open the file", "open the file for"]
    assert list_runs(["cannot", "open"]) == []


def test_a_short_question_with_a_stop_word_is_a_run() -> None:
    assert list_runs(["why", "walrus"]) == ["why walrus"]
    assert list_runs(["what", "is", "it"]) == ["what is it"]
    assert list_runs(["why"]) == []


def test_neighbours_of_a_word_differ_by_one_letter() -> None:
    found = list_neighbours("walrus")

    assert {"walrsu", "wlrus", "walruss", "walris", "xwalrus"} <= set(found)
    assert "walrus" not in found
    assert len(found) == len(set(found)) < 400


def test_words_are_replaced_whatever_their_case() -> None:
    assert replace_words("The WALRSU, walrsus", {"walrsu": "walrus"}) == "The walrus, walrsus"


def test_every_word_chooses_while_few_chunks_would_be_scored() -> None:
    match = build_match(["parse", "get default"], [], {"parse": 10}, 1000)

    assert match == '"parse" OR "get default"'


def test_frequent_words_only_help_to_rank() -> None:
    frequencies = {"rare": 50, "common": 60_000}

    match = build_match(["common", "rare"], [], frequencies, 100_000)

    assert match == '("rare") AND ("rare" OR "common" OR "common")'


def test_few_frequent_words_help() -> None:
    frequencies = {"rare": 1, **{f"common{number}": 50_000 + number for number in range(9)}}

    match = build_match([*frequencies], [], frequencies, 100_000)

    assert match is not None
    assert match.count('"common2"') == 2
    assert '"common3"' not in match


def test_runs_choose_only_what_no_rare_word_of_theirs_chooses() -> None:
    frequencies = {"rare": 1, "file": 50_000, "open": 60_000}
    runs = ["cannot open the file", "open the file rare"]

    match = build_match([*frequencies], runs, frequencies, 100_000)

    assert match == (
        '("rare" OR "cannot open the file") AND ("rare" OR "open the file rare"'
        ' OR "cannot open the file" OR "file" OR "open" OR "file" OR "open")'
    )


def test_of_many_runs_the_rarest_are_searched_for_and_neighbours_last() -> None:
    runs = [f"a b c w{number}" for number in range(48)]
    frequencies = {"x": 1, **{f"w{number}": 100 - number for number in range(48)}}

    match = build_match(["x"], runs, frequencies, 100_000)

    assert match == " OR ".join(['"x"', *(f'"a b c w{number}"' for number in (47, 45, 43))])
    assert build_match(["x"], runs[:2], frequencies, 9) == '"x" OR "a b c w1" OR "a b c w0"'


def test_a_rare_word_beside_the_point_does_not_choose_alone() -> None:
    frequencies = {"certain": 400, "tag": 1_000, "run": 1_500, "tests": 1_600, "the": 9_000}

    match = build_match([*frequencies], [], frequencies, 20_000)

    assert match is not None
    assert match.startswith('("certain" OR "tag" OR "run") AND (')


def test_a_long_question_is_cut_between_words_and_once() -> None:
    words = [f"word{number}" for number in range(50_000)]
    bound = bound_question(" ".join(words))

    assert bound_question(bound) == bound
    assert set(bound.split()) <= set(words)
    assert MAX_CHARACTERS - 50 < len(bound) <= MAX_CHARACTERS


def test_of_a_long_log_the_first_and_the_last_words_are_read() -> None:
    words = [f"w{number}" for number in range(1000)]

    ends = [*words[: MAX_COUNTED // 2], *words[-MAX_COUNTED // 2 :]]
    assert split_words(" ".join(words)) == ends
    assert parse_question(" ".join(words))[:MAX_COUNTED] == tuple(ends)


@pytest.mark.parametrize(
    "colored",
    [
        "\x1b[31mFatal: \x1b[1;4mno \x1b(B\x1b[mkey\x1b[0m",
        "\x1b]8;;x:y\x07Fatal: no key\x1b]8;;\x07",
    ],
)
def test_colors_of_a_terminal_are_no_words(colored: str) -> None:
    assert parse_question(colored) == parse_question("Fatal: no key")
    assert split_words(colored) == ["fatal", "no", "key"]


def test_the_rarest_word_always_chooses() -> None:
    assert build_match(["common"], [], {"common": 90_000}, 100_000) == '"common"'


def test_words_that_occur_nowhere_are_left_out() -> None:
    runs = ["cannot open gone file", "cannot open the file"]
    assert (
        build_match(["open"], runs, {"open": 1, "gone": 0}, 10)
        == '"open" OR "cannot open the file"'
    )
    assert build_match(["gone", "parse"], [], {"gone": 0, "parse": 1}, 10) == '"parse"'
    assert build_match(["gone"], [], {"gone": 0}, 10) is None
    assert build_match([], [], {}, 10) is None


def test_a_pasted_page_is_cut_to_its_rarest_words() -> None:
    words = [f"w{number}" for number in range(500)]
    match = build_match(words, [], {word: 500 - n for n, word in enumerate(words)}, 100_000)

    assert match is not None
    assert match.count('"') == 2 * MAX_WORDS
    assert match.startswith('"w499" OR "w498"')


def test_the_numbers_of_a_log_do_not_take_the_place_of_its_words() -> None:
    frequencies = {**{str(number): 1 for number in range(200)}, "walrus": 50, "gate": 60}

    match = build_match([*frequencies], [], frequencies, 100_000)

    assert match is not None
    assert match.startswith('"walrus" OR "gate" OR "0"')
    assert match.count('"') == 2 * MAX_WORDS


HOSTILE = st.text() | st.lists(
    st.sampled_from(
        [
            *('"', "'", "*", "^", "(", ")", "AND", "OR", "NOT", "NEAR(", "{text}:", "-", "+", ":"),
            *(";", "text:", "\0", "\ud800", "a_b", "a.b", "AaBb", "--", "/*"),
        ]
    )
).map(" ".join)


@given(HOSTILE, st.integers(0, 100_000))
def test_no_question_is_a_syntax_error(question: str, frequency: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = 'porter unicode61')")
    terms = parse_question(question)
    match = build_match(
        terms, list_runs(split_words(question)), dict.fromkeys(terms, frequency), 100_000
    )
    if match is not None:
        assert connection.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall() == []
    connection.close()


@pytest.mark.parametrize("unit", ["字", "a", "a_", "_", "x.y"])
def test_a_long_question_is_parsed_in_time(unit: str) -> None:
    """In a time that grows with its square, this would take minutes."""
    terms = parse_question(f"{unit * 30_000} walrus")
    assert "walrus" in terms
    assert len(terms) <= 6


def test_of_very_many_identifiers_some_are_phrases() -> None:
    terms = parse_question(" ".join(f"get_{number}" for number in range(1000)))
    assert sum(" " in term for term in terms) == MAX_WORDS


def test_letters_are_folded_as_the_index_folds_them() -> None:
    """Latin, Greek and Cyrillic ones, of whatever case and with whatever accent."""
    letters = [chr(code) for code in (*range(0xC0, 0x530), *range(0x1E00, 0x1F00))]
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word, tokenize = 'unicode61')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'instance')")
    connection.executemany(
        "INSERT INTO words (rowid, word) VALUES (?, ?)",
        ((ord(letter), f"x{letter}x") for letter in letters if letter.isalpha()),
    )
    terms = dict(connection.execute("SELECT doc, term FROM terms"))
    connection.close()
    other = {chr(code) for code, term in terms.items() if term != fold(f"x{chr(code)}x")}
    assert len(terms) > 1000
    assert (
        "".join(sorted(other))
        == "\u017f\u037f\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u0528\u052a\u052c\u052e\u1e9b"
    )
