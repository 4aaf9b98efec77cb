"""A question is read once, and becomes a valid FTS5 query."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.question import (
    MAX_CHARACTERS,
    MAX_WORDS,
    MOST_SCORED,
    EmptyQuestionError,
    build_match,
    list_neighbours,
    parse_question,
)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How do I parse the arguments?", ("parse", "arguments")),
        ("what is it", ("what", "is", "it")),
        ("get_default model", ("default", "model")),
        ("get_or_create", ("create",)),
        ("HTTPServer", ("httpserver", "http", "server")),
        ("os.path.join", ("os", "path", "join")),
        ("parse PARSE Parse", ("parse",)),
        ("naïve 検索する", ("naive", "検索", "索す", "する")),
        ("使用Django設定", ("使用", "django", "設定")),
        ("猫 木", ("猫", "木")),
        ("how many approvals does a change need", ("approvals", "change", "need")),
        ("Wie viele Freigaben braucht man?", ("freigaben", "braucht")),
        ("pourquoi est-ce que le jeton expire", ("jeton", "expire")),
        ("¿cómo puedo renovar el token?", ("renovar", "token")),
        ("perché il token non si rinnova", ("token", "rinnova")),
        ("the man page of die", ("man", "page", "die")),
    ],
)
def test_the_words_to_look_for(question: str, words: tuple[str, ...]) -> None:
    assert parse_question(question).words == words


@pytest.mark.parametrize("question", ["", "?! \ud800 \0"])
def test_a_question_without_a_word_is_an_error(question: str) -> None:
    with pytest.raises(EmptyQuestionError):
        parse_question(question)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("how do I deploy", "en"),
        ("deploy", "en"),
        ("wie kann ich das ausrollen", "de"),
        ("comment est-ce que je déploie", "fr"),
        ("cómo puedo desplegar", "es"),
        ("come si distribuisce con questo", "it"),
        ("如何部署", "en"),
    ],
)
def test_the_language_of_a_question(question: str, language: str) -> None:
    assert parse_question(question).language == language


def test_of_a_long_question_the_beginning_and_the_end_are_read() -> None:
    asked = parse_question(" ".join(f"word{number}" for number in range(50_000)))

    assert sum(map(len, asked.words)) < MAX_CHARACTERS
    assert (asked.words[0], asked.sequence[-1]) == ("word0", "word49999")
    assert "word49999" in parse_question("x " * 10_000 + "word49999").words


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
        ("context managers", ""),
        ("what does E301 mean", ""),
    ],
)
def test_what_a_look_up_names(question: str, expected: str) -> None:
    assert parse_question(question).name == expected


def test_neighbours_of_a_word_differ_by_one_letter() -> None:
    found = list_neighbours("walrus")

    assert {"walrsu", "wlrus", "walruss", "walris", "xwalrus"} <= set(found)
    assert "walrus" not in found
    assert len(found) == len(set(found)) < 400


def test_words_are_corrected_whatever_their_case() -> None:
    asked = parse_question("The WALRSU, walrsus").correct({"walrsu": "walrus"})
    assert asked.text == "The walrus, walrsus"


def test_the_rarest_words_come_first() -> None:
    frequencies = {"parse": 10, "default": 5, "gone": 0}

    assert build_match([*frequencies], frequencies) == '"default" OR "parse"'


def test_frequent_words_that_would_cost_too_much_are_left_out() -> None:
    frequencies = {"rare": 50, "common": MOST_SCORED}

    assert build_match(["common", "rare"], frequencies) == '"rare"'


def test_the_rarest_word_is_always_looked_for() -> None:
    assert build_match(["common"], {"common": 2 * MOST_SCORED}) == '"common"'
    assert build_match(["gone"], {"gone": 0}) == ""


def test_a_long_question_is_cut_once() -> None:
    bound = parse_question(" ".join(f"word{number}" for number in range(50_000))).text

    assert parse_question(bound).text == bound
    assert bound.startswith("word0 word1 ")
    assert bound.endswith(" word49998 word49999")
    assert MAX_CHARACTERS - 50 < len(bound) <= MAX_CHARACTERS


@pytest.mark.parametrize(
    "colored",
    [
        "\x1b[31mFatal: \x1b[1;4mno \x1b(B\x1b[mkey\x1b[0m",
        "\x1b]8;;x:y\x07Fatal: no key\x1b]8;;\x07",
    ],
)
def test_colors_of_a_terminal_are_no_words(colored: str) -> None:
    assert parse_question(colored).sequence == ("fatal", "no", "key")


def test_a_pasted_page_is_cut_to_its_rarest_words() -> None:
    words = [f"w{number}" for number in range(500)]

    match = build_match(words, {word: 500 - n for n, word in enumerate(words)})

    assert match.count('"') == 2 * MAX_WORDS
    assert match.startswith('"w499" OR "w498"')


def test_the_numbers_of_a_log_do_not_take_the_place_of_its_words() -> None:
    frequencies = {**{str(number): 1 for number in range(200)}, "walrus": 50, "gate": 60}

    match = build_match([*frequencies], frequencies)

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
    with suppress(EmptyQuestionError):
        words = parse_question(question).words
        if match := build_match(words, dict.fromkeys(words, frequency)):
            found = connection.execute("SELECT * FROM t WHERE t MATCH ?", (match,))
            assert found.fetchall() == []
    connection.close()


@pytest.mark.parametrize("unit", ["字", "a", "a_", "_", "x.y"])
def test_a_long_question_is_parsed_in_time(unit: str) -> None:
    """In a time that grows with its square, this would take minutes."""
    words = parse_question(f"{unit * 30_000} walrus").words
    assert "walrus" in words
    assert len(words) <= 6
