"""Words of a query found in a text."""

from __future__ import annotations

import pytest

from llm_kb.upkeep.content_search import EmptyQueryError, Found, Query, search_text

GUIDE = "# Reviewing code\n\nBe kind.\n\nReview the tests first, then the code.\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Code  REVIEW\ncode", ("code", "review"), id="folded, once each"),
        pytest.param('"how do we, review?"', ("how", "do", "we", "review"), id="punctuation"),
        pytest.param("c++ --flag .env", ("c++", "--flag", "env"), id="signs of a word"),
        pytest.param("STRASSE Straße", ("strasse",), id="case folding"),
    ],
)
def test_parse(text: str, words: tuple[str, ...]) -> None:
    assert Query.parse(text).words == words


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_a_query_needs_a_word(text: str) -> None:
    with pytest.raises(EmptyQueryError):
        Query.parse(text)


@pytest.mark.parametrize(
    ("query", "name", "text", "found"),
    [
        pytest.param(
            "review code",
            "guide",
            GUIDE,
            # two words, both in the heading; each twice
            Found(words=2, weight=44, line=1, text="# Reviewing code"),
            id="all in the heading",
        ),
        pytest.param(
            "tests then",
            "guide",
            GUIDE,
            Found(words=2, weight=2, line=5, text="Review the tests first, then the code."),
            id="the line with most words",
        ),
        pytest.param(
            "review absent",
            "guide",
            GUIDE,
            Found(words=1, weight=22, line=1, text="# Reviewing code"),
            id="one of two",
        ),
        pytest.param(
            "guide",
            "review/guide",
            "\nText.",
            Found(words=1, weight=20, line=2, text="Text."),
            id="name",
        ),
        pytest.param(
            "a",
            "x",
            "a " * 50,
            Found(words=1, weight=10, line=1, text=("a " * 50).strip()),
            id="often",
        ),
        pytest.param("est", "x", "test latest", None, id="inside of words"),
        pytest.param(
            "c++", "x", "In C++.", Found(words=1, weight=1, line=1, text="In C++."), id="signs"
        ),
        pytest.param(
            "test testing",
            "x",
            "testing",
            Found(words=1, weight=1, line=1, text="testing"),
            id="the longer of two that begin alike",
        ),
        pytest.param(
            "straße",
            "x",
            "ẞ\nSTRASSE",
            Found(words=1, weight=1, line=2, text="STRASSE"),
            id="folding",
        ),
        pytest.param("x", "y", "", None, id="empty"),
    ],
)
def test_search_text(query: str, name: str, text: str, found: Found | None) -> None:
    assert search_text(Query.parse(query), name, text) == found
