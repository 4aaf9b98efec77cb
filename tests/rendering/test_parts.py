"""Parts of texts and their addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.parts import (
    find_spans,
)
from llm_kb.texts.document import Document, Section, find_line, name_title
from llm_kb.texts.outlines.outline import read_document
from tests.cost import at_most

SETTINGS = """\
# Settings

## Caching
a
### Timeout
b
## Database `X_Y`
### Timeout
c
#### CONN_MAX_AGE
d
## [Links](http://x) {#custom-id}
e
"""


def anchors(text: str, path: str = "a.md") -> list[str]:
    return [part.anchor for part in read_document(path, text).sections]


def find(text: str, *wanted: str, path: str = "a.md") -> list[str]:
    """Return the pieces of a text that anchors name."""
    spans, unknown = find_spans(read_document(path, text), wanted)
    return [text[s.start : s.end] for s in spans] + [f"no {anchor}" for anchor in unknown]


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        pytest.param("Getting Started", "getting-started", id="words"),
        pytest.param("What's new?", "whats-new", id="punctuation"),
        pytest.param("a - b", "a---b", id="as GitHub does it"),
        pytest.param("`foo()` and **bar**", "foo-and-bar", id="markup"),
        pytest.param("[A link](http://x/y) to ![it](i.png)", "a-link-to-it", id="links"),
        pytest.param(":ref:`Caching <c>`", "caching", id="roles"),
        pytest.param("Größe Ä", "größe-ä", id="letters of other alphabets"),
        pytest.param("SOME_NAME", "some_name", id="underscores"),
        pytest.param("`<relabel_config>`", "relabel_config", id="nothing but a placeholder"),
        pytest.param("`profile.<name>.debug`", "profilenamedebug", id="a placeholder in code"),
        pytest.param("`a` <b>c</b>", "a-c", id="tags outside of code"),
        pytest.param("!!!", "", id="nothing"),
    ],
)
def test_name_title(title: str, anchor: str) -> None:
    assert name_title(title) == anchor


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        pytest.param(
            "a.md",
            SETTINGS,
            [
                "settings",
                "caching",
                "caching/timeout",
                "database-x_y",
                "database-x_y/timeout",
                "conn_max_age",
                "custom-id",
            ],
            id="markdown",
        ),
        pytest.param(
            "a.rst", "Title\n=====\n\nSub\n---\n\ntext\n", ["title", "sub"], id="reStructuredText"
        ),
        pytest.param(
            "a.md",
            '## One[[first]]\n## Two {#second .c}\n<h3 name="third">\nThree\n</h3>\n'
            "<h3><a id='fourth'></a>Four</h3>\n<h3>Fifth</h3>\n<h3>not closed\n"
            "## Sixth { #six }\n## Seventh {: #seven .c }\n",
            ["first", "second", "third", "fourth", "fifth", "six", "seven"],
            id="anchors that the text sets, and HTML",
        ),
        pytest.param(
            "a.md",
            "# ***\n\nSay what it is.\n# !!!\n",
            ["say-what-it-is", "part"],
            id="headings that say nothing",
        ),
        pytest.param("a.html", "<h1>Top</h1>\n<p>x\n<h2>Sub</h2>\n", ["top", "sub"], id="html"),
        pytest.param(
            "a.py",
            "class Foo:\n    def bar(self):\n        ...\n\n\n"
            "class Baz:\n    def bar(self):\n        ...\n",
            ["Foo", "Foo/bar", "Baz", "Baz/bar"],
            id="python",
        ),
        pytest.param(
            "a.md", "# A\n# A\n# A\n# A-1\n", ["a", "a-1", "a-2", "a-1-1"], id="all alike"
        ),
        pytest.param("a.md", "# A\n## B\n# B\n", ["a", "a/b", "b"], id="one without parents"),
        pytest.param("a.json", '{"a": 1}\n', [], id="of no known structure"),
    ],
)
def test_anchors_are_unique_by_their_parents(path: str, text: str, expected: list[str]) -> None:
    assert anchors(text, path) == expected


@pytest.mark.parametrize(
    ("wanted", "piece"),
    [
        ("caching", "## Caching\na\n### Timeout\nb\n"),
        ("Caching/TIMEOUT", "### Timeout\nb\n"),
        ("settings/caching/timeout", "no settings/caching/timeout"),
        ("database_x-y/timeout", "### Timeout\nc\n#### CONN_MAX_AGE\nd\n"),
        ("conn-max-age", "#### CONN_MAX_AGE\nd\n"),
        ("CONN_MAX_AGE", "#### CONN_MAX_AGE\nd\n"),
        ("Conn Max Age", "#### CONN_MAX_AGE\nd\n"),
        ("custom-id", "## [Links](http://x) {#custom-id}\ne\n"),
        ("L4-L6", "a\n### Timeout\nb\n"),
        ("L4-6", "a\n### Timeout\nb\n"),
        ("l4", "a\n"),
        ("L13-L999", "e\n"),
        ("L0", "no L0"),
        ("L14", "no L14"),
        ("L6-L4", "no L6-L4"),
        ("timeout", "no timeout"),
        ("nope", "no nope"),
    ],
)
def test_an_anchor_names_a_piece(wanted: str, piece: str) -> None:
    assert find(SETTINGS, wanted) == [piece]


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("cachng", ["caching"]),
        ("timeout", ["caching/timeout", "database-x_y/timeout"]),
        ("L99", ["L1-L13"]),
    ],
)
def test_a_wrong_anchor_has_near_ones(wanted: str, near: list[str]) -> None:
    spans, unknown = find_spans(read_document("a.md", SETTINGS), [wanted])
    assert (spans, list(unknown[wanted])) == ([], near)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["caching/timeout", "caching"], ["caching"]),
        (["caching", "caching/timeout"], ["caching"]),
        (["caching", "custom-id", "caching"], ["caching", "custom-id"]),
        (["L1-L4", "custom-id", "L3-L6"], ["L1-L6", "custom-id"]),
        (["L1", "L3", "L1-L3"], ["L1-L3"]),
        (["nope", "custom-id"], ["custom-id"]),
    ],
)
def test_overlapping_pieces_are_given_once(wanted: list[str], found: list[str]) -> None:
    spans, _ = find_spans(read_document("a.md", SETTINGS), wanted)
    assert [span.anchor for span in spans] == found


@pytest.mark.parametrize(
    ("lines", "anchor"),
    [
        ((4, 4), "caching"),
        ((5, 6), "caching/timeout"),
        ((4, 6), "caching"),
        ((6, 8), "settings"),
        ((10, 11), "conn_max_age"),
    ],
)
def test_passages_are_named_by_the_smallest_part_around_them(
    lines: tuple[int, int], anchor: str
) -> None:
    start = find_line(SETTINGS, 0, lines[0] - 1)
    end = find_line(SETTINGS, start, 1 + lines[1] - lines[0])
    assert read_document("a.md", SETTINGS).find_section(start, end).anchor == anchor


def test_text_outside_of_every_part_is_in_none() -> None:
    whole = Section(0, 10, 0, "", "")
    assert read_document("a.md", "text\n\n# A\n").find_section(0, 2) == whole
    assert Document("0123456789").find_section(7, 7) == whole


headings = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(["a", "A", "b", "a-1", "a/b", "L3", "*", ""]))
).map(lambda found: "".join(f"{'#' * level} {title}\ntext\n" for level, title in found))


@given(headings)
def test_every_anchor_is_unique_and_names_its_part(text: str) -> None:
    parts = read_document("a.md", text).sections
    assert len({part.anchor.casefold() for part in parts}) == len(parts)
    for part in parts:
        [span], _ = find_spans(read_document("a.md", text), [part.anchor.upper()])
        assert (span.start, span.end) == (part.start, part.end)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("# same\n" * 25_000, id="alike"),
        pytest.param("".join(f"{'#' * (i % 6 + 1)} h{i}\n" for i in range(25_000)), id="headings"),
        pytest.param("# " + "x" * 1_000_000 + "\n", id="long"),
        pytest.param("# " + "[" * 500_000 + "\n", id="brackets"),
        pytest.param("# " + "<" * 500_000 + "\n", id="tags"),
    ],
)
def test_hostile_headings_cost_little(text: str) -> None:
    with at_most(4):
        spans, unknown = find_spans(
            read_document("a.md", text),
            ["h5", "nope" * 100_000, "a/" * 100_000, "L1-L999999999"],
        )
        parts = read_document("a.md", text).sections
    assert len(spans) + len(unknown) in {3, 4}
    assert all(len(part.anchor) <= 2_000 for part in parts)


def test_the_parts_of_a_text_are_found_once() -> None:
    again = "".join(list(SETTINGS))
    assert read_document("a.md", SETTINGS).sections is read_document("a.md", again).sections


def test_a_page_has_the_parts_beside_its_main_element() -> None:
    page = "<h1>T</h1><main><p>One long text.</p></main><h2>Options</h2><p>x</p>"

    assert anchors(page, "a.html") == ["t", "options"]
