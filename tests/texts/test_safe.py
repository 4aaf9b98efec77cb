"""Others' text in our texts: on one line, visible, without closing tags."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_kb
from llm_kb.texts.safe import (
    TAGS,
    UNSEEN,
    attribute,
    defuse,
    one_line,
    visible_line,
    visible_text,
)

CLOSING = re.compile(r"<\s*/\s*(subject|topic|knowledge)(?![\w.:-])", re.IGNORECASE)

hostile = st.lists(
    st.sampled_from(
        ["<", "/", "</", " ", "\n", "\t", "subject", "TOPIC", "Knowledge", ">", "\\", '"', "x", "s"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("</subject>", r"<\/subject>", id="subject"),
        pytest.param("</topic>", r"<\/topic>", id="topic"),
        pytest.param("</knowledge>", r"<\/knowledge>", id="knowledge"),
        pytest.param("a</subject></topic>b", r"a<\/subject><\/topic>b", id="several"),
        pytest.param("</SubJect>", r"<\/SubJect>", id="any case"),
        pytest.param("</ subject >", r"<\/ subject >", id="inner white space"),
        pytest.param("< / subject\n>", r"<\ / subject" + "\n>", id="white space before the slash"),
        pytest.param("<\u200b/\ufeffsubject>", "<\\\u200b/\ufeffsubject>", id="without width"),
        pytest.param("</sub ject>", r"<\/sub ject>", id="white space inside the name"),
        pytest.param("</message></DIFF>", r"<\/message><\/DIFF>", id="those of a commit"),
        pytest.param("</subject\u3164x>", "<\\/subject\u3164x>", id="a blank letter after it"),
        pytest.param("</subject a='b'>", r"<\/subject a='b'>", id="attributes"),
        pytest.param("</subject", r"<\/subject", id="left open for what follows"),
        pytest.param(r"<\/subject>", r"<\/subject>", id="defused already"),
        pytest.param("</subjects> </topic-list>", "</subjects> </topic-list>", id="other tags"),
        pytest.param('<subject "x">', '<subject "x">', id="an opening tag"),
        pytest.param("a < b and b/subject", "a < b and b/subject", id="no tag"),
        pytest.param("", "", id="empty"),
    ],
)
def test_defuse(text: str, expected: str) -> None:
    assert defuse(text) == expected


@given(hostile)
def test_defused_text_closes_nothing_and_stays_as_it_is(text: str) -> None:
    defused = defuse(text)
    assert not CLOSING.search(defused)
    assert defuse(defused) == defused
    assert re.sub(r"<\\(?=\s*/)", "<", defused) == re.sub(r"<\\(?=\s*/)", "<", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param('say "hi"', "say &quot;hi&quot;", id="quotes"),
        pytest.param("two\nlines", "two lines", id="line feed"),
        pytest.param('"></subject>', r"&quot;><\/subject>", id="breaking out"),
        pytest.param("a\x1b[31mb", "a[31mb", id="control character"),
        pytest.param("two  spaces", "two  spaces", id="spaces of a slug are its own"),
        pytest.param("no\u00a0break ", "no\u00a0break ", id="unusual spaces of a slug too"),
    ],
)
def test_attribute(text: str, expected: str) -> None:
    assert attribute(text) == expected


@given(st.text() | hostile)
def test_an_attribute_ends_neither_its_quotes_nor_its_line(text: str) -> None:
    value = attribute(text)
    assert '"' not in value
    assert len(value.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(" a \n\t b\r\n", "a b", id="white space"),
        pytest.param("a\u2028b\u0085c\u00a0d", "a b c d", id="unusual white space"),
        pytest.param("a\x00b\x7fc", "abc", id="control characters"),
        pytest.param("a\u202eb\u200bc\U000e0041d", "abcd", id="invisible characters"),
        pytest.param("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb", id="joined emoji"),
        pytest.param("a\ud800b", "ab", id="lone surrogate"),
        pytest.param("", "", id="empty"),
    ],
)
def test_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" a \n b", "a b"),
        ("a\u202eb\u200bc\x1b[2J\ud800", "a\\u202eb\\u200bc\\x1b[2J\\ud800"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ],
    ids=["white space", "hidden", "joined emoji"],
)
def test_visible_line(text: str, expected: str) -> None:
    assert visible_line(text) == expected


@given(st.text())
def test_one_line_is_one_line_and_stays_as_it_is(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert one_line(line) == line


def test_only_a_line_feed_ends_a_line_for_people() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\r\ni\n"
    assert visible_text(text) == "a b c d e f g h\ni\n"


@given(st.text())
def test_text_for_people_holds_nothing_a_terminal_carries_out(text: str) -> None:
    shown = visible_text(text)
    kept = "\n\t\u200c\u200d"
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert [c for c in shown if unicodedata.category(c) in hidden and c not in kept] == []
    assert visible_text(shown) == shown


def test_text_for_people_keeps_its_lines_and_shows_codes() -> None:
    text = "one\r\n\ttwo  \x1b]0;title\x07\n\n  three\u202e\u200d\xa0ü\U000e0041"
    assert visible_text(text) == (
        "one\n\ttwo  \\x1b]0;title\\x07\n\n  three\\u202e\u200d\xa0ü\\U000e0041"
    )


IGNORABLE = """
    AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0
    FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF
