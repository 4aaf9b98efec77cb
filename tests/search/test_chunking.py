"""Chunks are the document, cut along its structure."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from llm_kb.search.chunks import CAP, chunk_document
from llm_kb.search.question import split_identifiers
from llm_kb.texts.decoding import open_text
from llm_kb.texts.document import MAX_SECTIONS, find_line_numbers
from llm_kb.texts.outlines.markdown import outline_markdown
from llm_kb.texts.outlines.outline import read_document
from tests.cost import at_most

PATHS = [
    "a.md",
    "a.rst",
    "a.txt",
    "README",
    "a.py",
    "a.rs",
    "a.ts",
    "a.c",
    "a.adoc",
    "a.org",
    ".hidden",
]

LINES = st.sampled_from(
    [
        "",
        "# One",
        "## Two ##",
        "Title",
        "=====",
        "---",
        "```python",
        "```",
        "~~~~",
        "    ```",
        "- item",
        "<!-- # no",
        "-->",
        "def f(x):",
        "    return 1",
        "class A:",
        "@dec",
        "pub fn a() {",
        "}",
        ".. function:: f",
        "word " * 60,
        "x" * 1500,
        "\u2028 \x0c \x85",
        "\ud800",
        "\x00",
    ]
)
TEXTS = st.lists(LINES, max_size=40).map("\n".join) | st.text(max_size=3000)


def test_a_text_has_so_many_sections_and_no_more() -> None:
    text = "# a\n" * (MAX_SECTIONS + 9)
    outline = read_document("a.md", text)
    assert len(outline.sections) == MAX_SECTIONS
    assert outline.sections[-1].end == len(text)
    assert "".join(chunk.text for chunk in chunk_document("a.md", text)) == text


@given(TEXTS, st.sampled_from(PATHS))
@example("x" * 5000, "a.js")
@example("\r\n".join(["# A", "", "b"] * 400), "a.md")
def test_chunks_joined_are_the_document_and_none_is_too_long(text: str, path: str) -> None:
    chunks = chunk_document(path, text)

    assert "".join(chunk.text for chunk in chunks) == text
    assert all(0 < len(chunk.text) <= 2 * CAP for chunk in chunks)


HTML = st.sampled_from(
    [
        *("<body>", "<main>", "</main>", "<div id='content'>", "<div>", "</div>", "{% x %}"),
        *("<h1>One</h1>", "<h2>Two</h2>", "<dt>-x</dt>", "<title>Three</title>", "<svg>"),
        *("<!--", "-->", "<script>", "</script>", "<pre>", "</pre>", "<code>", "</code>"),
        *("<p>", "</p>", "<li>", "</li>", "word " * 60, "\r\n\r\n", "\n", "For example:"),
    ]
)


@given(st.lists(HTML, max_size=60).map("".join))
def test_chunks_of_a_page_joined_are_its_own_text(text: str) -> None:
    found = read_document("a.html", text)

    chunks = chunk_document("a.html", text)

    assert "".join(chunk.text for chunk in chunks) == text[found.start : found.end]
    assert all(0 < len(chunk.text) <= 2 * CAP for chunk in chunks)
    assert list(found.sections) == sorted(found.sections, key=lambda each: each.start)
    assert all(end <= start for (_, end), (start, _) in pairwise(found.wholes))


@given(TEXTS, st.sampled_from(PATHS))
def test_line_ranges_are_where_the_chunks_are(text: str, path: str) -> None:
    lines = text.split("\n")
    for chunk in chunk_document(path, text):
        within = "\n".join(lines[chunk.first_line - 1 : chunk.last_line]) + "\n"
        assert chunk.text.strip("\n") in within


@pytest.mark.slow
def test_a_minified_line_of_5_mb_is_cut() -> None:
    text = "a=1;" * 1_250_000

    chunks = chunk_document("bundle.min.js", text)

    assert "".join(chunk.text for chunk in chunks) == text
    assert max(len(chunk.text) for chunk in chunks) == CAP
    assert {(chunk.first_line, chunk.last_line) for chunk in chunks} == {(1, 1)}


def test_titles_are_breadcrumbs_and_headings_what_begins() -> None:
    body = "Some sentence about it.\n" * 20
    text = f"# Guide\n\n{body}\n## Install\n\n{body * 4}\n### Linux\n\n{body}"

    named = [(chunk.title, chunk.heading) for chunk in chunk_document("a.md", text)]

    assert named == [
        ("Guide", "Guide"),
        ("Guide > Install", "Install"),
        ("Guide > Install", ""),
        ("Guide > Install > Linux", "Linux"),
    ]


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Guide\n---\n", "Guide > Usage"),
        ('+++\ntitle = "Guide"\nweight = 1\n+++\n', "Guide > Usage"),
        ("---\nsubtitle: Guide\n---\n", "Usage"),
        ("---\ntitle: usage\n---\n", "Usage"),
    ],
)
def test_a_title_in_the_front_matter_is_above_all_sections(front: str, title: str) -> None:
    text = f"{front}\n{'Some intro. ' * 60}\n\n## Usage\n\n{'Some text. ' * 40}\n"

    first, *_, last = chunk_document("a.md", text)

    assert last.title == title
    assert (first.title, first.heading) == ("Guide" if ">" in title else "", "")


def test_short_sections_share_a_chunk() -> None:
    text = "# Guide\n\n## A\n\nshort\n\n## B\n\nshort\n"

    (chunk,) = chunk_document("a.md", text)

    assert (chunk.title, chunk.heading) == ("Guide > A, B", "Guide A B")
    assert (chunk.first_line, chunk.last_line) == (1, 9)


def test_a_heading_without_a_text_goes_with_what_is_below_it() -> None:
    body = "Some sentence about it.\n" * 60
    text = f"{body}\n# Guide\n\n## Install\n\n{body}"

    chunks = chunk_document("a.md", text)

    assert [chunk.title for chunk in chunks] == ["", "", "Guide > Install", "Guide > Install"]
    assert chunks[2].text.startswith("# Guide\n\n## Install\n\nSome sentence")


def test_a_directive_of_rst_is_not_cut_from_its_body() -> None:
    warning = ".. warning::\n\n" + "   Never do that, it hurts.\n" * 20
    text = "Title\n=====\n\n" + "Prose before it.\n" * 40 + "\n" + warning + "\nAfter.\n" * 40

    assert [warning in chunk.text for chunk in chunk_document("a.rst", text)].count(True) == 1


def test_a_note_is_not_cut_from_its_text() -> None:
    note = '!!! tip "Short"\n\n    Say it once.\n\n    ```sh\n    say it\n    ```\n'
    text = (
        "# A\n\n"
        + "Prose before it, which is long enough.\n" * 29
        + f"\n{note}\nAfter it.\n\n# B\n"
    )

    chunks = chunk_document("a.md", text)

    assert [chunk.text.count("!!! tip") for chunk in chunks if note in chunk.text] == [1]
    assert "".join(chunk.text for chunk in chunks) == text
    assert [section.title for section in outline_markdown(text).sections] == ["A", "B"]


def test_a_fence_that_fits_is_not_cut() -> None:
    fence = "```python\n" + "\n\n".join(f"line_{n} = {n}" for n in range(50)) + "\n```\n"
    text = "# A\n\n" + "Prose before it.\n" * 40 + "\n" + fence + "\nProse after it.\n" * 40

    assert len(fence) <= CAP
    assert [fence in chunk.text for chunk in chunk_document("a.md", text)].count(True) == 1


def test_an_inserted_line_leaves_most_hashes() -> None:
    sections = [f"## Section {n}\n\n" + f"Words of section {n}. " * 90 + "\n\n" for n in range(50)]
    before = chunk_document("a.md", "# Title\n\n" + "".join(sections))
    sections[10] = sections[10].replace("\n\n", "\n\nInserted.\n", 1)
    after = chunk_document("a.md", "# Title\n\n" + "".join(sections))

    kept = {chunk.hash for chunk in before} & {chunk.hash for chunk in after}

    assert len(kept) >= 0.94 * len(before)


# Markdown, against a CommonMark parser


class Seen(NamedTuple):
    headings: list[tuple[int, int, str]]
    fences: list[tuple[int, int]]


def seen_by_parser(text: str) -> Seen:
    """Return (line, depth, text) of the headings and (first, end) lines of the fences."""
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [
        (token.map[0], int(token.tag[1]), " ".join(tokens[at + 1].content.split()))
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    fences = [tuple(t.map) for t in tokens if t.type == "fence" and t.level == 0 and t.map]
    return Seen(nest(headings), fences)  # type: ignore[arg-type]


def nest(headings: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return headings with their depth of nesting instead of their level."""
    open_: list[int] = []
    nested = []
    for line, level, title in headings:
        while open_ and open_[-1] >= level:
            open_.pop()
        open_.append(level)
        nested.append((line, len(open_), title))
    return nested


