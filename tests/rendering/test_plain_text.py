"""Names, counts and sizes."""

from __future__ import annotations

import pytest

from llm_kb.rendering.plain_text import count, format_size, shorten


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
