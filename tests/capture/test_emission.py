"""The arguments of `emit_knowledge`, and how an entry is added to the store."""

from __future__ import annotations

from importlib import resources

import pytest

from llm_kb.capture.emission import (
    EMIT_SCHEMA,
    Addition,
    InvalidEntryError,
    add_entry,
    parse_emission,
    remove_entry,
    render_reply,
)
from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    KINDS,
    STABILITIES,
    Entry,
    KnowledgeStore,
)
from llm_kb.errors import KbError


def convention(rule: str, scope: str = "src/") -> Entry:
    return parse_emission({"entry_type": "convention", "scope": scope, "rule": rule})


def anti_pattern(pattern: str) -> Entry:
    return parse_emission({"entry_type": "anti_pattern", "pattern": pattern, "instead": "x"})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            {"entry_type": "convention", "scope": " src/ ", "rule": "r\n"},
            Entry(CONVENTION, {"scope": "src/", "rule": "r", "stability": "provisional"}),
            id="a convention is provisional unless it says otherwise",
        ),
        pytest.param(
            {"entry_type": "convention", "scope": "*", "rule": "r", "stability": "permanent"},
            Entry(CONVENTION, {"scope": "*", "rule": "r", "stability": "permanent"}),
            id="stability",
        ),
        pytest.param(
            {"entry_type": "convention", "scope": "src/**", "rule": "r"},
            Entry(CONVENTION, {"scope": "src/", "rule": "r", "stability": "provisional"}),
            id="stars after a directory are that directory",
        ),
        pytest.param(
            {"entry_type": "boundary", "module": "./", "owns": "o", "boundary": "b"},
            Entry(BOUNDARY, {"module": "*", "owns": "o", "boundary": "b"}),
            id="the root is everything",
        ),
        pytest.param(
            {"entry_type": "boundary", "module": "m/", "owns": "o", "boundary": "b"},
            Entry(BOUNDARY, {"module": "m/", "owns": "o", "boundary": "b"}),
            id="boundary",
        ),
        pytest.param(
            {"entry_type": "anti_pattern", "pattern": "p", "instead": "i"},
            Entry(ANTI_PATTERN, {"pattern": "p", "instead": "i"}),
            id="anti-pattern",
        ),
        pytest.param(
            {
                "entry_type": "anti_pattern",
                "pattern": "p",
                "instead": "i",
                "scope": "",
                "rule": None,
            },
            Entry(ANTI_PATTERN, {"pattern": "p", "instead": "i"}),
            id="what is empty was not given",
        ),
        pytest.param(
            {"entry_type": "anti_pattern", "pattern": "\ud83d!", "instead": "i"},
            Entry(ANTI_PATTERN, {"pattern": "!", "instead": "i"}),
            id="half a surrogate pair",
        ),
    ],
)
def test_arguments_make_an_entry(arguments: dict[str, object], expected: Entry) -> None:
    assert parse_emission(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        pytest.param(
            {},
            ["entry_type: required; use one of convention, boundary, anti_pattern"],
            id="no type",
        ),
        pytest.param(
            {"entry_type": "rule"},
            ["entry_type: unknown type 'rule'; use one of convention, boundary, anti_pattern"],
            id="unknown type",
        ),
        pytest.param(
            {"entry_type": "boundary", "module": "m"},
            ["owns: required for boundary", "boundary: required for boundary"],
            id="missing",
        ),
        pytest.param(
            {
                "entry_type": "convention",
                "scope": "s",
                "rule": "r",
                "pattern": "p",
                "decided_in": "x",
            },
            [
                "pattern: is not a field of convention, which takes scope, rule, stability",
                "decided_in: is not a field of convention, which takes scope, rule, stability",
            ],
            id="misplaced",
        ),
        pytest.param(
            {"entry_type": "convention", "scope": ["s"], "rule": "r", "stability": "firm"},
            [
                "scope: expected text, found a list",
                (
                    "stability: unknown stability 'firm'; "
                    "use one of permanent, provisional, experimental"
                ),
            ],
            id="wrong values",
        ),
        pytest.param(
            {"entry_type": "anti_pattern", "pattern": "x" * 2001, "instead": "i"},
            ["pattern: 2,001 characters; keep it to 2,000"],
            id="too long",
        ),
    ],
)
def test_every_problem_of_the_arguments_is_named(
    arguments: dict[str, object], problems: list[str]
) -> None:
    with pytest.raises(InvalidEntryError) as caught:
        parse_emission(arguments)
    assert list(caught.value.problems) == problems