def seen_by_us(text: str) -> Seen:
    outline = outline_markdown(text)

    def line(offset: int) -> int:
        return text.count("\n", 0, offset) + (offset == len(text) and not text.endswith("\n"))

    headings = [(line(each.start), each.depth, each.title) for each in outline.sections]
    return Seen(headings, [(line(start), line(end)) for start, end in outline.wholes])


BLOCKS = st.sampled_from(
    [
        "# One",
        "### Three ###",
        "#not a heading",
        "####### seven",
        "   ## indented",
        "    # code",
        "# `code` and *emphasis*",
        "Setext\n======",
        "Two lines\nof it\n---",
        "- item\n---",
        "> quoted\n---",
        "***",
        "plain text",
        "```\n# in a fence\n```",
        "~~~ python\n```\n# still in it\n~~~",
        "````\n```\n# nested\n```\n````",
        "```not `a` fence\n",
        "<!-- a comment\n# in it\n-->",
        "<pre>\n# raw\n</pre>",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ]
)


@given(st.lists(BLOCKS, max_size=12).map("\n\n".join))
@example("# Open\n\n```\n# never closed\n\nmore")
def test_markdown_headings_and_fences_are_those_of_commonmark(text: str) -> None:
    assert seen_by_us(text) == seen_by_parser(text)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        pytest.param("---\ntitle: x\n---\n# A\n", ["A"], id="yaml front matter"),
        pytest.param('+++\ntitle = "x"\n+++\n# A\n', ["A"], id="toml front matter"),
        pytest.param("1. step\n\n    ```sh\n    # no\n    ```\n\n# A\n", ["A"], id="fence in list"),
        pytest.param("- ```\n  # no\n  ```\n# A\n", ["A"], id="fence opens a list item"),
        pytest.param("# A\r\n\r\ntext\r\n\r\nB\r\n===\r\n", ["A", "B"], id="crlf"),
        pytest.param("A\n===\nB\n---\ntext\n", ["A", "B"], id="right below a title"),
        pytest.param("#\n", ["#"], id="empty heading keeps its section"),
        pytest.param("!!! a\n\n    # no\n\n# B\n??? x\n# C\n", ["B", "C"], id="notes"),
        pytest.param("# [A](u) b\n\n![C](d.png)\n===\n", ["A b", "C"], id="links"),
    ],
)
def test_markdown_beyond_the_oracle(text: str, labels: list[str]) -> None:
    assert [section.title for section in outline_markdown(text).sections] == labels


