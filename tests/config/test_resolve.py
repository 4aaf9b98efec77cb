"""Layers as values: parsing, merging, settings that need trust, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.config.layers import (
    LayerSource,
    Settings,
    find_tables,
    merge,
    parse_layer,
)
from llm_kb.config.load import resolve
from llm_kb.config.settings import Config, Layer, Origin, Setting
from llm_kb.config.trust import find_withheld
from llm_kb.errors import ConfigError
from llm_kb.knowledge_base.kinds import given_kinds
from llm_kb.references.sources.rules import OPTIONAL_GIT_PROTOCOLS
from llm_kb.subjects.topics import Layout, TopicConfig

USER = LayerSource(origin=Origin(layer=Layer.USER, place="/u/kb.toml"), base=Path("/u"))
WORKSPACE = LayerSource(
    origin=Origin(layer=Layer.WORKSPACE, place="/w/llm-kb.toml"),
    base=Path("/w"),
    bounds=Path("/w"),
)


def parse(table: Mapping[str, object], source: LayerSource = WORKSPACE) -> Settings:
    return parse_layer({"kb": table}, source)


def problems_of(document: Mapping[str, object], source: LayerSource = WORKSPACE) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_layer(document, source)
    return caught.value.problems


def test_a_layer_holds_every_value_with_its_origin() -> None:
    layer = parse({"auto": True, "topic": {"p": {"subjects": "kb", "learned": ["a/*"]}}})
    origins = (WORKSPACE.origin,)
    assert layer == {
        "kb.auto": Setting(value=True, origins=origins),
        "kb.topic.p.subjects": Setting(value="/w/kb", origins=origins),
        "kb.topic.p.learned": Setting(value=("a/*",), origins=origins),
    }


def test_an_empty_document_says_nothing() -> None:
    assert parse_layer({}, WORKSPACE) == {}


TOPIC_KEYS = ", ".join(sorted(find_tables()["kb.topic"]))
KB_KEYS = ", ".join(
    sorted({*find_tables()["kb"], *(name.split(".")[1] for name in find_tables() if "." in name)})
)
ELSEWHERE = (
    "a relative path inside the workspace, without '~' or '..' "
    "(other directories belong in the user layer's kb.toml: 'llm kb add --user')"
)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(
            {"topic": {"p": {"subjects": "kb"}}},
            "topic: unknown key; allowed: kb; did you mean 'kb.topic'?",
            id="table without its kb",
        ),
        pytest.param(
            {"kbb": {}}, "kbb: unknown key; allowed: kb; did you mean 'kb'?", id="unknown table"
        ),
        pytest.param({"kb": 3}, "kb: found the number 3; allowed: a table", id="kb is no table"),
        pytest.param(
            {"kb": {"mneu": 1}},
            f"kb.mneu: unknown key; allowed: {KB_KEYS}; did you mean 'menu'?",
            id="unknown key, near match",
        ),
        pytest.param(
            {"kb": {"zzz": 1}}, f"kb.zzz: unknown key; allowed: {KB_KEYS}", id="nothing near"
        ),
        pytest.param(
            {"kb": {"auto": "yes"}}, "kb.auto: found 'yes'; allowed: true or false", id="flag"
        ),
        pytest.param(
            {"kb": {"menu": "topic"}},
            "kb.menu: found 'topic'; allowed: subjects, topics; did you mean 'topics'?",
            id="choice",
        ),
        pytest.param(
            {"kb": {"menu": ["topics"]}},
            "kb.menu: found a list; allowed: subjects, topics",
            id="choice of the wrong type",
        ),
        pytest.param(
            {"kb": {"search": "on"}},
            "kb.search: found 'on'; allowed: \"auto\", true or false",
            id="search",
        ),
        pytest.param(
            {"kb": {"max_result_chars": True}},
            "kb.max_result_chars: found true; allowed: a whole number, 0 or more",
            id="a bool is no number",
        ),
        pytest.param(
            {"kb": {"max_result_chars": -1}},
            "kb.max_result_chars: found the number -1; allowed: a whole number, 0 or more",
            id="negative",
        ),
        pytest.param(
            {"kb": {"max_result_chars": 1.5}},
            "kb.max_result_chars: found the number 1.5; allowed: a whole number, 0 or more",
            id="float",
        ),
        pytest.param(
            {"kb": {"config_load_paths": ".llm"}},
            "kb.config_load_paths: found '.llm'; allowed: a list of strings, as in ['.llm']",
            id="string for a list",
        ),
        pytest.param(
            {"kb": {"config_load_paths": [""]}},
            "kb.config_load_paths[0]: found ''; allowed: a directory, as a string of one line",
            id="empty load path",
        ),
        pytest.param(
            {"kb": {"config_load_paths": {"a": 1}}},
            "kb.config_load_paths: found a table; allowed: a list of strings",
            id="table for a list",
        ),
        pytest.param(
            {"kb": {"max_result_chars": [100] * 50}},
            "kb.max_result_chars: found a list; allowed: a whole number, 0 or more",
            id="a long list",
        ),
        pytest.param(
            {"kb": {"menu": "x" * 100}},
            f"kb.menu: found '{'x' * 56}...; allowed: subjects, topics",
            id="a long string",
        ),
        pytest.param(
            {"kb": {"menu": date(2026, 1, 1)}},
            "kb.menu: found the date datetime.date(2026, 1, 1); allowed: subjects, topics",
            id="a date",
        ),
        pytest.param(
            {"kb": {"config_load_paths": ["../x"]}},
            f"kb.config_load_paths[0]: found '../x'; allowed: {ELSEWHERE}",
            id="load path leaves",
        ),
        pytest.param(
            {"kb": {"topic": []}},
            "kb.topic: found a list; allowed: a table",
            id="topics are a list",
        ),
        pytest.param(
            {"kb": {"topic": {"p": "kb"}}},
            "kb.topic.p: found 'kb'; allowed: a table",
            id="topic is a string",
        ),
        pytest.param(
            {"kb": {"topic": {"-p": {}}}},
            "kb.topic: found the topic id '-p'; allowed: up to 100 letters, digits, '.', '_'"
            " and '-', starting with a letter or a digit",
            id="bad id",
        ),
        pytest.param(
            {"kb": {"topic": {"a\nb": {}}}},
            "kb.topic: found the topic id 'a\\nb'; allowed: up to 100 letters, digits, '.', '_'"
            " and '-', starting with a letter or a digit",
            id="id of two lines",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {}}}},
            "kb.topic.p: is empty; a topic needs the directory of its `subjects`",
            id="empty topic",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"a\x1b[31m": 1}}}},
            f"kb.topic.p.'a\\x1b[31m': unknown key; allowed: {TOPIC_KEYS}",
            id="escape sequence in a key",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"title": "a\nb"}}}},
            "kb.topic.p.title: found 'a\\nb'; allowed: a string of one line",
            id="title of two lines",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"introduction": "\x1b[2J"}}}},
            "kb.topic.p.introduction: found '\\x1b[2J'; "
            "allowed: a string without control characters",
            id="control characters",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"description": 3}}}},
            "kb.topic.p.description: found the number 3; allowed: a string",
            id="text",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"disabled": [3]}}}},
            "kb.topic.p.disabled[0]: found the number 3; allowed: a string",
            id="pattern of the wrong type",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"layout": "skill"}}}},
            "kb.topic.p.layout: found 'skill'; allowed: files, skills; did you mean 'skills'?",
            id="layout",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"subjects": ""}}}},
            "kb.topic.p.subjects: found ''; allowed: a directory, as a string of one line",
            id="empty directory",
        ),
        pytest.param(
            {"kb": {"topic": {"p": {"subjects": "a\0b"}}}},
            "kb.topic.p.subjects: found 'a\\x00b'; allowed: a directory, as a string of one line",
            id="NUL in a directory",
        ),
        *[
            pytest.param(
                {"kb": {"topic": {"p": {"subjects": value}}}},
                f"kb.topic.p.subjects: found {value!r}; allowed: {ELSEWHERE}",
                id=f"directory {value}",
            )
            for value in ("/etc", "~/notes", "..", "kb/../../x", "a\\..\\b", "\\\\server", "C:/x")
        ],
    ],
)
def test_a_bad_value_is_told_with_key_finding_and_choice(
    document: dict[str, object], problem: str
) -> None:
    assert problems_of(document) == (problem,)


def test_an_invalid_pattern_says_why() -> None:
    (problem,) = problems_of({"kb": {"topic": {"p": {"learned": ["/a"]}}}})
    assert problem.startswith("kb.topic.p.learned[0]: found '/a'; allowed: a pattern over slugs (")


def test_all_bad_items_of_a_list_come_together() -> None:
    learned = ["a", "\x1b", "a", 3]
    assert problems_of({"kb": {"topic": {"p": {"learned": learned}}}}) == (
        "kb.topic.p.learned[1]: found '\\x1b'; allowed: a string without control characters",
        "kb.topic.p.learned[3]: found the number 3; allowed: a string",
    )


def test_all_problems_of_a_file_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"auto": 1, "menu": "no", "topic": {"p": {"enable": "x"}}})
    assert str(caught.value) == (
        "/w/llm-kb.toml: 3 problems\n"
        "  - kb.auto: found the number 1; allowed: true or false\n"
        "  - kb.menu: found 'no'; allowed: subjects, topics\n"
        "  - kb.topic.p.enable: found 'x'; allowed: true or false"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("allow_links_to", ["/shared"]),
        ("references.allow_hosts", ["wiki.corp"]),
        ("references.allow_protocols", ["file"]),
        ("references.dir", "refs"),
        ("embedding_model", "m"),
        ("references.max_bytes", 1),
        ("references.max_files", 1),
        ("references.timeout", 1),
    ],
)
def test_what_only_the_user_may_say_is_refused_elsewhere(key: str, value: object) -> None:
    table: dict[str, object] = {}
    *parents, name = ("kb", *key.split("."))
    inner = table
    for parent in parents:
        inner[parent] = inner = {}
    inner[name] = value
    assert parse_layer(table, USER).keys() == {f"kb.{key}"}
    assert problems_of(table) == (
        (
            f"kb.{key}: not allowed in the workspace layer; "
            "it belongs in the user layer's kb.toml (`llm kb config` names it)"
        ),
    )


def test_limits_of_fetching_are_at_least_one() -> None:
    limits = {"max_bytes": 0, "max_files": -1, "timeout": 0}
    assert problems_of({"kb": {"references": limits}}, USER) == (
        "kb.references.max_bytes: found the number 0; allowed: a whole number, 1 or more",
        "kb.references.max_files: found the number -1; allowed: a whole number, 1 or more",
        "kb.references.timeout: found the number 0; allowed: a whole number, 1 or more",
    )


def test_the_protocols_are_those_that_fetching_knows() -> None:
    protocols = sorted(OPTIONAL_GIT_PROTOCOLS)
    layer = parse({"references": {"allow_protocols": protocols}}, USER)
    assert layer["kb.references.allow_protocols"].value == tuple(protocols)
    assert problems_of({"kb": {"references": {"allow_protocols": ["ext"]}}}, USER) == (
        f"kb.references.allow_protocols[0]: found 'ext'; allowed: {', '.join(protocols)}",
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("notes", "/u/notes"),
        ("~/notes", "/home/me/notes"),
        ("~", "/home/me"),
        ("/srv/kb", "/srv/kb"),
        ("~other", "/u/~other"),
    ],
)
def test_a_user_topic_may_be_anywhere(
    monkeypatch: pytest.MonkeyPatch, written: str, read: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    layer = parse({"topic": {"p": {"subjects": written}}}, USER)
    assert layer["kb.topic.p.subjects"].value == read


def test_a_workspace_directory_must_lie_inside_once_links_are_resolved(tmp_path: Path) -> None:
    real, linked = tmp_path / "real", tmp_path / "w"
    (real / "docs").mkdir(parents=True)
    (real / "kb").symlink_to(tmp_path)
    linked.symlink_to(real)
    source = LayerSource(origin=WORKSPACE.origin, base=linked, bounds=linked)
    assert problems_of({"kb": {"topic": {"p": {"subjects": "kb"}}}}, source) == (
        (
            f"kb.topic.p.subjects: found 'kb', which leads to '{tmp_path}'; "
            f"allowed: a directory inside the workspace '{linked}'; `allow_links_to` under [kb] of"
            " your own kb.toml permits another one"
        ),
    )
    inside = parse_layer({"kb": {"topic": {"p": {"subjects": "docs"}}}}, source)
    assert inside["kb.topic.p.subjects"].value == str(real / "docs")


def test_higher_scalars_win_and_lists_extend_without_duplicates() -> None:
    low = parse({"menu": "topics", "topic": {"p": {"subjects": "/x", "learned": ["a", "b"]}}}, USER)
    high = parse({"menu": "subjects", "topic": {"p": {"title": "P", "learned": ["b", "c"]}}})
    both = (USER.origin, WORKSPACE.origin)
    assert merge([low, high]) == {
        "kb.menu": Setting(value="subjects", origins=both),
        "kb.topic.p.subjects": Setting(value="/x", origins=(USER.origin,)),
        "kb.topic.p.learned": Setting(value=("a", "b", "c"), origins=both),
        "kb.topic.p.title": Setting(value="P", origins=(WORKSPACE.origin,)),
    }


def layers() -> st.SearchStrategy[Settings]:
    """Layers that speak of two topics, each by an origin of its own."""
    origins = st.builds(Origin, layer=st.sampled_from(Layer), place=st.sampled_from("abc"))
    lists = st.lists(st.sampled_from("uvwxyz"), max_size=3, unique=True).map(tuple)

    def build(
        origin: Origin, flags: dict[str, bool], items: dict[str, tuple[str, ...]]
    ) -> Settings:
        values = flags | items
        return {key: Setting(value=value, origins=(origin,)) for key, value in values.items()}

    return st.builds(
        build,
        origins,
        st.dictionaries(st.sampled_from(["kb.topic.p.enable", "kb.topic.q.enable"]), st.booleans()),
        st.dictionaries(st.sampled_from(["kb.topic.p.learned", "kb.topic.q.learned"]), lists),
    )


@given(layers(), layers(), layers())
def test_merging_is_associative(a: Settings, b: Settings, c: Settings) -> None:
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])


@given(layers(), layers())
def test_the_higher_layer_wins(low: Settings, high: Settings) -> None:
    merged = merge([low, high])
    for key, setting in high.items():
        if isinstance(setting.value, tuple):
            assert set(setting.value) <= set(merged[key].value)  # type: ignore[arg-type]
        else:
            assert merged[key].value == setting.value
        assert merged[key].origins[-1] == setting.origins[-1]
    for key, setting in low.items():
        if key not in high:
            assert merged[key] == setting


@given(layers())
def test_an_empty_layer_changes_nothing(layer: Settings) -> None:
    assert merge([layer]) == merge([{}, layer]) == merge([layer, {}]) == layer


KEYS = st.sampled_from(
    ["kb", "topic", "references", "auto", "menu", "subjects", "learned", "p", "", "a.b", "\0", "é"]
)
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from([USER, WORKSPACE]))
def test_any_document_is_read_or_refused(document: dict[str, object], source: LayerSource) -> None:
    outcome: Settings | ConfigError
    try:
        outcome = parse_layer(document, source)
    except ConfigError as error:
        outcome = error
    if isinstance(outcome, ConfigError):
        assert all(problem.isprintable() for problem in outcome.problems)
    else:
        assert all(s.origins == (source.origin,) for s in outcome.values())


def test_the_defaults_resolve_to_the_records_defaults() -> None:
    config = resolve({})
    assert config == Config()


def test_every_key_reaches_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    kb = {
        "auto": True,
        "menu": "subjects",
        "max_result_chars": 0,
        "search": False,
        "embedding_model": "mini",
        "config_load_paths": ["conf", "~/conf"],
        "allow_links_to": ["~/shared"],
        "references": {
            "allow_hosts": ["wiki.corp"],
            "allow_protocols": ["file"],
            "dir": "refs",
            "max_bytes": 1,
            "max_files": 2,
            "timeout": 3,
        },
        "topic": {
            "p": {
                "enable": False,
                "title": "P",
                "introduction": "One.",
                "description": "Two.\nLines.",
                "subjects": "p",
                "learned": ["a/*"],
                "disabled": ["b"],
                "ignore": ["*.log"],
                "layout": "skills",
            }
        },
    }
    layer = parse(kb, USER)
    config = resolve(
        layer,
        file=Path("/w/llm-kb.toml"),
        withheld=("kb.auto",),
    )
    assert config == Config(
        auto=True,
        menu="subjects",
        max_result_chars=0,
        search=False,
        topics=(
            TopicConfig(
                id="p",
                root=Path("/u/p"),
                title="P",
                introduction="One.",
                description="Two.\nLines.",
                enable=False,
                learned=("a/*",),
                disabled=("b",),
                ignore=("*.log",),
                layout=Layout.SKILLS,
                allow_links_to=(Path("/home/me/shared"),),
            ),
        ),
        embedding_model="mini",
        workspace=Path("/w"),
        workspace_file=Path("/w/llm-kb.toml"),
        withheld=("kb.auto",),
        settings=layer,
    )


def test_topics_without_a_directory_are_told_together() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(parse({"topic": {"p": {"enable": True}, "q": {"title": "Q"}}}))
    assert (caught.value.where, caught.value.problems) == (
        "/w/llm-kb.toml",
        (
            "kb.topic.p.subjects: missing; topic 'p' needs the directory of its subjects",
            "kb.topic.q.subjects: missing; topic 'q' needs the directory of its subjects",
        ),
    )


@pytest.mark.parametrize(
    ("fields", "is_adjusted"),
    [
        ({"learned": ["a"]}, True),
        ({"enable": False}, True),
        ({"disabled": []}, True),
        ({"disabled": ["a"]}, False),
    ],
)
def test_a_topic_we_bring_needs_no_directory(fields: dict[str, object], is_adjusted: bool) -> None:
    layer = parse({"topic": {"repo-knowledge": fields}})
    if is_adjusted:
        config = resolve(layer, given=given_kinds())
        assert ([topic.id for topic in config.adjustments], config.topics) == (
            ["repo-knowledge"],
            (),
        )
    else:
        with pytest.raises(ConfigError) as caught:
            resolve(layer, given=given_kinds())
        assert caught.value.problems == (
            "kb.topic.repo-knowledge.disabled: not for topic 'repo-knowledge', whose subjects are "
            "not in a directory of yours; 'enable = false' leaves all of it out",
        )


BELOW = parse({"topic": {"mine": {"subjects": "/notes"}, "inside": {"subjects": "/w/notes"}}}, USER)


@pytest.mark.parametrize(
    ("table", "withheld"),
    [
        pytest.param({"auto": True}, ("kb.auto",), id="auto"),
        pytest.param({"auto": False}, (), id="auto off"),
        pytest.param({"menu": "subjects"}, (), id="what no one is hurt by"),
        pytest.param(
            {"topic": {"own": {"subjects": "kb", "learned": ["**"]}}}, (), id="a topic of its own"
        ),
        pytest.param(
            {"topic": {"mine": {"learned": ["**"], "title": "T"}}},
            ("kb.topic.mine.title", "kb.topic.mine.learned"),
            id="pre-loads a topic of the user",
        ),
        pytest.param(
            {"topic": {"mine": {"ignore": ["!x"], "layout": "skills"}}},
            ("kb.topic.mine.ignore", "kb.topic.mine.layout"),
            id="shows more of a topic of the user",
        ),
        pytest.param(
            {"topic": {"mine": {"enable": True}}}, ("kb.topic.mine.enable",), id="turns it on"
        ),
        pytest.param(
            {"topic": {"mine": {"enable": False, "disabled": ["x"]}}}, (), id="takes from it"
        ),
        pytest.param(
            {"topic": {"mine": {"subjects": "kb", "learned": ["**"]}}}, (), id="points it inside"
        ),
        pytest.param(
            {"topic": {"inside": {"learned": ["**"]}}}, (), id="the directory lies inside anyway"
        ),
    ],
)
def test_what_a_workspace_gets_only_once_trusted(
    table: dict[str, object], withheld: tuple[str, ...]
) -> None:
    layer = parse(table)
    assert find_withheld(layer, BELOW, Path("/w")) == withheld
