"""Names, counts and sizes."""

from __future__ import annotations

import pytest

from llm_kb.rendering.plain_text import count, count_columns, format_size, shorten, wrap_prose


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        pytest.param("short", 5, "short", id="fits"),
        pytest.param("longer", 5, "long…", id="cut"),
        pytest.param("one two", 5, "one…", id="no space before the ellipsis"),
    ],
)
def test_shorten(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 KB"),
        (9_949, "9.9 KB"),
        (9_950, "10 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (98_000_000, "98 MB"),
        (5_400_000_000, "5.4 GB"),
        (1_234_000_000_000_000, "1,234 TB"),
    ],
)
def test_format_size(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 entries"), (1, "1 entry"), (1_247, "1,247 entries")]
)
def test_count(number: int, text: str) -> None:
    assert count(number, "entry", "entries") == text
    assert count(number, "file") == text.replace("entries", "files").replace("entry", "file")


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        ("one two three four", "one two three\nfour"),
        ("one two three four\nfive six", "one two three\nfour\nfive six"),
        ("one two\n\nlonglonglonglong-word x", "one two\n\nlonglonglonglong-word\nx"),
        ("- one two three four\n  five", "- one two\n  three four\n  five"),
        (" 1. one two three", " 1. one two\n    three"),
        ("> one two three four", "> one two\n> three four"),
        ("first. Second one", "first. Second\none"),
    ],
    ids=[
        "a paragraph",
        "its next line",
        "a long word",
        "an item",
        "an indented item",
        "a quotation",
        "a sentence",
    ],
)
def test_prose_is_wrapped(text: str, wrapped: str) -> None:
    assert "\n".join(wrap_prose(text, 13, is_markdown=True)) == wrapped


@pytest.mark.parametrize(
    "text",
    [
        "```\none two three four\n```",
        "one two three four\n```\nfive",
        "- x\n\n      one two three four",
        "    one two three four",
        "| one two | three four |",
        "one  two three four five",
        "one | two three four\n--- | ---",
        "<a>one two three four</a>",
        "## one two three four",
        "한국어 문서는 이 줄보다 훨씬 더 길다",
        "- > - > one two three four",
    ],
    ids=[
        "fenced",
        "a fence that is cut",
        "code of an item",
        "indented",
        "a table",
        "columns",
        "a table without edges",
        "HTML",
        "a heading",
        "characters of two columns",
        "deep nesting",
    ],
)
def test_code_and_tables_are_not_wrapped(text: str) -> None:
    assert "\n".join(wrap_prose(text, 13, is_markdown=True)) == text


@pytest.mark.parametrize(("text", "columns"), [("kb/a", 4), ("kb/é", 4), ("kb/한글", 7), ("文", 2)])
def test_characters_of_east_asia_take_two_columns(text: str, columns: int) -> None:
    assert count_columns(text) == columns


def test_the_size_of_a_wrapped_text_does_not_grow_with_its_nesting() -> None:
    for levels in (10, 150):
        text = "> " * levels + "a " * 160
        assert len("\n".join(wrap_prose(text, 60, is_markdown=True))) <= 2 * len(text)


def test_in_rest_any_indentation_may_be_code_and_a_tilde_is_no_fence() -> None:
    text = "Heading\n~~~~~~~\n\none two three four::\n\n  one two three four\n"
    shown = "Heading\n~~~~~~~\n\none two three\nfour::\n\n  one two three four\n"
    assert "\n".join(wrap_prose(text, 13, is_markdown=False)) == shown