def test_rst_titles_targets_and_directives() -> None:
    text = (
        "=====\nGuide\n=====\n\ntext\n\n.. _install:\n\nInstall\n-------\n\n"
        ".. function:: open(file)\n\n   Opens.\n\n=== ===\na   b\n=== ===\n"
    )

    assert headings("a.rst", text) == [
        (1, "Guide", 1, 18),
        (2, "Install", 7, 18),
        (3, "open(file)", 12, 15),
    ]


# Code

PYTHON = '''import os

# About A.
@decorated
class A:
    """Doc."""

    # About f.
    def f(self):
        return """
def not_code():
"""

    async def g(self):
        pass


x = 1
'''
RUST = """use x;

/// About a.
#[test]
pub(crate) fn a() {
    1
}

impl Foo for Bar {
    fn b(&self) {
        2
    }
}
"""
TYPESCRIPT = """export class A {
  method(a: number) {
    return 1
  }
}

export const handler = async (x) => {
  return x
}
"""
C = """#include <x.h>

/* About it. */
static int *parse(const char *text)
{
    return 0;
}

struct point {
    int x;
};
"""


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (".py", PYTHON, [(3, "A"), (8, "f"), (14, "g")]),
        (".rs", RUST, [(3, "a"), (9, "Foo for Bar"), (10, "b")]),
        (".ts", TYPESCRIPT, [(1, "A"), (2, "method"), (7, "handler")]),
        (".c", C, [(3, "parse"), (9, "point")]),
    ],
    ids=["python", "rust", "typescript", "c"],
)
def test_definitions_by_the_shape_of_lines(
    suffix: str, text: str, expected: list[tuple[int, str]]
) -> None:
    if suffix == ".py":  # The one thing that only a parser can know.
        text = text.replace("def not_code", "    not_code")
    assert [(first, title) for _, title, first, _ in headings(f"a{suffix}", text)] == expected


