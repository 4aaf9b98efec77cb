"""The lines of a subject that a search shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm_kb.rendering.excerpt import (
    find_beside,
    find_excerpt,
    find_key_sentence,
    mark_cuts,
    trim,
)
from llm_kb.rendering.parts import find_spans
from llm_kb.texts.document import Document, Section, find_line, find_line_numbers
from llm_kb.texts.outlines.outline import read_document
from tests.cost import at_most

WORDS = {"walrus": 3.0, "tusk": 2.0, "zoo": 1.0}
FILLER = "Nothing is said here.\n\n" * 10
ABOVE = f"{FILLER}{'x' * 90}\n\n"
LONG = f"{ABOVE}{FILLER}"
ROARS = "Lions roar, and they roar for the whole night. "
WRAPPED = "This is a line about a walrus which is so long that it\n"
LATE = f"…{'so ' * 17}sos at a walrus."


class Excerpt(NamedTuple):
    """An excerpt as a test reads it."""

    text: str
    start: int
    end: int
    part: Section
    is_whole: bool


def excerpt(
    outline: Document, span: tuple[int, int], most: int, shown: Sequence[tuple[int, int]] = ()
) -> Excerpt | None:
    found = find_excerpt(outline, span, WORDS, most, shown)
    if found is None:
        return None
    start, end, part = found
    is_whole = trim(outline.text, part.start, part.end) == (start, end)
    return Excerpt(mark_cuts(outline.text, start, end), start, end, part, is_whole)


def show(
    text: str, span: tuple[int, int] | None = None, path: str = "a.md", most: int = 100
) -> Excerpt:
    found = excerpt(read_document(path, text), span or (0, len(text)), most)
    assert found
    return found


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        pytest.param("a.md", "# A\n\nShort.\n", "# A\n\nShort.", id="short"),
        pytest.param(
            "a.rst", f"Text\n====\n\n{FILLER}.. _w:\n\nWalrus\n------\n\nTusks.\n\n" + "x" * 250,
            "Walrus\n------\n\nTusks.", id="with the title and without its label",
        ),
        pytest.param(
            "a.rst", f"{ABOVE}.. warning::\n\n    A walrus.\n\n    It has tusks.\n\n{'x' * 250}\n",
            ".. warning::\n\n    A walrus.\n\n    It has tusks.", id="a directive and its body",
        ),
        pytest.param(
            "a.rst", f"TT\n==\n\n{ABOVE}A walrus.\n\n.. _x: y\n\n.. _b:\n\nBB\n--\n\n{LONG}",
            "A walrus.\n\n.. _x: y", id="no heading after a target",
        ),
        pytest.param(
            "a.md", f"{ABOVE}Call this:\n\n```\nwalrus()\n\ntusk()\n```\n\n{'x' * 250}\n",
            "Call this:\n\n```\nwalrus()\n\ntusk()\n```", id="code and what announces it",
        ),
        pytest.param(
            "a.md", f"{ABOVE}- walrus\n\n  its tusks\n\n{'x' * 250}\n",
            "- walrus\n\n  its tusks", id="an item and its indented lines",
        ),
        pytest.param(
            "a.txt", FILLER + "walrus " * 40 + "tusks\n\n" + FILLER,
            "walrus " * 40 + "tusks", id="one block that is longer than asked for",
        ),
        pytest.param(
            "a.md", f"---\ntitle: Walrus\n---\n\n# Zoo\n\nWalrus.\n\n## Lion\n\n{'x' * 350}",
            "# Zoo\n\nWalrus.", id="below the front matter",
        ),
        pytest.param(
            "a.rst", f"{FILLER}#. A walrus.\n\n   {'Tusks ' * 60}so.\n\n#. No.\n\n   {'x' * 500}\n",
            f"#. A walrus.\n\n   {'Tusks ' * 60}so.", id="no first line of the next step",
        ),
        pytest.param(
            "a.rst", f".. _tusk: https://zoo.example/\n\nA walrus.\n\n{'x' * 350}",
            "A walrus.", id="without a target of links",
        ),
        pytest.param(
            "a.adoc", f"[[tusk]]\nA walrus.\n\n{'x' * 350}",
            "A walrus.", id="without a label of AsciiDoc",
        ),
    ],
)  # fmt: skip
def test_what_answers_is_shown_whole(path: str, text: str, shown: str) -> None:
    assert show(text, path=path).text == shown


def test_a_step_is_not_its_first_line_alone() -> None:
    text = f"{FILLER}#. A walrus.\n\n   {'Its tusk is so big. ' * 60}\n"
    assert show(text, path="a.rst").text.startswith("#. A walrus.\n\n   Its tusk")


def test_what_only_front_matter_says_is_shown_by_the_text_below() -> None:
    text = f"---\ntitle: Walrus\n---\n\n# Lion\n\nIt roars.\n\n## Mane\n\n{FILLER}"

    assert show(text, (0, text.index("# Lion"))).text == "# Lion\n\nIt roars."


def test_addresses_of_links_are_not_what_a_text_says() -> None:
    links = "[a]: https://zoo.example/walrus/tusk\n[b]: /zoo/walrus\n"
    text = f"# Zoo\n\nA tusk.\n\n{FILLER}{links}"
    assert show(text).text.startswith("# Zoo\n\nA tusk.")
    assert show(f"# Links\n\n{links}").text.endswith("/zoo/walrus")
    codes = "[E1]: walrus\n[^2]: tusk\n"
    assert show(f"{ABOVE}{codes}\n{FILLER}", path="a.txt").text.startswith("[E1]: walrus")


def test_of_a_note_with_front_matter_only_that_is_shown() -> None:
    assert show("---\na: walrus\n---\n", (0, 9)).text == "---\na: walrus\n---"


def test_the_heading_counts_for_what_stands_below_it() -> None:
    text = f"# Walrus\n\n{'It has tusks. ' * 6}\n\n# Zoo\n\n{'There are tusks. ' * 6}\n\n"

    assert show(text).text.startswith("# Walrus")


def test_a_small_part_is_shown_whole_and_a_piece_of_another_is_named_by_it() -> None:
    text = (
        f"# Zoo\n\n{LONG}## Walrus\n\nOne.\n\nIts tusks.\n\n## Otter\n\n{LONG}A tusk.\n\n{FILLER}"
    )

    small, large = text.index("Its tusks"), text.index("A tusk")
    walrus = show(text, (small, small + 1))
    otter = show(text, (large, large + 1), most=40)

    assert (walrus.text, walrus.is_whole) == ("## Walrus\n\nOne.\n\nIts tusks.", True)
    assert (otter.part.anchor, otter.is_whole) == ("otter", False)
    assert otter.text.startswith("A tusk.")


def test_of_long_code_the_beginning_follows_the_sentence_that_announces_it() -> None:
    code = "".join(f"    line({number})\n" for number in range(300))
    text = f"{ABOVE}The walrus{' counts' * 9}::\n\n{code}\n{ABOVE}"
    at = text.index("The walrus")

    found = show(text, (at, at + 900), "a.rst", most=120)

    assert "counts::\n\n    line(0)\n" in found.text
    assert len(found.text) <= 120


def test_room_that_is_left_at_the_end_of_a_part_is_filled_with_what_is_above() -> None:
    text = f"# Zoo\n\n{ABOVE}It counts.\n\nThe walrus.\n\n# Otter\n\n{LONG}"
    at = text.index("The walrus")

    assert show(text, (at, at + 9)).text == "It counts.\n\nThe walrus."


def test_what_begins_amid_one_part_does_not_go_on_in_the_next() -> None:
    text = f"# Zoo\n\n{ABOVE}The walrus.\n\n# Otter\n\nA tusk.\n\n{LONG}"
    span = text.index("The walrus"), text.index("A tusk") + 9

    assert show(text, span).text == "The walrus."


def test_of_several_small_parts_the_one_that_answers_is_shown() -> None:
    small = "## Otter\n\nIt swims.\n\n## Walrus\n\nIts tusks.\n\n"
    text = f"# Zoo\n\n{FILLER * 50}{small}## Seal\n\n{LONG}"
    span = text.index("## Otter"), text.index("## Seal")

    found = show(text, span)

    assert found.text == "## Walrus\n\nIts tusks."
    assert (found.part.anchor, found.is_whole) == ("walrus", True)


def test_several_small_parts_that_answer_together_are_named_by_lines_around_them() -> None:
    small = "## Otter\n\nIn the zoo.\n\n## Walrus\n\nIts tusks.\n\n"
    text = f"# Lions\n\n{FILLER * 50}{small}## Seal\n\n{LONG}"
    span = text.index("## Otter"), text.index("## Seal")

    found = show(text, span)

    assert found.text == small.rstrip()
    assert found.part.anchor == "L973-L1053"


def test_a_passage_amid_a_long_part_is_named_by_lines_around_it_in_that_part() -> None:
    text = f"# Lions\n\n{FILLER}# Zoo\n\n{FILLER}A walrus.\n\n{FILLER * 60}# Seal\n\n{LONG}"
    at = text.index("A walrus")

    part = show(text, (at, at + 9)).part

    assert text[part.start :].startswith("# Zoo\n")
    assert 900 < part.end - part.start < 1000


@pytest.mark.parametrize(
    ("before", "after"), [(0, 60), (30, 30), (60, 0)], ids=["first", "amid", "last"]
)
def test_the_lines_around_a_passage_have_one_length_wherever_it_is(before: int, after: int) -> None:
    text = f"# Zoo\n\n{FILLER * before}A walrus.\n\n{FILLER * after}# Seal\n\n{LONG}"
    at = text.index("A walrus")

    part = show(text, (at, at + 9)).part

    assert part.start <= at < part.end
    assert 900 < part.end - part.start < 1100
    assert part.anchor.startswith("L")


def test_a_paragraph_that_was_found_in_part_is_shown_whole() -> None:
    text = f"{LONG}A walrus\nhas two\nlong tusks.\n\n{LONG}"
    at = text.index("has two")

    assert show(text, (at, at + 8)).text.startswith("A walrus\nhas two\nlong tusks.")


def test_of_a_block_that_is_too_long_the_lines_around_the_words_are_shown() -> None:
    lines = [f"    {{ name: {n}, path: 'nothing at all' }}," for n in range(200)]
    lines[120] = "    { name: walrus, path: 'tusk' },"
    text = "\n".join(["table = [", *lines, "]", ""])
    span = text.index("    { name: 80,"), text.index("    { name: 140,")

    found = show(text, span, "a.js", most=300)

    assert "walrus" in found.text
    assert len(found.text) <= 300


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("lion " * 200 + "walrus tusk " * 8 + "lion " * 200, "…lion lion walrus tusk walrus"),
        (
            f"{'A lion roars. ' * 70}A walrus has tusks. {'A lion roars. ' * 70}",
            "…A lion roars. A walrus has tusks. ",
        ),
    ],
    ids=["word", "sentence"],
)
def test_a_long_line_is_cut_after_a_sentence_or_a_word(line: str, shown: str) -> None:
    found = show(f"# Zoo\n\n{line}\n")

    assert "walrus" in found.text
    assert found.text.startswith(shown)
    assert found.text.endswith("…")
    assert f" {found.text.strip('…')} " in line


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("A zoo.\n\nIt has a walrus. It has tusks.\n", (2, "It has a walrus.")),
        ('| <a id="t">`tusk`</a> | A zoo.<br/>Open. |\n', (0, "| `tusk` | A zoo.Open.")),
        ("- <b> of a walrus, Vec<i>\n- zoo\n", (0, "- <b> of a walrus, Vec<i>")),
        ("word " * 50 + "has a walrus\n", (0, "…" + "word " * 11 + "has a walrus")),
        ("walrus " * 50, (0, "walrus " * 34 + "w…")),
        ("\u6771\u4eac\u3002walrus\u3002\n", (0, "walrus\u3002")),
        (f"{WRAPPED}  has a tusk. Zoo.\n", (0, f"{WRAPPED[:-1]} has a tusk.")),
        (f"A zoo.\n{WRAPPED}has tusks\n", (1, f"{WRAPPED[:-1]} has tusks")),
        (f"{WRAPPED}has {'no ' * 90}\nof a tusk\n", (0, f"{WRAPPED[:-1]} has {'no ' * 59}no…")),
        (f"{'A lion roars and roars ' * 2}\n{'so ' * 90}sos\nat a walrus.\n", (1, LATE)),
        (f"{'Lions roar at night and ' * 3}so\n{'so ' * 90}sos at a walrus.\n", (1, LATE)),
        (f"{WRAPPED}- has tusks\n", (0, WRAPPED[:-1])),
        (f"{WRAPPED}2. has tusks\n", (0, WRAPPED[:-1])),
        (f"| {WRAPPED}| has tusks |\n", (0, f"| {WRAPPED[:-1]}")),
        (f"{WRAPPED}{'`' * 3}\ntusk\n", (0, WRAPPED[:-1])),
        (f"{WRAPPED}tusk: 3\n", (0, WRAPPED[:-1])),
        (f"{WRAPPED}tusk = 3\n", (0, WRAPPED[:-1])),
        (f'{WRAPPED}"tusk": 3\n', (0, WRAPPED[:-1])),
        (f"{WRAPPED}b) tusk\n", (0, WRAPPED[:-1])),
        (f"{WRAPPED[:-1]} (it);\ntusk\n", (0, f"{WRAPPED[:-1]} (it);")),
        ("[walrus]: https://e.org/walrus\n```walrus\ntusk\n", (2, "tusk")),
        ("Animals (e.g. a walrus)... of a zoo. It\n", (0, "Animals (e.g. a walrus)... of a zoo.")),
        ("A zoo. \n\n<a\nb=c> It has a walrus. \n", (3, "b=c> It has a walrus.")),
        (f"    {WRAPPED[:-1]} {{\n    zoo.tusk();\n", (0, f"{WRAPPED[:-1]} {{")),
        (f"{WRAPPED}\nIt has tusks.\n", (0, WRAPPED[:-1])),
        ("A short line of a walrus\nhas tusks\n", (0, "A short line of a walrus")),
        ("None.\n", (0, "None.")),
        ("", (0, "")),
    ],
    ids=[
        *("rarest", "tags", "no tags", "long", "longer", "Chinese"),
        *("wrapped", "from a new line", "wrapped and long", "cut at its start", "cut"),
        *("item", "number", "row", "fence", "setting", "assignment", "key", "letter"),
        *("statement", "not said"),
        *("abbreviation", "spaces", "code", "paragraph", "short line", "no word", "empty"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_sentence_speaks_for_a_passage(text: str, key: tuple[int, str], end: str) -> None:
    assert find_key_sentence(text.replace("\n", end), WORDS) == key


def test_a_long_sentence_is_cut_around_its_words_whatever_their_accents() -> None:
    _, sentence = find_key_sentence("so " * 90 + "Café tusk", {"cafe": 1.0})

    assert sentence.startswith("…")
    assert sentence.endswith("Café tusk")


def test_a_closing_fence_alone_does_not_begin_a_passage() -> None:
    code = "code()\n" * 140
    text = f"{ABOVE}```\n{code}```\n\nA walrus.\n\n{FILLER}"
    start = text.index("```\n\nA walrus")
    assert show(text, (start, start + 20)).text.startswith("A walrus.")
    assert show("```\nwalrus\n```\n").text.startswith("```")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.rst", ".. include:: ../WALRUS.rst\n"),
        ("a.adoc", "include::walrus.adoc[]\n"),
        ("a.md", "{{#include ../WALRUS.md}}"),
    ],
)
def test_a_page_that_only_includes_another_has_nothing_to_show(path: str, line: str) -> None:
    assert excerpt(read_document(path, line), (0, len(line)), 100) is None
    assert show(f"{line}\nA walrus.\n", path=path).text == "A walrus."


def test_what_was_shown_is_not_shown_again() -> None:
    whole = read_document("a.md", f"{FILLER}A walrus.\n\n{FILLER}")
    first = excerpt(whole, (0, len(whole.text)), 100)
    assert first
    shown = [(first.start, first.end)]

    again = excerpt(whole, (first.start, first.start + 1), 30, shown)
    rest = excerpt(whole, (0, len(whole.text)), 100, [(0, first.start)])

    assert again is None
    assert rest
    assert rest.start >= first.start
    assert excerpt(whole, (len(whole.text),) * 2, 100) is None


@given(
    st.lists(
        st.sampled_from(["# a", "a", "walrus", "```", ".. x::", "    tusk", "zoo:", "---", ""]),
        max_size=40,
    ),
    st.sampled_from(["a.md", "a.rst", "a.py"]),
    st.integers(0, 39),
)
def test_an_excerpt_is_whole_lines(lines: list[str], path: str, line: int) -> None:
    text = "\n".join(lines) + "\n"
    start = len("\n".join([*lines[:line], ""]))

    found = excerpt(read_document(path, text), (start, len(text)), 10)

    if found:
        first, last = find_line_numbers(text, found.start, found.end)
        shown = text.split("\n")[first - 1 : last]
        assert found.text == "\n".join(shown)
        assert found.text.strip()


@given(
    st.lists(
        st.sampled_from(
            [
                "# a",
                "## walrus",
                "### zoo",
                "# zoo",
                "```",
                "tusk",
                "",
                "class A:",
                "def walrus(): ...",
                "lion " * 900,
            ]
        ),
        min_size=5,
        max_size=15,
    ),
    st.sampled_from(["a.md", "a.py"]),
    st.integers(0, 9),
    st.integers(3, 9),
    st.sampled_from([60, 1200]),
)
@example(["# zoo", "tusk", "# a"], "a.md", 1, 8, 1200)
@example(["# zoo", "```", "### zoo", "```", "# zoo"], "a.md", 1, 8, 60)
def test_the_address_of_an_excerpt_loads_its_lines(
    lines: list[str], path: str, line: int, count: int, most: int
) -> None:
    text = "\n".join(["# zoo", "", "lion " * 1800, *lines]) + "\n"
    whole = read_document(path, text)
    span = find_line(text, 0, 3 + line), find_line(text, 0, 3 + line + count)

    found = excerpt(whole, span, most)

    if found:
        ((part,), _) = find_spans(whole, [found.part.anchor])
        assert part.start <= found.start
        assert found.text.strip("…") in text[part.start : part.end]


def test_a_part_of_a_few_lines_is_shown_whole_whatever_the_length_of_a_passage() -> None:
    part = f"## Walrus\n\n{'Its tusks. ' * 30}\n\n{'More of it. ' * 14}\n\nDefault: False\n\n"
    text = f"# Zoo\n\n{FILLER * 40}{part}## Otter\n\n{FILLER * 40}"
    at = text.index("Its tusks")

    found = show(text, (at, at + 9), most=400)

    assert (found.text, found.is_whole) == (part.rstrip(), True)


@pytest.mark.parametrize(
    ("path", "block"),
    [
        pytest.param(
            "a.md",
            f"- `walrus`: how many tusks. {'It counts. ' * 12}\n  Default: two.\n",
            id="an item of a list without blank lines",
        ),
        pytest.param(
            "a.md",
            "Count the walrus like this\n\n```\ntusk()\n```\n",
            id="code and its sentence",
        ),
        pytest.param("a.md", f"| walrus | {'tusk ' * 60}|\n", id="a row of a table"),
        pytest.param(
            "a.yml",
            "# How many tusks a walrus has.\n# It counts.\n[ tusks: <int> | default = 2 ]\n",
            id="a definition and its comment",
        ),
    ],
)
def test_what_belongs_together_is_not_cut(path: str, block: str) -> None:
    around = {
        "-": "- `lion`: it roars. " + "Loudly. " * 14 + "\n  Default: none.\n",
        "|": f"| lion | {'roar ' * 60}|\n",
        "#": "# How loud it roars.\n[ roar: <int> | default = 1 ]\n",
    }.get(block[0], "A lion.\n\n")
    text = f"# Zoo\n\n{around * 30}{block}{around * 30}"
    start = text.rfind("\n", 0, text.index("tusk")) + 1  # as a chunk begins, perhaps within it
    found = show(text, (start, start + 800), path, most=300)

    assert block.rstrip() in found.text


@pytest.mark.parametrize(
    "line",
    [
        ".. a:: b:: c:: d:: e:: f:: g:: h:: i\n",
        ".. |Name1| replace:: :cpp:class:`boost::asio::Name1`\n",
        ".. _a:\n   :b: c::\n",
    ],
)
def test_directives_in_a_row_are_read_once(line: str) -> None:
    text = f"Walrus\n======\n\n{FILLER}{line * 2_000}the walrus\n\n{FILLER}"

    with at_most(2):
        show(text, (0, len(text)), "a.rst", most=300)


@pytest.mark.parametrize(
    ("path", "head", "steps"),
    [
        ("a.md", "## Feeding\n\n", "Find the walrus.\nTake some fish.\nFeed it.\n"),
        (
            "a.rst",
            ".. _fish:\n.. _food:\n\nFeeding\n-------\n\n",
            "1. Find the walrus:\n\n   .. code-block:: sh\n\n      $ walrus --find\n",
        ),
    ],
    ids=["a paragraph below a heading", "a heading below labels of references"],
)
def test_a_heading_is_shown_with_all_that_its_first_block_needs(
    path: str, head: str, steps: str
) -> None:
    rest = "\n\n".join(f"Nothing is said in paragraph {n} of it." for n in range(40))
    title = "Zoo\n===\n\n" if path == "a.rst" else "# Zoo\n\n"
    text = f"{title}{head}{steps}\n{rest}"
    found = show(text, (0, len(title + head)), path, most=len(head) + 20).text

    assert steps.rstrip() in found
    assert "Nothing" not in found


def test_a_long_paragraph_is_not_cut_amid_a_sentence() -> None:
    lines = "The walrus swims in the cold sea and it eats a great\nmany clams at night. " * 30
    found = show(f"# Zoo\n\n{FILLER * 9}{lines}\n\n{FILLER * 9}", most=300)

    assert found.text.strip("…").rstrip().endswith("at night.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("--dive=<n>::\n\tHow deep a walrus dives.\n", "--dive=<n>:: How deep a walrus dives."),
        ("zoo\n\n    A walrus.\n", "A walrus."),
        ("No walrus here.\nA walrus with a tusk.\n", "A walrus with a tusk."),
        (f"{'x' * 90};\n  A walrus.\n", "A walrus."),
    ],
    ids=["option", "blank line", "beside it", "long"],
)  # fmt: skip
def test_a_sentence_is_shown_with_its_head(text: str, sentence: str) -> None:
    assert find_key_sentence(text, WORDS)[1] == sentence


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (f"# Zoo\n\n<A walrus.>\n\nIt swims.\n\n{ROARS}\n\n# Seal\n\n{ROARS}\n", None, (5, 7)),
        (f"# Zoo\n\n{ROARS}\n\n<A walrus.>\n\n# Seal\n\n{ROARS}\n", (1, 3), None),
        (f"<# Zoo\n\nA walrus.>\n\n# Seal\n\n{ROARS}\n", None, None),
        (f"# Zoo\n\n{ROARS}\n\n<A walrus.>\n\n{ROARS}\n", (1, 3), (7, 7)),
        (f"<A walrus.>\n\n{ROARS * 40}\n\n{ROARS * 40}\n\nA seal.\n", None, (3, 3)),
        (f"{ROARS}\n\n" * 99 + "<A walrus.>\n", (103, 197), None),
        (f"<A walrus> {'has tusks ' * 120}\n\n{'A seal. ' * 9}\n", None, (3, 3)),
        ("# Zoo of all the animals of the whole world\n\n<A walrus.>\n", None, None),
        ("---\ntitle: Zoo of all the animals of the whole world\n---\n\n<A walrus.>\n", None, None),
        ("# Zoo\n\n<A walrus.>\n\n:::\n", None, None),
    ],
    ids=[
        *("below", "above", "none", "both", "far below", "far above", "line that is cut"),
        *("only a heading", "front matter", "signs"),
    ],
)
def test_the_lines_beside_an_excerpt_are_named(
    text: str, before: tuple[int, int] | None, after: tuple[int, int] | None
) -> None:
    start, end = text.index("<"), text.index(">") - 1

    found = find_beside(read_document("a.md", text.replace("<", "").replace(">", "")), start, end)

    assert found == [before, after]


def test_a_description_is_shown_with_its_head_and_a_long_list_is_cut_between_its_items() -> None:
    other = "`--lion=<n>`::\n\tNothing is said about it here, and nothing more.\n"
    walrus = "`-w`::\n`--walrus`::\n\tHave tusks.  These are long, and they grow all the time.\n"
    text = f"{other * 9}--\n{other * 5}{walrus}{other * 5}--\n{other * 9}"
    at = text.index("These")

    assert walrus in show(text, (at, at + 20), "a.adoc", most=300).text
    assert show(text, (at, at + 20), "a.adoc", most=300).text.startswith("`-")


def test_a_cut_is_at_the_end_of_a_sentence_also_of_a_long_line() -> None:
    line = "\tA walrus is described by this line, which is wrapped after its end.\n"
    wrapped = "\tAnd this one goes on in the next, since it is not at its end\n\tyet.\n"
    text = f"# Zoo\n\n`--merge`::\n{line}{wrapped * 30}{FILLER * 20}"
    found = show(text, (0, 900), most=300).text

    assert found.endswith((" end.", "yet."))
    assert "…" not in found


def test_the_address_of_a_passage_that_begins_its_section_is_the_section() -> None:
    begun = f"## Walrus\n\nTusks.\n\n{FILLER * 9}"
    text = f"# Zoo\n\n{FILLER}{begun}## Lions\n\n{FILLER * 30}"
    first, later = text.index("## Walrus"), text.index("Tusks") + 1_000

    assert show(text, (first, first + 30)).part.anchor == "walrus"
    assert show(text, (later, later + 30)).part.anchor.startswith("L")
    lions = text.index("## Lions")
    assert show(text, (lions, lions + 30)).part.anchor.startswith("L")
