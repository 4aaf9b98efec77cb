"""The texts of front matter, in YAML and TOML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.summaries import read_front_matter
from tests.cost import at_most


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        pytest.param("---\na: b\n---\nrest\nmore", {"a": "b"}, "rest\nmore", id="yaml"),
        pytest.param("---\na: b\n...\nrest", {"a": "b"}, "rest", id="yaml closed by dots"),
        pytest.param("---  \na: b\n--- \nrest", {"a": "b"}, "rest", id="spaces after the marks"),
        pytest.param("---\r\na: b\r\n---\r\nrest", {"a": "b"}, "rest", id="crlf"),
        pytest.param('+++\na = "b"\n+++\nrest', {"a": "b"}, "rest", id="toml"),
        pytest.param("---\na: b\n---", {"a": "b"}, "", id="nothing below"),
        pytest.param("---\na: b\nc: d", {"a": "b", "c": "d"}, "", id="never closed"),
        pytest.param("---\nA rule above prose.", {}, "A rule above prose.", id="a rule"),
        pytest.param("a: b\n---\n", {}, "a: b\n---\n", id="none"),
        pytest.param("", {}, "", id="empty"),
        pytest.param("----\na: b\n----", {}, "----\na: b\n----", id="too long a mark"),
    ],
)
def test_where_it_is(text: str, found: dict[str, str], rest: str) -> None:
    assert read_front_matter(text) == (found, rest)


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        pytest.param("a: plain words", "plain words", id="plain"),
        pytest.param("a:   spaced   ", "spaced", id="trimmed"),
        pytest.param("a: with: colon", "with: colon", id="colon in a value"),
        pytest.param("a: b # comment", "b", id="comment"),
        pytest.param("a: b#c", "b#c", id="hash in a word"),
        pytest.param("a: one\n  two\n  three # no", "one two three", id="plain over lines"),
        pytest.param("a:\n  below", "below", id="plain below its key"),
        pytest.param("'a': b", "b", id="quoted key"),
        pytest.param('a: "b: \\"c\\" # d"', 'b: "c" # d', id="double quotes"),
        pytest.param('a: "\\u00e9\\n\\/"', "é\n/", id="escapes"),
        pytest.param('a: "one\n  two" # no', "one two", id="quotes over lines"),
        pytest.param('a: "never closed', "never closed", id="open quotes"),
        pytest.param("a: 'it''s'", "it's", id="single quotes"),
        pytest.param("a: >\n  one\n  two\nb: c", "one two", id="folded"),
        pytest.param("a: >-\n  one\n\n  two", "one two", id="folded, stripped"),
        pytest.param("a: |2+ # why\n  # one\n  two", "# one two", id="literal"),
        pytest.param("a: b\na: c", "c", id="the last of two"),
        pytest.param("a: 2024-01-01", "2024-01-01", id="a date"),
        pytest.param("b: [\na: c", "c", id="beside a malformed key"),
        pytest.param("a: Use when: it's time # no", "Use when: it's time", id="not valid YAML"),
        pytest.param("a: >\n  one\n  tw", "one tw", id="cut in a block"),
        pytest.param('a: "x\\u00', "x\\u00", id="cut in an escape"),
        pytest.param("a: b\x07c", "b\x07c", id="a control character"),
        pytest.param("a: 'It's a helper'", "It's a helper", id="an apostrophe in quotes"),
        pytest.param('a: "Deploy" the app', '"Deploy" the app', id="a quoted word at the start"),
        pytest.param("a: [Beta] x", "[Beta] x", id="brackets at the start"),
        pytest.param("a: {name} x", "{name} x", id="braces at the start"),
        pytest.param("a: '@scope/x'", "@scope/x", id="a scope"),
        pytest.param("a: @scope/x", "@scope/x", id="a scope without quotes"),
        pytest.param("a: **Bold** x", "**Bold** x", id="bold"),
        pytest.param("a: `k` x", "`k` x", id="code"),
        pytest.param("a: %s x", "%s x", id="a format"),
        pytest.param('a: ">"\n  one\n  two', "one two", id="a quoted mark of a block"),
    ],
)
def test_yaml(yaml: str, value: str) -> None:
    assert read_front_matter(f"---\n{yaml}\n---")[0]["a"] == value


@pytest.mark.parametrize(
    "yaml",
    [
        "a:",
        "a: ~",
        "a: null",
        "a: [b]",
        "a: {b: c}",
        "a: &x b",
        "a: !t b",
        "a:b",
        "  a: b",
        "- a: b",
    ],
)
def test_yaml_that_is_no_text_of_a_top_level_key(yaml: str) -> None:
    assert read_front_matter(f"---\n{yaml}\nz: z\n---")[0].get("a") is None


@pytest.mark.parametrize(
    ("toml", "found"),
    [
        pytest.param('a = "b"', {"a": "b"}, id="string"),
        pytest.param('a = """\nb\nc"""', {"a": "b\nc"}, id="string over lines"),
        pytest.param("a = 1\n[t]\nb = 'c'", {}, id="no text, no top-level key"),
        pytest.param("a = ", {}, id="malformed"),
        pytest.param("a = " + "[" * 5000, {}, id="nested too deep"),
        pytest.param("a = " + "1" * 5000, {}, id="number too long"),
    ],
)
def test_toml(toml: str, found: dict[str, str]) -> None:
    assert read_front_matter(f"+++\n{toml}\n+++\nrest") == (found, "rest")


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("a: &a [x]\nb: *a\n", id="an alias"),
        pytest.param("a: !!python/object/apply:os.system ['exit 1']\n", id="a tag"),
        pytest.param("a: " + "[" * 100_000, id="brackets"),
        pytest.param("a:\n " + "- " * 50_000, id="dashes"),
        pytest.param("? " * 50_000, id="question marks"),
        pytest.param("a: x\n " + "{" * 100_000, id="braces in a second line"),
        pytest.param("\n".join(" " * i + "a:" for i in range(400)), id="mappings"),
    ],
)
def test_hostile_yaml_holds_nothing_and_takes_no_time(hostile: str) -> None:
    with at_most(1):
        found, _ = read_front_matter(f"---\n{hostile}\nz: z\n---\n")
    assert found["z"] == "z"
    assert not any("exit" in text for text in found.values())


@given(st.text(alphabet=st.sampled_from("---+++\n: ab\"'|>#[\\ux1")))
def test_nothing_makes_it_fail(text: str) -> None:
    found, _ = read_front_matter("---\n" + text)
    assert all(found.values())


def test_a_key_that_takes_for_ever_is_none() -> None:
    text = f"+++\nx{'.x' * 101} = 1\ntitle = 'T'\n+++\n"
    assert read_front_matter(text)[0] == {}