def test_deep_nesting_does_not_overflow() -> None:
    text = "".join("    " * n + f"def f{n}():\n" for n in range(300)) + "    " * 300 + "pass\n"

    assert "".join(chunk.text for chunk in chunk_document("a.py", text)) == text


# Decoding


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\0b", ""),
        (b"\xef\xbb\xbfa", "a"),
        (b"a\xff", "a\ufffd"),
        (b"a" * 9000 + b"\0b", "a" * 9000 + "b"),
        (b"", ""),
    ],
    ids=["binary", "bom", "undecodable", "late NUL", "empty"],
)
def test_decode(data: bytes, text: str) -> None:
    assert open_text(data).text == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("HTTPServer", "HTTP Server"),
        ("getDefaultModel", "get Default Model"),
        ("plain words, CONSTANT and snake_case", ""),
        ("readFile readFile", "read File"),
        ("日本 𝔘 é: straßeName, ÉtatMajor2Go", "straße Name État Major2 Go"),
    ],
)
def test_split_identifiers(text: str, parts: str) -> None:
    assert split_identifiers(text) == parts


@example("x" * 100 + "Yz" * 100)
@example("aé" * 50 + "BcDe")
@given(st.text("ABab1_ éÉ中", max_size=120))
def test_identifiers_are_split_at_every_hump(text: str) -> None:
    parts: dict[str, None] = {}
    for at in range(1, len(text)):
        before, after = text[at - 1], text[at + 1 : at + 2]
        if text[at] not in "ABCDY":
            continue
        if before in "abcdexyz1" or (before in "ABCDY" and after in tuple("abcdexyz")):
            found = re.search(r"(?:[A-ZÉ]+|[A-ZÉ]?[a-zé0-9]+)$", text[max(0, at - 40) : at])
            rest = re.match(r"[a-z0-9]*", text[at + 1 :])
            assert found
            assert rest
            parts |= {found[0]: None, text[at] + rest[0]: None}

    assert split_identifiers(text) == " ".join(parts)


# Outlines


def headings(path: str, text: str) -> list[tuple[int, str, int, int]]:
    """Return depth, title, first and last line of each section."""
    return [
        (each.depth, each.title, *find_line_numbers(text, each.start, each.end))
        for each in read_document(path, text).sections
    ]


def test_a_heading_of_markdown_holds_all_up_to_the_next_of_its_level() -> None:
    text = "intro\n\n# A #\n\na\n\n### Deep\nd\n\n## `B`\n\n```\n# no\n```\n\nC\n===\nc"

    assert headings("a.MD", text) == [
        (1, "A", 3, 15),
        (2, "Deep", 7, 9),
        (2, "`B`", 10, 15),
        (1, "C", 16, 18),
    ]


def test_a_setting_described_right_above_its_title_is_that_title() -> None:
    text = (
        "Settings\n========\n\n.. setting:: AGE\n\n``AGE``\n-------\n\nDefault: 0\n\n"
        ".. setting:: CHECKS\n.. index:: checks\n\n``CHECKS``\n----------\n\nOn.\n"
    )

    assert headings("ref/settings.txt", text) == [
        (1, "Settings", 1, 17),
        (2, "``AGE``", 4, 10),
        (2, "``CHECKS``", 11, 17),
    ]


