"""Differences of texts as people see them."""

from __future__ import annotations

import pytest

from llm_kb.rendering.differences import MOST_COMPARED, render_difference

PAGE = "Intro.\n\n# A\n\n1.\n\n## B\n\n2.\n\n## C\n\n3.\n"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("Intro", "Start", "@@ line 1 @@"),
        ("1.", "one", "@@ line 5 @@ A"),
        ("2.\n", "2.\n\nMore.\n", "@@ line 11 @@ B"),
        ("## C", "## D", "@@ line 11 @@ B"),
        ("3.\n", "", "@@ line 13 @@ C"),
    ],
)
def test_a_change_is_named_by_the_heading_above_it(old: str, new: str, place: str) -> None:
    assert render_difference(PAGE, PAGE.replace(old, new), "a.md")[0] == place
    assert render_difference(PAGE, PAGE.replace(old, new), "a.txt")[0] == place.rstrip("ABC ")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\n", "a\n", []),
        ("", "a\n", ["+a"]),
        ("a\nb\n", "a\nc\n", ["@@ line 2 @@", " a", "-b", "+c"]),
        ("a\n", "a\u202eb\x1b[2J\n", ["@@ line 1 @@", "-a", "+a\\u202eb\\x1b[2J"]),
        ("a\n", "a", ["@@ line 2 @@", " a", "+\\ no line end"]),
        ("a\r\nb\r\n", "a\r\nc\r\n", ["@@ line 2 @@", " a", "-b", "+c"]),
        ("a\r\n", "a\n", ["@@ line 1 @@", "-a\\r", "+a"]),
        (
            f"{'x' * 900}\na\n",
            f"{'x' * 900}\nb\n",
            ["@@ line 2 @@", f" {'x' * 496}...", "-a", "+b"],
        ),
        (f"{'x' * 900}\n", f"{'y' * 900}\n", ["@@ line 1 @@", f"-{'x' * 900}", f"+{'y' * 900}"]),
        (
            "1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\ny\n",
            ["@@ line 10 @@", " 7", " 8", " 9", "-x", "+y"],
        ),
    ],
)
def test_lines_that_differ_are_shown(before: str, after: str, shown: list[str]) -> None:
    assert render_difference(before, after, "a.md") == shown


def test_parts_far_from_each_other_are_apart() -> None:
    lines = [f"{number}" for number in range(30)]
    changed = ["first", *lines[1:-1], "last"]
    shown = render_difference("\n".join([*lines, ""]), "\n".join([*changed, ""]), "a.md")
    assert shown == [
        "@@ line 1 @@",
        "-0",
        "+first",
        " 1",
        " 2",
        " 3",
        "@@ line 30 @@",
        " 26",
        " 27",
        " 28",
        "-29",
        "+last",
    ]


def test_long_texts_are_not_compared_line_by_line() -> None:
    before = "".join(f"{number % 7}\n" for number in range(MOST_COMPARED))
    after = "".join(f"{number % 5}\n" for number in range(MOST_COMPARED))
    shown = render_difference(before, after, "a.md")
    assert [line[0] for line in shown].count("-") > 0.9 * MOST_COMPARED
