"""Which lines of a long passage are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.chunking.outline import find_outline
from llm_kb.search.excerpt import find_excerpt

WORDS = {"walrus": 3.0, "tusk": 2.0, "zoo": 1.0}
FILLER = "Nothing is said here.\n\n" * 10


def excerpt(text: str, path: str = "a.md", most: int = 100) -> str:
    start, end = find_excerpt(text, find_outline(path, text), (0, len(text)), WORDS, most)
    return text[start:end]


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        pytest.param("a.md", "# A\n\nShort.\n", "# A\n\nShort.\n", id="short"),
        pytest.param(
            "a.md", f"{FILLER}# The zoo\n\n## Walrus\n\nTusks.\n\n{FILLER}",
            "# The zoo\n\n## Walrus\n\nTusks.\n\n" + FILLER[:69], id="with its headings",
        ),
        pytest.param(
            "a.rst", f"Text\n====\n\n{FILLER}.. _w:\n\nWalrus\n------\n\nTusks.\n\n" + "x" * 90,
            ".. _w:\n\nWalrus\n------\n\nTusks.\n\n", id="with label and title",
        ),
        pytest.param(
            "a.rst", f"{FILLER}.. warning::\n\n    A walrus.\n\n    It has tusks.\n\n{'x' * 90}\n",
            ".. warning::\n\n    A walrus.\n\n    It has tusks.\n\n", id="a directive and its body",
        ),
        pytest.param(
            "a.md", f"{FILLER}Call this:\n\n```\nwalrus()\n\ntusk()\n```\n\n{'x' * 90}\n",
            "Call this:\n\n```\nwalrus()\n\ntusk()\n```\n\n", id="code and what announces it",
        ),
        pytest.param(
            "a.md", f"{FILLER}- walrus\n\n  its tusks\n\n{'x' * 90}\n",
            "- walrus\n\n  its tusks\n\n", id="an item and its indented lines",
        ),
        pytest.param(
            "a.txt", FILLER + "walrus " * 40 + "tusks\n\n" + FILLER,
            "walrus " * 40 + "tusks\n\n", id="one block that is longer than asked for",
        ),
    ],
)  # fmt: skip
def test_what_answers_is_shown_whole(path: str, text: str, shown: str) -> None:
    assert excerpt(text, path) == shown


def test_the_heading_counts_for_what_stands_below_it() -> None:
    text = f"# Walrus\n\n{'It has tusks. ' * 6}\n\n# Zoo\n\n{'There are tusks. ' * 6}\n\n"

    assert excerpt(text, most=110).startswith("# Walrus")


def test_a_heading_whose_text_is_beyond_the_span_is_left_to_it() -> None:
    text = "Walrus.\n\nZoo\n---\n\n.. class:: Zoo\n   :module:\n\nIts text.\n"
    outline = find_outline("a.rst", text)
    span = (0, text.index("Its"))

    assert find_excerpt(text, outline, span, WORDS, 500) == (0, text.index("Zoo"))


def test_a_heading_alone_is_shown_with_what_it_leads_to() -> None:
    heading = "Walrus\n------\n\n.. method:: walrus()\n.. method:: tusk()\n\n"
    text = f"{heading}Its text.\n\nMore of it.\n\n{'x' * 99}\n"
    outline = find_outline("a.rst", text)

    found = find_excerpt(text, outline, (0, len(heading)), WORDS, 99)

    assert found == (0, text.index("xxx"))


def test_a_passage_right_below_its_headings_is_shown_with_them() -> None:
    text = f"{FILLER}Zoo\n---\n\n.. class:: Zoo\n\nIts text has a walrus.\n\n{'x' * 99}\n\nTusks.\n"
    outline = find_outline("a.rst", text)
    start, end = text.index("Its"), text.index("xxx")

    assert find_excerpt(text, outline, (start, end), WORDS, 99) == (text.index("Zoo"), end)
    tusks = (text.index("Tusks"), len(text))
    assert find_excerpt(text, outline, tusks, WORDS, 99) == tusks


@given(
    st.lists(
        st.sampled_from(["# a", "a", "walrus", "```", ".. x::", "    tusk", "zoo:", "---", ""]),
        max_size=40,
    ),
    st.sampled_from(["a.md", "a.rst", "a.py"]),
)
def test_an_excerpt_is_whole_lines_within_its_span(lines: list[str], path: str) -> None:
    text = "\n".join(lines) + "\n"
    start, end = find_excerpt(text, find_outline(path, text), (0, len(text)), WORDS, 10)

    assert 0 <= start < end <= len(text)
    assert start == 0 or text[start - 1] == "\n"
    assert text[end - 1] == "\n"
