"""Settings on the command line, as shells pass them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.config.fragments import (
    is_assignment,
    parse_assignment,
    split_knowledge,
)
from llm_kb.config.keys import LayerSource, Value
from llm_kb.config.layers import LayerConfig, Setting
from llm_kb.errors import ConfigError, PatternError
from llm_kb.subjects.topics import Layer, Origin

SOURCE = LayerSource(
    origin=Origin(layer=Layer.COMMAND_LINE, place="--kb-cfg"), base=Path("/w"), home=Path("/home")
)
SAID = (SOURCE.origin,)


@pytest.mark.parametrize(
    ("text", "key", "value", "replaces"),
    [
        pytest.param(
            'kb.topic.project.learned+="maintainers/*"',
            "kb.topic.project.learned",
            ("maintainers/*",),
            False,
            id="the design's example",
        ),
        pytest.param(
            "kb.topic.p.learned+=maintainers/*",
            "kb.topic.p.learned",
            ("maintainers/*",),
            False,
            id="quotes eaten",
        ),
        pytest.param(
            'kb.topic.p.learned=["a", "b"]',
            "kb.topic.p.learned",
            ("a", "b"),
            True,
            id="a list replaces",
        ),
        pytest.param("kb.topic.p.learned=[]", "kb.topic.p.learned", (), True, id="cleared"),
        pytest.param(
            "kb.topic.p.learned+=2026", "kb.topic.p.learned", ("2026",), False, id="digits"
        ),
        pytest.param(
            "kb.topic.p.learned+=[ab]*", "kb.topic.p.learned", ("[ab]*",), False, id="a class"
        ),
        pytest.param(
            "kb.topic.p.learned+=a=b", "kb.topic.p.learned", ("a=b",), False, id="equals sign"
        ),
        pytest.param("kb.topic.p.title=2026", "kb.topic.p.title", "2026", False, id="title"),
        pytest.param("kb.topic.p.title=true", "kb.topic.p.title", "true", False, id="not a flag"),
        pytest.param("kb.topic.p.title=", "kb.topic.p.title", "", False, id="empty"),
        pytest.param("kb.topic.p.title=a # b", "kb.topic.p.title", "a # b", False, id="no comment"),
        pytest.param(
            "kb.topic.v1.2.title=T", "kb.topic.v1.2.title", "T", False, id="dots in the id"
        ),
        pytest.param('kb.topic."v1.2".title=T', "kb.topic.v1.2.title", "T", False, id="quoted id"),
        pytest.param(" kb.menu = subjects ", "kb.menu", "subjects", False, id="spaces"),
        pytest.param("kb.auto=true", "kb.auto", True, False, id="flag"),
        pytest.param("kb.menu_budget=1_000", "kb.menu_budget", 1000, False, id="number"),
        pytest.param(
            "kb.topic.p.subjects=~/notes", "kb.topic.p.subjects", "/home/notes", False, id="home"
        ),
        pytest.param(
            "kb.topic.p.subjects=notes", "kb.topic.p.subjects", "/w/notes", False, id="relative"
        ),
    ],
)
def test_an_assignment_sets_one_key(text: str, key: str, value: Value, replaces: bool) -> None:
    setting = Setting(value=value, origins=SAID, replaces=replaces)
    topics = {key.removeprefix("kb.topic.").rpartition(".")[0]: SAID} if "topic" in key else {}
    assert parse_assignment(text, SOURCE) == LayerConfig(settings={key: setting}, topics=topics)


def test_a_table_sets_several() -> None:
    layer = parse_assignment('kb.topic.p={subjects="a", title="b"}', SOURCE)
    assert {key: setting.value for key, setting in layer.settings.items()} == {
        "kb.topic.p.subjects": "/w/a",
        "kb.topic.p.title": "b",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no", "not an assignment; write KEY=VALUE or KEY+=VALUE"),
        ("kb.menu+=subjects", "kb.menu: only a list can be extended with '+='; use '='"),
        ("kb.menu=x", "kb.menu: found 'x'; allowed: subjects, topics"),
        ("x=1", "x: unknown key; allowed: kb"),
        ("kb=1", "kb: found the number 1; allowed: a table"),
        ("kb.auto=yes", "kb.auto: found 'yes'; allowed: true or false"),
        (
            "kb.menu_budget=1\nkb.auto=true",
            "kb.menu_budget: found '1\\nkb.auto=true'; allowed: a whole number, 0 or more",
        ),
        (
            "kb.references.timeout=1",
            (
                "kb.references.timeout: not allowed in the command line layer; "
                "it belongs in the user layer's kb.toml (see `llm kb path --user`)"
            ),
        ),
        (
            "kb.topic.p.zzz=1",
            (
                "kb.topic.p.zzz: unknown key; allowed: description, disabled, enable, generated, "
                "ignore, introduction, layout, learned, subjects, title"
            ),
        ),
    ],
)
def test_a_bad_assignment_says_why(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_assignment(text, SOURCE)
    if text != "no":  # which is found to be one before anyone speaks
        assert caught.value.where == "--kb-cfg"
    assert caught.value.problems == (problem,)


KEY = st.sampled_from(
    ["kb", "topic", "p", "learned", "title", "auto", "references", "dir", "'", '"']
)


@given(st.lists(KEY, max_size=6).map(".".join), st.sampled_from(["=", "+="]), st.text())
def test_any_assignment_is_read_or_refused(key: str, operator: str, value: str) -> None:
    outcome: LayerConfig | ConfigError
    try:
        outcome = parse_assignment(f"{key}{operator}{value}", SOURCE)
    except ConfigError as error:
        outcome = error
    if isinstance(outcome, ConfigError):
        assert all(problem.isprintable() for problem in outcome.problems)
    else:
        assert all(setting.origins == SAID for setting in outcome.settings.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kb.auto=true", True),
        ("kb.topic.p.learned+=a/b", True),
        ("a=b.toml", True),
        ("./a=b.toml", False),
        ("conf/a=b.toml", False),
        ("review", False),
        ("kb/review", False),
        ("", False),
        ("=", False),
    ],
)
def test_an_assignment_is_told_from_a_name_and_a_path(text: str, expected: bool) -> None:
    assert is_assignment(text) is expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("project/maintainers/*", ("project", "maintainers/*")),
        ("project", ("project", "**")),
        ("project/**", ("project", "**")),
    ],
)
def test_knowledge_is_split_on_the_first_slash(text: str, parts: tuple[str, str]) -> None:
    assert split_knowledge(text) == parts


@pytest.mark.parametrize("text", ["project/", "project//x", "project/../x", "", "/x"])
def test_knowledge_needs_a_valid_pattern(text: str) -> None:
    with pytest.raises(PatternError):
        split_knowledge(text)


def test_nothing_after_the_slash_is_told_how_to_name_all_of_it() -> None:
    with pytest.raises(PatternError) as caught:
        split_knowledge("project/")
    assert str(caught.value) == (
        "invalid pattern 'project/': nothing follows the slash; 'project' alone means all of it"
    )
