"""Outlines, and the text shown for requested parts of a subject."""

from __future__ import annotations

import re

import pytest

from llm_kb.rendering.parts import LONGEST_OUTLINE, present_asked, take_pieces
from llm_kb.rendering.presentation import truncate, wrap_subject
from llm_kb.subjects.topics import Content
from tests.cost import at_most
from tests.presented import make_subject


def ask(data: str | bytes, *asked: str | None, path: str = "a.md", over: int = 0) -> list[str]:
    data = data.encode() if isinstance(data, str) else data
    content = Content(data=data, size=len(data))
    pieces, _ = present_asked(make_subject(path), content, asked, topic="t", outline_over=over)
    return [piece.text for piece in pieces]


def test_a_part_of_code_is_fenced_and_names_its_lines() -> None:
    code = "import os\n\n\ndef top():\n    return 1\n"
    assert ask(code, "top", path="a.py") == [
        "(note: lines 4-5 of 5)\n\n```python\ndef top():\n    return 1\n```"
    ]


def test_an_outline_stands_below_the_opening_even_of_code() -> None:
    code = "def one():\n    return 1\n\n\n" * 200
    [text] = ask(code, None, path="a.py", over=100)
    opening, _, outline = text.partition("\n\n## Outline of a (")
    assert opening.startswith("```python\ndef one")
    assert re.search(r"\n```\n\n\(note: cut here; [\d,]+ of 5,200 bytes are not shown\)$", opening)
    # A definition ends where the next one begins.
    assert re.match(r"800 lines, ~1,300 tokens\)\n\n- #one \(~[67] tokens\)\n- #one-1 \(", outline)


def test_a_text_without_headings_is_read_by_lines() -> None:
    [text] = ask("one\n" * 400, None, path="a.json", over=100)
    assert text.endswith(
        "## Outline of a (400 lines, ~400 tokens)\n\nIt has no headings.\n\n"
        'Load lines with learn("t", ["a#L1-L200"]), or all of it with "a#*".'
    )
    [text] = ask("一\n" * 400, None, path="部署.json", over=100)
    assert text.endswith('learn("t", ["部署#L1-L200"]), or all of it with "部署#*".')


def test_a_large_part_answers_with_its_own_outline() -> None:
    inner = "".join(f"### In {n}\n\n{'text ' * 20}\n\n" for n in range(40))
    text = f"# A\n\n## Big\n\nIts opening.\n\n{inner}## Flat\n\n{'text ' * 600}\n"

    big, flat = ask(text, "big", "flat", over=2_000)

    assert big.startswith("(note: lines 3-166 of 169)\n\n## Big\n\nIts opening.\n\n### In 0\n")
    opening, _, outline = big.partition("\n\n## Outline of a#big (164 lines, ~1,133 tokens)\n\n")
    assert opening.endswith("bytes are not shown)")
    assert outline.startswith("- #in-0 (~28 tokens)\n- #in-1 (~28 tokens)\n")
    assert outline.endswith(
        '\n\nLoad parts or lines with learn("t", ["a#in-1", "a#L3-L166"]),'
        ' or all of it with "a#L3-L166".'
    )
    # What has no parts, and lines, are what was asked for.
    assert flat == f"(note: lines 167-169 of 169)\n\n## Flat\n\n{'text ' * 600}\n"
    [lines] = ask(text, "L3-L166", over=2_000)
    assert "Outline" not in lines
    assert ask(text, "big") == [lines]


def test_a_text_of_one_line_is_cut_within_it() -> None:
    [text] = ask("# Title\n" + "x" * 50_000, None, over=100)
    assert text.startswith("# Title\n" + "x" * 1_400)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param("".join(f"## Part {i}\nx\n" for i in range(5_000)), 200, id="wide"),
        pytest.param("".join(f"{'#' * (i % 6 + 1)} h{i}\n" for i in range(9_999)), 190, id="deep"),
        pytest.param("".join(f"# {'long ' * 40} {i}\n" for i in range(999)), 20, id="long"),
    ],
)
def test_an_outline_is_bounded_and_counts_what_it_leaves_out(text: str, kept: int) -> None:
    [shown] = ask(text, "")
    outline = shown.partition("## Outline of a")[2]
    assert len(outline) < LONGEST_OUTLINE + 500
    assert len(re.findall(r"^ *- #", outline, re.MULTILINE)) >= kept
    assert re.search(r"^- and [\d,]+ more at this level$", outline, re.MULTILINE)


def test_deeper_parts_are_counted_where_they_do_not_fit() -> None:
    text = "".join(f"# Chapter {i}\n" + "## Section\ntext\n" * 30 for i in range(40))
    [shown] = ask(text, "")
    assert "- #chapter-0 (~123 tokens, 30 parts)\n- #chapter-1 (" in shown
    assert "beside these" not in shown


def test_nothing_in_an_outline_closes_a_tag() -> None:
    content = Content(data=b"# </subject>\n", size=13)
    [piece], _ = present_asked(make_subject("</topic>.md"), content, [""], topic="t")
    assert wrap_subject(piece).count("</") == 1


def test_binary_and_empty_files_say_so() -> None:
    assert ask(b"\0\0", "a") == ["(note: binary file, 2 bytes, skipped)"]
    assert ask("", "") == ["(note: this file is empty)"]


def test_pieces_keep_their_bytes() -> None:
    data = b"\xef\xbb\xbf# A\r\n\xff\xfe\r\n# B\r\nb"
    subject = make_subject("a.md")
    assert take_pieces(subject, data, ["a"]) == [b"# A\r\n\xff\xfe\r\n"]
    assert take_pieces(subject, data, ["b", "a"]) == [b"# B\r\nb", b"# A\r\n\xff\xfe\r\n"]
    assert take_pieces(subject, data, [None, "a"]) == [data]


def test_a_hostile_file_costs_little() -> None:
    data = "".join(f"{'#' * (i % 6 + 1)} same\n" for i in range(25_000))
    with at_most(4):
        assert len(ask(data, None, over=10)) == 1


@pytest.mark.parametrize(
    ("asked", "rest"),
    [("*", "a#L3-L400"), ("L5-L300", "a#L7-L300"), ("part", "a#L3-L400"), ("L7", "")],
)
def test_a_piece_that_was_cut_says_how_to_load_the_rest(asked: str, rest: str) -> None:
    data = ("# Part\n" + "1234567\n" * 399).encode()
    pieces, _ = present_asked(
        make_subject("a.md"), Content(data=data, size=len(data)), [asked], topic="t"
    )
    [piece] = pieces

    text = truncate(piece, 17).text

    assert text.endswith(f"; load {rest} for more)") if rest else "load" not in text
