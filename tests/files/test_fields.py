"""Typed getters for tables from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.errors import MAX_PROBLEMS, MAX_SHOWN, ConfigError
from llm_kb.files.fields import Fields, describe, read_line

DOCUMENT: dict[str, object] = {
    "title": "Reading",
    "body": "one\ntwo",
    "enable": True,
    "days": 30,
    "kind": "web",
    "tags": ["a", "b"],
    "lines": {"start": 3},
    "sources": [{"url": "u"}, {"url": "v"}],
}


def test_every_getter_returns_its_value() -> None:
    """Of a document without a problem each value arrives as it is."""
    fields = Fields(DOCUMENT)
    lines = fields.fields("lines")
    read = (
        fields.text("title", read=read_line),
        fields.text("body"),
        fields.flag("enable"),
        fields.count("days", most=100),
        fields.choice("kind", {"web", "git"}),
        fields.texts("tags"),
        lines.count("start"),
        [source.text("url") for source in fields.list_of_fields("sources")],
    )
    fields.reject_unknown()
    lines.reject_unknown("end")
    assert fields.problems == []
    assert read == ("Reading", "one\ntwo", True, 30, "web", ("a", "b"), 3, ["u", "v"])


def test_an_absent_or_null_key_has_its_default() -> None:
    fields = Fields({"title": None})
    read = (
        fields.text("title", "", read_line),
        fields.flag("enable", default=True),
        fields.count("days", 30),
        fields.choice("kind", {"web"}, "web"),
        fields.texts("tags"),
        fields.fields("lines").count("start", 0),
        fields.list_of_fields("sources"),
        fields.get("body", read_line),
    )
    assert (read, fields.problems) == (("", True, 30, "web", (), 0, (), None), [])


BAD: dict[str, tuple[dict[str, object], Callable[[Fields], object], str]] = {
    "missing": ({}, lambda f: f.text("a"), "a: missing"),
    "null": ({"a": None}, lambda f: f.count("a"), "a: missing"),
    "blank": (
        {"a": " "},
        lambda f: f.text("a", read=read_line),
        "a: found ' '; allowed: a string that is not empty",
    ),
    "text": ({"a": 3}, lambda f: f.text("a", ""), "a: found the number 3; allowed: a string"),
    "control": (
        {"a": "\x1b"},
        lambda f: f.text("a", ""),
        "a: found '\\x1b'; allowed: a string without control characters",
    ),
    "line": (
        {"a": "b\nc"},
        lambda f: f.text("a", read=read_line),
        "a: found 'b\\nc'; allowed: a string of one line",
    ),
    "flag": ({"a": "yes"}, lambda f: f.flag("a"), "a: found 'yes'; allowed: true or false"),
    "bool is not a number": (
        {"a": True},
        lambda f: f.count("a", 1),
        "a: found true; allowed: a whole number, 0 or more",
    ),
    "negative": (
        {"a": -1},
        lambda f: f.count("a", 1, most=10),
        "a: found the number -1; allowed: a whole number from 0 to 10",
    ),
    "too large for TOML": (
        {"a": 2**63},
        lambda f: f.count("a", 1),
        "a: found the number 9223372036854775808; "
        "allowed: a whole number from 0 to 9223372036854775807",
    ),
    "unprintable number": (
        {"a": 10**5000},
        lambda f: f.text("a", ""),
        "a: found the number too long to print; allowed: a string",
    ),
    "choice": (
        {"a": "wbe"},
        lambda f: f.choice("a", {"web", "git"}),
        "a: found 'wbe'; allowed: git, web; did you mean 'web'?",
    ),
    "string for a list": (
        {"a": "b"},
        lambda f: f.texts("a"),
        "a: found 'b'; allowed: a list of strings, as in ['b']",
    ),
    "item": (
        {"a": ["b", 3]},
        lambda f: f.texts("a"),
        "a[1]: found the number 3; allowed: a string",
    ),
    "table": ({"a": []}, lambda f: f.fields("a"), "a: found a list; allowed: a table"),
    "no list of tables": (
        {"a": {"b": 1}},
        lambda f: f.list_of_fields("a"),
        "a: found a table; allowed: a list of tables",
    ),
    "item of a list of tables": (
        {"a": [{}, "b"]},
        lambda f: f.list_of_fields("a"),
        "a[1]: found 'b'; allowed: a table",
    ),
    "deeper": (
        {"a": [{"b c": {"d": 1}}]},
        lambda f: [item.fields("b c").text("d") for item in f.list_of_fields("a")],
        "a[0].'b c'.d: found the number 1; allowed: a string",
    ),
    "unknown": (
        {"titel": 1},
        lambda f: f.reject_unknown("body", "title"),
        "titel: unknown key; allowed: body, title; did you mean 'title'?",
    ),
}


@pytest.mark.parametrize(("table", "read", "problem"), BAD.values(), ids=BAD)
def test_a_problem_names_key_found_and_allowed(
    table: dict[str, object], read: Callable[[Fields], object], problem: str
) -> None:
    fields = Fields(table)
    read(fields)
    assert fields.problems == [problem]


def test_what_is_not_a_table_is_one_problem() -> None:
    assert Fields(3).problems == ["found the number 3; allowed: a table"]
    assert Fields("x", "kb.topic").problems == ["kb.topic: found 'x'; allowed: a table"]


def test_all_problems_are_raised_together() -> None:
    fields = Fields({"days": "x", "sources": [{}], "other": 1})
    fields.count("days")
    for source in fields.list_of_fields("sources"):
        source.text("url")
    fields.reject_unknown()
    with pytest.raises(ConfigError) as caught:
        fields.raise_problems(lambda problems: ConfigError("kb.toml", problems))
    assert str(caught.value) == (
        "kb.toml: 3 problems\n"
        "  - days: found 'x'; allowed: a whole number, 0 or more\n"
        "  - sources[0].url: missing\n"
        "  - other: unknown key; allowed: days, sources"
    )


def test_only_the_first_problems_are_listed() -> None:
    fields = Fields({f"key{number}": 1 for number in range(1000)})
    fields.reject_unknown("known")
    seen: list[str] = []

    def keep(problems: Any) -> ConfigError:
        seen.extend(problems)
        return ConfigError("kb.toml", problems)

    with pytest.raises(ConfigError):
        fields.raise_problems(keep)
    assert (len(seen), seen[-1]) == (MAX_PROBLEMS + 1, "and 950 more")
    message = str(ConfigError("kb.toml", fields.problems))
    assert message.startswith("kb.toml: 1,000 problems\n")
    assert message.endswith("\n  - and 950 more")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(table=st.dictionaries(st.sampled_from("abcdefg") | st.text(), VALUES))
def test_no_value_makes_a_getter_raise(table: dict[str, object]) -> None:
    """Whatever is in a table, getters return values of their type or record a problem."""
    fields = Fields(table)
    typed: tuple[tuple[object, type], ...] = (
        (fields.text("a", ""), str),
        (fields.flag("b", default=False), bool),
        (fields.count("c", 0), int),
        (fields.choice("d", {"x"}, "x"), str),
        (fields.texts("e"), tuple),
        (fields.list_of_fields("f"), tuple),
        (fields.fields("g"), Fields),
    )
    assert all(type(value) is kind for value, kind in typed)
    before = len(fields.problems)
    fields.reject_unknown()
    assert len(fields.problems) - before == len(table.keys() - set("abcdefg"))
    wrong = {problem[0] for problem in fields.problems[:before]}
    assert wrong <= table.keys()
    assert "\n" not in "".join(fields.problems)


@given(VALUES)
def test_a_value_is_described_in_a_short_line(value: object) -> None:
    shown = describe(value)
    assert shown
    assert len(shown) <= MAX_SHOWN + len("the number ")
    assert "\n" not in shown


def test_what_is_not_a_table_lacks_no_fields() -> None:
    fields = Fields(7, "a[0]")
    assert fields.text("name") == ""
    assert fields.problems == ["a[0]: found the number 7; allowed: a table"]
