"""Words are found by their stems, where words and humps begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.words import (
    MAX_OFFSETS,
    find_longest_run,
    find_stems,
    stand_beside,
    stand_near,
)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("parse, or Parsing", [0, 10]),
        ("reparse sparse", []),
        ("getParser HTTPParser parse_parse", [3, 14, 21, 27]),
        ("SPARSE", []),
        ("İ parse", [3]),
        ("", []),
    ],
    ids=["forms", "within words", "humps", "capitals", "a letter that grows", "empty"],
)
def test_find_stems(text: str, offsets: list[int]) -> None:
    assert find_stems(text, ["pars"]) == ({"pars": offsets} if offsets else {})


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Cannot find the file: 'x'", "cannot find the file", 4),
        ("find the other file", "cannot find the file", 2),
        ("the file; the_file is gone", "is the file is gone", 4),
        ("refind them", "find the", 0),
        ("", "a b", 0),
        ("a b", "", 0),
    ],
)
def test_the_longest_run_of_words(text: str, words: str, expected: int) -> None:
    assert find_longest_run(text, words.split()) == expected


def test_words_stand_near_in_any_order_and_beside_in_theirs() -> None:
    text = "arguments that are parsed; and elsewhere, far from all that, arguments again"
    found = find_stems(text, ["pars", "argument"])

    assert stand_near("pars", "argument", found)
    assert not stand_beside("pars", "argument", found)
    assert stand_beside("pars", "argument", find_stems("parsing arguments", ["pars", "argument"]))
    assert not stand_near("pars", "gone", found)


def test_a_word_repeated_without_end_costs_no_more() -> None:
    found = find_stems("a " * 100 + "b " + "a b", ["a", "b"])

    assert len(found["a"]) == 101
    # Only the first places are compared: those are far from the next word.
    assert MAX_OFFSETS < 100
    assert not stand_beside("a", "b", found)


@given(st.text(), st.lists(st.text(min_size=1)))
def test_offsets_are_where_the_stem_is(text: str, stems: list[str]) -> None:
    for stem_, offsets in find_stems(text, stems).items():
        assert offsets == sorted(set(offsets))
        assert all(text.lower().startswith(stem_, at) for at in offsets)
