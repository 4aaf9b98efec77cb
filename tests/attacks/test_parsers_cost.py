"""Every outliner, chunker, parser and renderer takes linear time over families of hostile texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product

import pytest

from llm_kb.rendering.excerpt import (
    find_beside,
    find_excerpt,
    find_key_sentence,
)
from llm_kb.rendering.parts import find_spans, render_outline
from llm_kb.rendering.summaries import read_front_matter, summarize
from llm_kb.search.chunks import chunk_document
from llm_kb.search.question import space, split_identifiers
from llm_kb.search.roles import explain_unsearched
from llm_kb.texts.decoding import START
from llm_kb.texts.document import Section
from llm_kb.texts.folding import fold
from llm_kb.texts.formats import find_format
from llm_kb.texts.markup import mark_fenced
from llm_kb.texts.outlines.outline import read_document
from llm_kb.texts.safe import defuse, one_line, visible_text
from tests.cost import at_most, cases, peak_of
from tests.fuzz.__main__ import TARGETS
from tests.fuzz.chunking import PATHS
from tests.growth import measure_growth

SUFFIXES = ("json", *(path.rpartition(".")[2] for path in PATHS if "." in path))
RARITIES = {"a": 1.0, "b": 2.0, "x": 3.0}


def outline_and_show(path: str, text: str) -> None:
    """Do with a text what indexing, listing, loading and a search do."""
    chunk_document(path, text)
    outline = read_document(path, text)
    find_spans(outline, ["a", "a-1/b", "no such part", "L1-L9"])
    whole = Section(0, len(text), 0, "", "*")
    render_outline("s", "t", text, whole, outline.sections)
    middle = len(text) // 2
    for span in ((0, min(1_200, len(text))), (middle, min(middle + 1_200, len(text)))):
        find_excerpt(outline, span, RARITIES, 300)
        find_beside(outline, *span)


def read_as_words(text: str) -> None:
    """Do with a text what is done whatever its format."""
    space(fold(text))
    split_identifiers(text)
    explain_unsearched("a.js", text)
    list(mark_fenced(text.splitlines()))
    find_key_sentence(text, RARITIES)
    for make in (defuse, one_line, visible_text):
        make(text)


def read_as_front_matter(text: str) -> None:
    """Read a text as front matter, and as a value of it."""
    for framed in (f"---\n{text}", f"---\nsummary: {text}\n---\ntext", f"+++\n{text}\n+++\n"):
        read_front_matter(framed)
        summarize(framed.encode("utf-8", "replace"), "a.md")


def bind(path: str) -> Callable[[str], object]:
    return lambda text: outline_and_show(path, text)


def fuzz(name: str) -> Callable[[str], object]:
    return lambda text: TARGETS[name](text.encode("utf-8", "surrogatepass"))


PARSERS: Mapping[str, Callable[[str], object]] = {
    **{suffix: bind(f"a.{suffix}") for suffix in SUFFIXES},
    **{f"fuzz {name}": fuzz(name) for name in TARGETS if name not in {"chunking", "front_matter"}},
    "words": read_as_words,
    "front matter": read_as_front_matter,
    "summary of Markdown": lambda text: summarize(text.encode("utf-8", "replace"), "a.md"),
    "summary of rst": lambda text: summarize(text.encode("utf-8", "replace"), "a.rst"),
    "summary of a man page": lambda text: summarize(
        f".TH A\n.SH NAME\n{text}".encode("utf-8", "replace"), "a.1"
    ),
    "summary of code": lambda text: summarize(text.encode("utf-8", "replace"), "a.py"),
}

UNITS = (
    *(
        "#",
        "# a\n",
        "## A\n",
        "```\n",
        "    ````x\n",
        "- ```\n",
        "~~~\n",
        "- ",
        "> ",
        "1. ",
        "* a\n",
    ),
    *(
        "[",
        "](",
        "[a](b)",
        "![",
        "<",
        "</",
        "<h1>",
        "<h1>a</h1>",
        "<h2 id=a>",
        "<p>",
        "<pre>",
        "<!--",
    ),
    *("<main>", "<a href='", "<td>", "&#1", "&amp;", "|", "a | b\n", "a\n===\n", "===\n", "---\n"),
    *(
        "!!! a\n",
        "    x\n",
        "  \n",
        ".. a::\n",
        ".. _a:\n",
        ".. |a| replace:: b\n",
        ":a: b\n",
        ".. a:: b:: c:: d\n",
        "a::\n\n x\n",
    ),
    *("\\section{", "\\begin{code}\n", "=begin a\n", "= a", "<nowiki>", "{{{\n", "h1(#", "bc. a\n"),
    *("=head1 C<", "@example\n", "<![CDATA[", "{/*", "a{`\n", "<div>\n", "[[a|"),
    *(".. function:: a\n", "def f():\n", "# c\n", "@d\n", "class A {\n", "func (a A) b(", "f(a, "),
    *(
        "{",
        "}",
        "(",
        ")",
        "]",
        "//",
        "/*",
        "'",
        '"',
        "\\",
        "`",
        "*",
        "_",
        "$",
        "=",
        "=\n",
        "a: b\n",
        "a:\n ",
    ),
    *(
        " ",
        "\t",
        "\n",
        "\r\n",
        "\u200b",
        "a",
        "aB",
        "a b ",
        "a.",
        "1.",
        "ß",
        "部",
        "é",
        "\x1b[",
        "%",
        "\ud800",
    ),
)
PAIRS = (
    *(("{", "}"), ("(", ")"), ("[", "]"), ('"', '"'), ("<b>", "</b>"), ("<div>", "</div>")),
    *(("<ul><li>", "</li></ul>"), ("<table><tr><td>", "</td></tr></table>"), ('{"a":[', "]}")),
    *(("<h1>" * 40, "</h1>"), ("`", "`"), ("**", "**")),
)


AROUND = ("<ul><li>", "<a href=x>", "<h1>", "<b>", "<table><tr><td>", "<blockquote>", "<dl><dd>")
INSIDE = ("<b>", "<td>", "<a href=x>y</a>", "<h1>", "<p>x", "</b>")
"""Elements around many others, each pair a family: as deep as a tree may be, and then wide."""

NAMED = {
    "headings": "# {}\n",
    "titles": "{}\n=====\n",
    "functions": "def {}():\n  pass\n",
    "options": ".. option:: {}\n\n   a\n\n",
    "keys": "{}: 1\n",
}


def find_families() -> Iterator[tuple[str, Callable[[int], str]]]:
    """Yield named makers of texts of a length: repetition, nesting, near-equal names."""
    for unit in UNITS:
        yield f"{unit!r} repeated", repeat(unit)
    for start, end in PAIRS:
        yield f"{start!r} nested", nest(start, end)
        yield f"{start!r}{end!r} repeated", repeat(start + end)
    for around, inside in product(AROUND, INSIDE):
        yield f"{inside!r} deep in {around!r}, repeated", widen(around, inside)
    yield "headings that are not closed", repeat("<h1>" * 495 + "</h1>\n")
    for name, line in NAMED.items():
        yield f"{name} that differ in case", number(line, spell)
        yield f"{name} that fold alike", number(line, fold_alike)
        yield f"{name} with numbers", number(line, lambda n: f"a-{n % 7}" if n % 2 else f"a-{n}")
    yield "fences of falling length", fall("    {}x\n", "`")
    yield "fences in items of falling length", fall("- {}x\n", "~")
    yield "titles of falling length", fall("x\n{}\n", "=")
    yield "blanks behind the command of a heading", begin("\\section", " ")
    yield "a receiver that has no end", begin("func (", "a[ ")
    yield "modifiers of nothing", repeat("public static ")
    yield "comments above a function", lambda size: "# c\n" * (size // 4) + "def a():\n  pass\n"


def repeat(unit: str) -> Callable[[int], str]:
    return lambda size: unit * (size // len(unit) + 1)


def begin(start: str, unit: str) -> Callable[[int], str]:
    return lambda size: start + unit * (size // len(unit))


def nest(start: str, end: str) -> Callable[[int], str]:
    def make(size: int) -> str:
        depth = size // len(start + end) + 1
        return start * depth + "\n" + end * depth

    return make


def widen(around: str, inside: str) -> Callable[[int], str]:
    start = around * (120 // around.count("<") - 1)
    return lambda size: start + inside * (max(0, size - len(start)) // len(inside))


def number(line: str, name: Callable[[int], str]) -> Callable[[int], str]:
    def make(size: int) -> str:
        count = size // (len(line) + 14) + 1
        return "".join(line.format(name(n)) for n in range(count))

    return make


def fall(line: str, sign: str) -> Callable[[int], str]:
    def make(size: int) -> str:
        most = int(size**0.5)
        return "".join(line.format(sign * length) for length in range(most + 3, 3, -1)) + "\n" * (
            size // 2
        )

    return make


def spell(number: int) -> str:
    """Return one of the many spellings of a word."""
    return "".join(c.upper() if number >> at & 1 else c for at, c in enumerate("abcdefghijklmn"))


def fold_alike(number: int) -> str:
    return "".join("ß" if number >> at & 1 else "ss" for at in range(12))


FAMILIES = dict(find_families())
USUAL = [name for name in FAMILIES if not name.endswith("repeated")]


def scan_for_each_length(text: str) -> None:
    """Read a text again for each length of a fence in it, as a parser of fences once did."""
    for length in {len(line) for line in text.split("\n")}:
        sum(map(length.__eq__, map(len, text)))


def scan_at_each_level(text: str) -> None:
    """Read a text again for each of 300 levels, as a writer of nested elements once did."""
    for _ in range(300):
        "".join(character.upper().lower().strip().title() for character in text)


SLOW: Mapping[str, tuple[Callable[[str], object], str]] = {
    "for each length": (scan_for_each_length, "fences of falling length"),
    "at each level": (scan_at_each_level, "'<b>' deep in '<ul><li>', repeated"),
}


@pytest.mark.slow
@pytest.mark.parametrize("slow", cases(SLOW))
def test_the_measure_finds_code_that_reads_a_text_again(
    slow: tuple[Callable[[str], object], str],
) -> None:
    parse, family = slow
    assert measure_growth(parse, FAMILIES[family])


@pytest.mark.parametrize(
    "parse",
    cases(
        PARSERS,
        *("html", "fuzz tool_arguments", "fuzz mcp_message", "fuzz notebook"),
        *("fuzz robots", "front matter"),
    ),
)
def test_time_is_in_the_length_of_nested_and_near_equal_texts(
    parse: Callable[[str], object],
) -> None:
    require_linear(parse, {name: FAMILIES[name] for name in USUAL})


@pytest.mark.slow
@pytest.mark.parametrize("parse", cases(PARSERS))
def test_time_is_in_the_length_of_what_is_repeated(
    request: pytest.FixtureRequest, parse: Callable[[str], object]
) -> None:
    if "html" in request.node.callspec.id:
        reason = "a known growth of HTML, whose cause is not found yet"
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=False))
    require_linear(parse, FAMILIES)
    pairs = pairwise(UNITS)
    require_linear(parse, {f"{one!r}{other!r}": repeat(one + other) for one, other in pairs})


BLANK = ("\n", " \n", "\r\n", "    \n", "- ", "===", "a.")
BELOW = ("", "# a\n", "!!! a\n    x\n", ".. a::\n x\n", "a::\n\n x\n", "- ~~~\n")
LONG = 40_000
HELD = 50
"""Bytes of memory a character may take: a group that a regular expression repeats took 140 to 700
for each line."""


def measure_memory(parse: Callable[[str], object], text: str) -> float:
    """Return how many bytes are held at once for each character of a text."""
    return peak_of(lambda: parse(text)) / len(text)


@pytest.mark.parametrize(
    "parse", cases({name: PARSERS[name] for name in ("md", "rst", "py")}, "py")
)
def test_memory_does_not_grow_with_blank_lines(parse: Callable[[str], object]) -> None:
    parse("a\n")
    found = {
        (below, unit): measure_memory(parse, below + unit * (LONG // len(unit)) + "a")
        for below, unit in product(BELOW, BLANK)
    }
    assert {each: held for each, held in found.items() if held > HELD} == {}


@pytest.mark.slow
@pytest.mark.parametrize("parse", cases({suffix: PARSERS[suffix] for suffix in SUFFIXES}))
def test_memory_is_a_few_times_the_size_of_what_is_repeated(
    parse: Callable[[str], object],
) -> None:
    """A heading for every other character takes most: of a long text, only 50,000 are kept."""
    found = {unit: measure_memory(parse, unit * (LONG // 4 // len(unit))) for unit in UNITS}
    assert {unit: held for unit, held in found.items() if held > 3 * HELD} == {}


def require_linear(
    parse: Callable[[str], object], families: Mapping[str, Callable[[int], str]]
) -> None:
    """Fail for the first family of texts for which a parser is not linear, measured twice."""
    for name, make in families.items():
        # What else the machine does can look like growth once.
        found = measure_growth(parse, make) and measure_growth(parse, make)
        assert not found, f"{name}: {found}"


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.md", "- ```\n" * 8_000 + "~~~\n" * 8_000), ("a.ts", "const a" + ":b" * 150_000)],
)
def test_signs_that_nothing_answers_are_looked_at_once(path: str, text: str) -> None:
    with at_most(0.15):
        read_document(path, text)


@pytest.mark.parametrize(
    ("path", "start"),
    [("a.pm", "package a"), ("a.typ", "#let "), ("a.tex", "\\def"), ("a.txt", ""), ("a.1", ".")],
)
def test_the_start_of_a_file_tells_its_format_in_time(path: str, start: str) -> None:
    units = ("_", "1", "1.", " ", "a ", "\n", "=", "#let a\n", "\\def")
    texts = [f"{start}{unit * START * 100}" for unit in units]
    with at_most(0.05):
        for text in texts:
            find_format(path, text)


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f71\u0f72", "\u302c\u302a"])
def test_a_letter_with_very_many_marks_is_folded_in_time(marks: str) -> None:
    with at_most(0.3):
        fold("a" + marks * 20_000)
