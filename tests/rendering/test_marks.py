"""A block of ours in a file of others."""

from __future__ import annotations

import pytest

from llm_kb.errors import KbError
from llm_kb.rendering.marks import Marks

BEGIN, END = MARKS = Marks("<!-- begin -->", "<!-- end -->")
BLOCK = f"{BEGIN}\nours\n{END}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, BLOCK),
        ("", f"\n{BLOCK}"),
        ("# Agents\n\ntext\n", f"# Agents\n\ntext\n\n{BLOCK}"),
        ("text", f"text\n\n{BLOCK[:-1]}"),
        (f"above\n{BEGIN}\nold\n{END}\n\nbelow\n", f"above\n{BLOCK}\nbelow\n"),
        (f"above\n{BEGIN}\nold\n{END}", f"above\n{BLOCK[:-1]}"),
        ("# Agents\r\n", f"# Agents\n\n{BLOCK}".replace("\n", "\r\n")),
        (f"a `{BEGIN}`\n{BEGIN}\n{END}\n", f"a `{BEGIN}`\n{BLOCK}"),
        (f"~~~\n{BLOCK}~~~\n", f"~~~\n{BLOCK}~~~\n\n{BLOCK}"),
    ],
    ids=[
        *("no file", "empty", "without marks", "no line end", "with marks", "marks at the end"),
        *("CRLF", "a mark is quoted", "an example"),
    ],
)
def test_a_block_is_placed_once(before: str | None, after: str) -> None:
    assert MARKS.replace(before, BLOCK, "f") == after
    assert MARKS.replace(after, BLOCK, "f") == after


@pytest.mark.parametrize(
    "text", [BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"], ids=range(4)
)
def test_marks_that_enclose_nothing_are_refused(text: str) -> None:
    assert MARKS.has_any(text)
    with pytest.raises(KbError, match="'f' must have one line"):
        MARKS.replace(text, BLOCK, "f")


def test_a_quoted_mark_is_none() -> None:
    assert not MARKS.has_any(f"a `{BEGIN}`\n")
    assert not MARKS.has_any(f"```\n{BLOCK}```\n")
    assert not MARKS.has_any(None)