def test_described_objects_nest_by_indentation_and_options_below_their_program() -> None:
    text = (
        "API\n===\n\n.. class:: Pool\n\n   A pool.\n\n   .. method:: get()\n\n      One.\n\n"
        "   More of the pool.\n\nText of the title.\n\n"
        ".. program:: git\n\n.. option:: --force\n\n   Do it.\n"
    )

    assert headings("api.rst", text) == [
        (1, "API", 1, 20),
        (2, "Pool", 4, 13),
        (3, "get()", 8, 11),
        (2, "git", 16, 20),
        (3, "--force", 18, 20),
    ]


def test_headings_of_html_are_those_of_the_page() -> None:
    text = (
        "<html>\n<h1 class='x'>One &amp; <em>only</em></h1>\n<!-- <h2>no</h2> -->\n"
        "<pre><h2>no</h2></pre>\n<H2\n id=a>Two</H2>\n<p>x\n<h2></h2>\n<h1>Three</h1>"
    )

    assert headings("p.html", text) == [
        (1, "One & only", 2, 8),
        (2, "Two", 5, 8),
        (1, "Three", 9, 9),
    ]


def test_definitions_are_the_headings_of_code() -> None:
    text = "import os\n\n\nclass A:\n    def f(self):\n        pass\n\n\ndef g():\n    pass\n"

    found = [(level, title, first) for level, title, first, _ in headings("a.py", text)]

    assert found == [(1, "A", 4), (2, "f", 5), (1, "g", 9)]


def test_titles_of_asciidoc_are_those_outside_of_blocks() -> None:
    text = (
        "= Manual\n:toc:\n\n[[setup]]\n== Install\n\n----\n== code\n----\n\n"
        "Old title\n---------\n\n[#x,role=y]\n[abstract]\n=== Deep\n\n"
        "====\nexample\n====\n\n|===\n|a\n|===\n"
    )
    outline = read_document("a.adoc", text)
    assert [(each.title, each.depth, each.anchor) for each in outline.sections] == [
        ("Manual", 1, "manual"),
        ("Install", 2, "setup"),
        ("Old title", 2, "old-title"),
        ("Deep", 3, "x"),
    ]
    assert [text[each.start :].partition("\n")[0] for each in outline.sections] == [
        *("= Manual", "[[setup]]", "Old title", "[#x,role=y]")
    ]
    blocks = [text[start:end] for start, end in outline.wholes]
    assert blocks == ["----\n== code\n----", "====\nexample\n====", "|===\n|a\n|==="]


def test_headlines_of_org_are_those_outside_of_blocks() -> None:
    text = "* TODO One  :tag:\n#+BEGIN_SRC sh\n* x\n#+END_SRC\n** Two\nwords\n*bold* text\n"
    outline = read_document("a.org", text)
    assert [(each.title, each.depth, each.anchor) for each in outline.sections] == [
        ("TODO One", 1, "todo-one"),
        ("Two", 2, "two"),
    ]
    assert [text[start:end] for start, end in outline.wholes] == ["#+BEGIN_SRC sh\n* x\n#+END_SRC"]


def test_text_of_an_unknown_kind_has_no_headings() -> None:
    assert read_document("a.json", "# not Markdown\n").sections == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "unit", "times"),
    [
        ("a.md", "# " + "a" + " " * 500_000 + "b\n", 1),
        ("a.md", "- x\na\n---\n", 10_000),
        ("a.md", "- ```\n", 15_000),
        ("a.md", "<pre>x</pre>\n", 15_000),
        ("a.md", "# heading\n", 25_000),
        ("a.md", "!!! a\n" + "     \n" * 200, 250),
        ("a.md", "x" * 1_000_000 + "\n===\n", 1),
        ("a.rst", ".. index:: x\n" + "   \n" * 200 + "y\nTitle\n=====\n", 50),
        ("a.rst", ".. option:: x\n" + ".. index:: x\n   \n   \n" * 200 + "y\nT\n==\n", 50),
        ("a.rst", "Title\n=====\n", 20_000),
        ("a.rst", ".. option:: x\n", 20_000),
        ("a.html", "<h1>", 25_000),
        ("a.html", "<h1" * 100_000, 1),
        ("a.html", "<pre>", 25_000),
        ("a.html", "<h1>a</h1><div id=x" + "<div id=" * 50_000, 1),
        ("a.html", "<h1>a</h1><main>" + "<main " * 50_000, 1),
        ("a.html", "<main", 100_000),
        ("a.html", "<h1>a</h1>" + "<div id=content>" * 100_000, 1),
        ("a.html", "<h1>a</h1><main>" + "<main></main>" * 50_000, 1),
        ("a.html", "<h1>a</h1>" + "<!-- <script> <textarea" * 50_000, 1),
        ("a.html", "<h1>a</h1>" + "<script></script" * 50_000, 1),
        ("a.html", "<h1>a</h1>" + "<code>" * 100_000, 1),
        ("a.html", "<p>a", 50_000),
        ("a.html", "<p>" + "<b" * 100_000, 1),
        ("a.html", "<title>" + "a" * 400 + "<title>", 500),
        ("a.py", "def f():\n    pass\n", 10_000),
        ("a.py", "# c\n@d\n", 15_000),
        ("a.py", "(" * 200_000, 1),
        ("a.c", "a " * 75_000 + "(", 1),
        ("a.js", "const " * 100_000, 1),
        ("a.ts", "  f(\n" + "          x,\n" * 30, 500),
    ],
)
def test_hostile_text_takes_time_in_its_length(path: str, unit: str, times: int) -> None:
    text = unit * times

    with at_most(6):
        chunk_document(path, text)