def test_the_schema_offers_what_the_parser_takes() -> None:
    properties = EMIT_SCHEMA["properties"]
    assert isinstance(properties, dict)
    settable = [name for kind in KINDS for name in kind.settable]
    assert list(properties) == ["entry_type", *settable]
    assert properties["entry_type"]["enum"] == [kind.name for kind in KINDS]
    assert properties["stability"]["enum"] == list(STABILITIES)
    assert EMIT_SCHEMA["required"] == ["entry_type"]


def add(store: KnowledgeStore, entry: Entry) -> Addition:
    return add_entry(store, entry, "c0ffee")


def test_entries_join_their_kind_under_the_next_id() -> None:
    store = KnowledgeStore()
    for entry in (anti_pattern("p"), convention("a"), convention("b"), anti_pattern("q")):
        store = add(store, entry).store
    assert {entry.provenance for entry in store.entries} == {"c0ffee"}
    assert [(entry.id, entry.rule) for entry in store.entries] == [
        ("conv-1", "a"),
        ("conv-2", "b"),
        ("ap-1", "p"),
        ("ap-2", "q"),
    ]


def test_a_duplicate_leaves_the_store_and_names_the_entry_that_is_there() -> None:
    first = add(KnowledgeStore(), convention("Use X"))
    again = add(first.store, convention("use  x."))
    assert again == Addition(store=first.store, entry=first.entry, is_new=False)
    assert render_reply(again) == "already exists: conv-1 (src/): Use X"


def test_the_reply_names_near_entries_and_merges_nothing() -> None:
    first = add(KnowledgeStore(), convention("errors use the root error"))
    second = add(first.store, convention("errors use\nthe root error class", "*"))
    assert render_reply(second) == (
        "recorded convention conv-2 (*): errors use the root error class\n"
        "similar entries, kept apart:\n"
        "- conv-1 (src/): errors use the root error"
    )
    assert len(second.store.entries) == 2


def test_removing_an_unknown_id_names_near_ones() -> None:
    store = add(add(KnowledgeStore(), convention("a")).store, anti_pattern("p")).store
    with pytest.raises(match="no entry is called 'CONV-1'; did you mean: conv-1"):
        remove_entry(store, "CONV-1")
    with pytest.raises(KbError, match="no entry is called 'x'; `llm kb knowledge list`"):
        remove_entry(store, "x")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("../x", "is outside the repository"),
        ("/etc/passwd", "is outside the repository"),
        ("~", "is outside the repository"),
        ("src/../../x", "is outside the repository"),
        ("C:/x", "is outside the repository"),
        ("\u202e", "required for convention"),
        (" \u200b", "required for convention"),
    ],
)
def test_places_that_no_file_can_have_are_refused(place: str, problem: str) -> None:
    with pytest.raises(InvalidEntryError, match=f"^scope: .*{problem}"):
        parse_emission({"entry_type": "convention", "scope": place, "rule": "r"})


def test_what_is_stored_is_what_is_shown() -> None:
    fields = {"entry_type": "anti_pattern", "pattern": "a\0\u202eb\n c", "instead": "i"}
    assert parse_emission(fields).fields == {"pattern": "ab c", "instead": "i"}
    for nothing in ("\u200b", "\u200d", "\0", " \n"):
        with pytest.raises(InvalidEntryError, match="pattern: required for anti_pattern"):
            parse_emission({**fields, "pattern": nothing})


def test_the_skill_quotes_the_replies() -> None:
    skill = resources.files("llm_kb.capture").joinpath("skills/knowledge-capture.md")
    first = add(KnowledgeStore(), convention("errors use the root error"))
    second = add(first.store, convention("errors use\nthe root error class", "*"))
    again = add(first.store, convention("errors use the root error"))

    for reply in (second, again):
        for line in render_reply(reply).splitlines():
            if not line.startswith("- "):
                assert f"`{line.split(':')[0].split(' convention')[0]}" in skill.read_text()
