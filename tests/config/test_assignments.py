"""Settings on the command line, as shells pass them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.config.layers import LayerSource, Settings
from llm_kb.config.load import assign, parse_assignment
from llm_kb.config.settings import Layer, Origin, Setting, Value
from llm_kb.errors import ConfigError

SOURCE = LayerSource(origin=Origin(layer=Layer.COMMAND_LINE), base=Path("/w"))


def said(text: str) -> tuple[Origin, ...]:
    """Return the origins of a setting that an assignment makes."""
    return (Origin(layer=Layer.COMMAND_LINE, place=f"--kb-cfg {text}"),)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        pytest.param(
            'kb.topic.project.learned+="maintainers/*"',
            "kb.topic.project.learned",
            ("maintainers/*",),
            id="the design's example",
        ),
        pytest.param(
            "kb.topic.p.learned+=maintainers/*",
            "kb.topic.p.learned",
            ("maintainers/*",),
            id="quotes eaten",
        ),
        pytest.param(
            'kb.topic.p.learned=["a", "b"]',
            "kb.topic.p.learned",
            ("a", "b"),
            id="a list replaces",
        ),
        pytest.param("kb.topic.p.learned=[]", "kb.topic.p.learned", (), id="cleared"),
        pytest.param("kb.topic.p.learned+=[ab]*", "kb.topic.p.learned", ("[ab]*",), id="a class"),
        pytest.param("kb.topic.p.learned+=a=b", "kb.topic.p.learned", ("a=b",), id="equals sign"),
        pytest.param("kb.topic.p.title=", "kb.topic.p.title", "", id="empty"),
        pytest.param("kb.topic.p.title=a # b", "kb.topic.p.title", "a # b", id="no comment"),
        pytest.param('kb.topic."v1.2".title=T', "kb.topic.v1.2.title", "T", id="quoted id"),
        pytest.param(" kb.menu = subjects ", "kb.menu", "subjects", id="spaces"),
        pytest.param("kb.auto=true", "kb.auto", True, id="flag"),
        pytest.param("kb.max_result_chars=1_000", "kb.max_result_chars", 1000, id="number"),
        pytest.param(
            "kb.topic.p.subjects=~/notes", "kb.topic.p.subjects", "/home/notes", id="home"
        ),
        pytest.param("kb.topic.p.subjects=notes", "kb.topic.p.subjects", "/w/notes", id="relative"),
    ],
)
def test_an_assignment_sets_one_key(
    monkeypatch: pytest.MonkeyPatch, text: str, key: str, value: Value
) -> None:
    monkeypatch.setenv("HOME", "/home")
    setting = Setting(value=value, origins=said(text))
    assert parse_assignment(text, SOURCE) == {key: setting}


@pytest.mark.parametrize(
    ("text", "learned"),
    [
        ("kb.topic.p.learned+=b", ("a", "b")),
        ("kb.topic.p.learned=b", ("b",)),
        ("kb.topic.p.learned=[]", ()),
    ],
)
def test_a_list_is_extended_or_replaced(text: str, learned: Value) -> None:
    low = parse_assignment("kb.topic.p.learned=a", SOURCE)
    assert assign(low, text, SOURCE)["kb.topic.p.learned"].value == learned


def test_a_table_sets_several() -> None:
    layer = parse_assignment('kb.topic.p={subjects="a", title="b"}', SOURCE)
    assert {key: setting.value for key, setting in layer.items()} == {
        "kb.topic.p.subjects": "/w/a",
        "kb.topic.p.title": "b",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kb.menu+=subjects", "only a list can be extended with '+='; use '='"),
        (
            "kb..menu=topics",
            "is not valid TOML: line 1, column 4: Invalid initial character for a key part",
        ),
        ("kb.menu=x", "kb.menu: found 'x'; allowed: subjects, topics"),
        ("x=1", "x: unknown key; allowed: kb"),
        ("kb=1", "kb: found the number 1; allowed: a table"),
        ("kb.auto=yes", "kb.auto: found 'yes'; allowed: true or false"),
        (
            "kb.references.timeout=1",
            (
                "kb.references.timeout: not allowed in the command line layer; "
                "it belongs in the user layer's kb.toml (`llm kb config` names it)"
            ),
        ),
        (
            "kb.topic.p.zzz=1",
            (
                "kb.topic.p.zzz: unknown key; allowed: description, disabled, enable, "
                "ignore, include, introduction, layout, learned, proposals, subjects, title"
            ),
        ),
    ],
)
def test_a_bad_assignment_says_why(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        assign({}, text, SOURCE)
    assert caught.value.where == f"--kb-cfg {text}"
    assert caught.value.problems == (problem,)


KEY = st.sampled_from(
    ["kb", "topic", "p", "learned", "title", "auto", "references", "dir", "'", '"']
)


@given(st.lists(KEY, max_size=6).map(".".join), st.sampled_from(["=", "+="]), st.text())
def test_any_assignment_is_read_or_refused(key: str, operator: str, value: str) -> None:
    outcome: Settings | ConfigError
    try:
        outcome = parse_assignment(f"{key}{operator}{value}", SOURCE)
    except ConfigError as error:
        outcome = error
    if isinstance(outcome, ConfigError):
        assert all(problem.isprintable() for problem in outcome.problems)
    else:
        assert all(setting.origins[0].layer is Layer.COMMAND_LINE for setting in outcome.values())