TYPESCRIPT_CLASS = """export class Builder<Entity>
    extends Base<Entity>
{
    private build(
        subject: Subject,
        kinds: string[],
    ): Promise<void> {
        subject.relations.forEach((relation) => {
            relation.build()
        })
        this.pool.on("error", async (error) => {
            throw error
        })
    }

    run<T>(work: () => T) {
        call(
            work,
        )
    }
}
"""
GO = """// Serve answers.
func (h *Handler[T]) Serve(w Writer) error {
\treturn nil
}

func (Kind) String() string {
\treturn ""
}

func New() *Handler {
\treturn nil
}
"""


def test_a_callback_names_nothing_and_a_method_may_have_parameters_on_many_lines() -> None:
    found = headings("a.ts", TYPESCRIPT_CLASS)

    assert [(title, depth) for depth, title, _, _ in found] == [
        ("Builder", 1),
        ("build", 2),
        ("run", 2),
    ]


def test_a_class_goes_on_after_type_parameters_on_many_lines() -> None:
    text = "class Box<\n  Item,\n> extends Base {\n  take(\n    n: Item,\n  ) {\n  }\n}\n"

    assert [(depth, title) for depth, title, _, _ in headings("a.ts", text)] == [
        (1, "Box"),
        (2, "take"),
    ]


def test_a_method_knows_its_type() -> None:
    chunks = chunk_document("a.go", GO.replace("\treturn", "\tlog()\n" * 60 + "\treturn"))

    assert [(chunk.title, chunk.heading) for chunk in chunks if chunk.title] == [
        ("Handler.Serve", "Serve"),
        ("Kind.String", "String"),
        ("New", "New"),
    ]


def test_an_option_of_html_knows_its_command() -> None:
    body = "<dd><p>It says so in many words.</p></dd>\n" * 9
    options = f"<dl>\n<dt><code>--all</code></dt>\n{body}<dt>-n</dt>\n{body}</dl>"
    text = f"<h1>git-add</h1>\n<h2>OPTIONS</h2>\n{options}"

    titles = [chunk.title for chunk in chunk_document("git-add.html", text)]

    assert titles == ["git-add > OPTIONS > --all", "git-add > OPTIONS > -n"]


def test_a_heading_of_html_ends_before_its_link_to_itself() -> None:
    text = '<h2 id="a">Cache <code>C#</code><a href="#a">&para;</a></h2>\n<p>x</p>\n<h2>C#</h2>\n'

    assert [title for _, title, *_ in headings("p.html", text)] == ["Cache C#", "C#"]