"""
"""Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt."""


@pytest.mark.parametrize("points", IGNORABLE.split())
@pytest.mark.parametrize(
    "around", ["{}", "a{}b", " {} ", "字{}字", "\U0001f469{}\U0001f4bb", "é{}"]
)
def test_what_unicode_ignores_is_unseen(points: str, around: str) -> None:
    first, _, last = points.partition("-")
    for code in range(int(first, 16), int(last or first, 16) + 1):
        assert UNSEEN.findall(around.format(chr(code))) == [chr(code)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("می\u200cخواهم", "", id="Persian"),
        pytest.param("क्\u200dष", "", id="Devanagari"),
        pytest.param("می\u200c\u200cخ", "\u200c\u200c", id="two joiners"),
        pytest.param("می\u200c", "\u200c", id="nothing joined after it"),
        pytest.param("\u200cمی", "\u200c", id="nothing joined before it"),
        pytest.param("۱\u200c۲", "\u200c", id="digits do not join"),
        pytest.param("a\r\nb\tc\n", "", id="line ends and tabs"),
        pytest.param("a\rb", "\r", id="a carriage return alone"),
        pytest.param("naïve — “x” ✅ 字", "", id="what is seen"),
        pytest.param("a\x1b[2J", "\x1b", id="an escape"),
    ],
)
def test_unseen(text: str, expected: str) -> None:
    assert "".join(UNSEEN.findall(text)) == expected


def test_one_table_has_the_characters_that_nobody_sees() -> None:
    """No other module has a class of its own, but for what search takes for the same word."""
    package = Path(llm_kb.__file__).parent
    odd = re.compile(r"\\(?:u200[b-f]|u20[26]\w|ufe0\w|u180[b-f]|u3164|U000e0)")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if odd.search(path.read_text(encoding="utf-8").replace("\\u2028\\u2029", ""))
    }
    assert found == {"texts/folding.py", "texts/safe.py"}


BLANK_NAMES = re.compile(
    "(?<!GAP )(?<!LINE )FILLER|BRAILLE PATTERN BLANK|INHERENT|GRAPHEME JOINER"
    "|VARIATION SELECTOR|NULL NOTEHEAD"
)
"""By their names: marks, letters and symbols that are blank or join others."""


@cache
def list_unseen() -> frozenset[str]:
    """Return the characters of all code points that are not seen."""
    return frozenset(filter(_is_unseen, map(chr, range(sys.maxunicode + 1))))


def _is_unseen(character: str) -> bool:
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}:
        return True
    return bool(BLANK_NAMES.search(unicodedata.name(character, "")))


PLACES = ("<{}/NAME>", "</{}NAME>", "</NAME{}>", "</NAME{}x>", "<{0}/{0}N{0}AME{0}>")


@pytest.mark.slow
@pytest.mark.parametrize("name", TAGS)
def test_no_character_that_is_not_seen_hides_a_closing_tag(name: str) -> None:
    """Of all code points, before, inside and after the name of each of our tags."""
    unseen = list_unseen()
    texts = [
        place.replace("N", name[0].upper()).replace("AME", name[1:]).format(character)
        for place in PLACES
        for character in unseen
    ]
    assert len(unseen) > 2_500
    assert [ascii(text) for text in texts if not defuse(text).startswith("<\\")] == []


@pytest.mark.slow
def test_a_letter_that_is_seen_makes_another_name() -> None:
    letters = [
        c for c in map(chr, range(sys.maxunicode + 1)) if c.isalnum() and c not in list_unseen()
    ]
    text = "\n".join(f"</subject{letter}>" for letter in letters)
    assert defuse(text) == text


def test_the_tags_are_those_of_the_package() -> None:
    """Every tag that is written around others' text is in the table."""
    package = Path(llm_kb.__file__).parent
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    written = re.compile(r"""(?<=["'n}])</([a-z]+)>""")
    # What reads or writes HTML has tags of its own.
    found = {
        name
        for path, source in sources.items()
        if not {"html", "documents"} & {*path.parts} and path.stem not in {"html", "excerpt"}
        for name in written.findall(source)
    }
    assert found == {*TAGS}