PAGE = """<html><head><title>Caching &amp; more - Docs</title>
<style>p { color: red }</style></head><body>
<div id="top"><a href="/">Home</a></div>
<div id="page-content"><h1>Caching</h1>
<div>One cache is for answers, one for questions, and a third, seldom seen, for both.</div>
<script>write("<div>")</script></div>
<div><h2>Comments</h2><p>Be kind.</p></div>
</body></html>
"""


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        (PAGE, (4, 6)),
        (PAGE.replace("id=", "class="), (2, 8)),
        (PAGE.replace("<div>One", "<div>{{ one }}"), (1, 8)),
        (re.sub("<(/?)h.>", r"<\1b>", PAGE), (1, 8)),
        (PAGE.replace("page-content", "x").replace("top", "main"), (2, 8)),
        (PAGE.replace("</script></div>", "</script>"), (4, 8)),
    ],
    ids=["main", "body", "template", "no headings", "main with less text", "not closed"],
)
def test_what_surrounds_the_text_of_a_page_is_no_chunk(page: str, lines: tuple[int, int]) -> None:
    chunks = chunk_document("a.html", page)

    assert (chunks[0].first_line, chunks[-1].last_line) == lines
    assert "".join(chunk.text for chunk in chunks) in page


def test_a_page_without_a_first_heading_is_named_by_its_title() -> None:
    page = PAGE.replace("h1>", "h2>")

    found = [each[:3] for each in headings("a.html", page)]
    assert found == [(1, "Caching & more - Docs", 4), (2, "Caching", 4), (2, "Comments", 7)]


@pytest.mark.parametrize(
    ("page", "titles"),
    [
        ("<title>Caching</title><p>It is fast.</p>", ["Caching"]),
        ("<title>Caching</title><h2>Keys</h2><p>x</p>", ["Caching > Keys"]),
        ("<title>Caching</title><h2>Keys</h2>{% block x %}", ["Caching > Keys"]),
        ("<title>{{ title }}</title><h2>Keys</h2>", ["Keys"]),
        ("<svg><title>Logo</title></svg><h2>Keys</h2>", ["Keys"]),
        ("<nav><h2>Menu</h2></nav><h2>Keys</h2><svg><title>Logo</title></svg>", ["Menu, Keys"]),
    ],
    ids=["no headings", "no body", "template", "no name", "title of a picture", "picture below"],
)
def test_the_title_of_a_page_names_it(page: str, titles: list[str]) -> None:
    assert [chunk.title for chunk in chunk_document("a.html", page)] == titles


TEXT = "<p>Never call it twice, or the data are lost.</p>\n" * 9


@pytest.mark.parametrize(
    "page",
    [
        f"<h1>T</h1><!-- <main></main> -->{TEXT}",
        f"<h1>T</h1><script>x='<main></main>'</script>{TEXT}",
        f"<h1>T</h1><textarea><main></main></textarea>{TEXT}",
        f'<h1>T</h1><div id="content"></div>{TEXT}',
        f'<h1>T</h1><div data-id="main">x</div>{TEXT}',
        f'<h1>T</h1><div role="main-nav">x</div>{TEXT}',
        f"<h1>T</h1><main-nav>x</main-nav>{TEXT}",
        f"<h1>T</h1><main>x</main>{TEXT}",
        f"<main><h1>T</h1>{TEXT}x</main><main>{TEXT}</main>",
        f"<main><h1>T</h1><style>/* </main> */</style>{TEXT}</main>",
        f"<main><h1>T</h1><textarea></main></textarea>{TEXT}</main>",
        f"<main><h1>T</h1><a title='</main>'>x</a>{TEXT}</main>",
        f"<main><h1>T</h1><script src='x'/>{TEXT}</main>",
        f'<h1>T</h1><div id="content">{TEXT}</div><div id="footnotes">{TEXT}</div><p>End',
    ],
)
def test_the_text_of_a_page_is_not_lost(page: str) -> None:
    joined = "".join(chunk.text for chunk in chunk_document("a.html", f"<body>{page}</body>"))

    assert joined.count(TEXT) == page.count(TEXT)


@pytest.mark.parametrize(
    "page",
    [
        f"<nav><h2>Menu</h2></nav><main><h1>T</h1>{TEXT}</main>",
        f"<h1>Menu</h1><main><h1>T</h1>{TEXT}</main>",
        f"<nav><h1>Menu</h1></nav><h1>T</h1><main><h2>U</h2>{TEXT}</main>",
        f"<nav>Menu</nav><main><h1>T</h1><code>{{{{ x }}}}</code>{TEXT}</main>",
        f"<nav>Menu</nav><main><h1>T</h1><pre>{{% x %}}</pre>{TEXT}</main>",
        f"<nav>Menu</nav><main><h1>T</h1>{TEXT}</main><script>x = `{{{{ x }}}}`</script>",
    ],
    ids=["its heading", "name of the site", "title above", "shown code", "example", "script"],
)
def test_a_menu_is_not_indexed_where_the_page_marks_its_main_part(page: str) -> None:
    joined = "".join(chunk.text for chunk in chunk_document("a.html", page))

    assert TEXT in joined
    assert "T</h1>" in joined
    assert "Menu" not in joined


def test_preformatted_text_with_tags_is_not_cut() -> None:
    lines = "some line of it\n"
    example = f"<pre>\n{lines * 5}<p>one</p>\n{lines * 45}</pre>\n"
    text = f"<h1>T</h1>\n{TEXT}{example}{TEXT * 2}"

    assert any(example in chunk.text for chunk in chunk_document("a.html", text))


def test_a_paragraph_of_a_page_is_not_cut() -> None:
    text = "<h1>A</h1>\n" + "<p>One.\nTwo\nthree.</p>\n" * 99

    chunks = chunk_document("a.html", text)

    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text.endswith("</p>\n") for chunk in chunks)


def test_a_heading_is_not_alone() -> None:
    sentence = "Some sentence about it.\n"
    text = f"## A\n\n## B\n\n{sentence * 51}"

    chunks = chunk_document("a.md", text)

    assert [(chunk.heading, chunk.last_line) for chunk in chunks] == [("A B", 53), ("", 55)]


def test_a_whole_that_ends_near_the_end_of_its_section_stays_whole() -> None:
    fence = "```\n" + "code\n" * 225 + "```\n"
    text = f"{fence}\n" + "Some sentence.\n" * 7

    chunks = chunk_document("a.md", text)

    assert chunks[0].text.startswith(fence)
    assert "".join(chunk.text for chunk in chunks) == text


def test_an_introduction_is_not_named_by_what_follows() -> None:
    text = "The introduction of it.\n" * 30 + "\n## Install\n\nRun it.\n"

    assert [chunk.title for chunk in chunk_document("a.md", text)] == ["", "Install"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("It says\nwhat it is.\n" * 90, "It says"),
        ("It is what it is. " * 90, "It is what"),
    ],
    ids=["lines", "one line"],
)
def test_no_chunk_begins_within_a_sentence(text: str, start: str, line_end: str) -> None:
    chunks = chunk_document("a.md", text.replace("\n", line_end))

    assert len(chunks) > 1
    assert all(chunk.text.startswith(start) for chunk in chunks[1:])


def test_what_is_not_to_be_cut_stays_with_the_text_above_it_even_over_the_cap() -> None:
    fence = "```\n" + "code\n" * 150 + "```\n"
    text = f"# T\n\n{'It is. ' * 99}\nSo:\n{fence}\n{'It is. ' * 99}"

    chunks = chunk_document("a.md", text)

    assert fence in chunks[0].text
    assert len(chunks[0].text) > CAP
    assert len(chunks) == 2


def test_a_comment_is_not_cut_from_the_code_it_describes() -> None:
    text = "def f():\n" + "    # Adds one.\n    add(1)\n    show()\n" * 60

    chunks = chunk_document("a.py", text)

    assert len(chunks) > 1
    assert not any(chunk.text.endswith("one.\n") for chunk in chunks)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.rst", "T\n=\n\n.. code:: x\n\n   a\n\n   b\n\nText::\n\n    c\n\n    d\n\nEnd.\n"),
        ("a.md", "# T\n\n!!! note\n    a\n\n    b\n\n```\nc\n```\n"),
        ("a.html", "<h1>a</h1>\n<p>x</p>\n<pre>\nb</pre>\n<p>y</p>\n"),
    ],
)
def test_what_stays_whole_does_not_depend_on_line_ends(path: str, text: str) -> None:
    windows = text.replace("\n", "\r\n")

    found = [windows[start:end] for start, end in read_document(path, windows).wholes]

    expected = [text[start:end] for start, end in read_document(path, text).wholes]
    assert [whole.replace("\r\n", "\n") for whole in found] == expected
