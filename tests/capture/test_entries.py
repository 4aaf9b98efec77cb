"""Entries: their ids, the places they apply to, duplicates and similar ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    Entry,
    KnowledgeStore,
    covers,
    normalize,
    normalize_place,
)


def test_entries_are_kept_kind_by_kind() -> None:
    anti = Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"})
    first = Entry(CONVENTION, {"id": "conv-2", "scope": "*", "rule": "r"})
    second = Entry(CONVENTION, {"id": "conv-1", "scope": "*", "rule": "q"})
    store = KnowledgeStore(extra={"x": 1}).with_entries([anti, first, second])
    assert store == KnowledgeStore(entries=(first, second, anti), extra={"x": 1})


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        pytest.param([], "conv-1", id="first"),
        pytest.param(["conv-1", "conv-9"], "conv-10", id="after the highest"),
        pytest.param(["errors", "conv-x", "conv-٣", "bound-8"], "conv-1", id="other ids"),
        pytest.param(["conv-" + "9" * 5000], "conv-1", id="absurd number"),
    ],
)
def test_the_next_id_is_above_all_others(ids: list[str], expected: str) -> None:
    entries = tuple(Entry(CONVENTION, {"id": id_, "scope": "*", "rule": "r"}) for id_ in ids)
    assert KnowledgeStore(entries=entries).next_id(CONVENTION) == expected


@pytest.mark.parametrize(
    ("scope", "file", "expected"),
    [
        ("*", "any/file.rs", True),
        ("src/", "src/a.rs", True),
        ("src/", "src", True),
        ("src/", "srcs/a.rs", False),
        ("src", "src/a.rs", True),
        ("src", "src", True),
        ("src", "srcs", False),
        ("src/a.rs", "src/a.rs", True),
        ("src/a.rs", "src/a.rs.bak", False),
        ("./src/", "src/a.rs", True),
        ("src/", "./src/a.rs", True),
        ("", "a", True),
        ("src/**", "src/b/a.rs", True),
        ("src/*", "src/a.rs", True),
        ("src/**/*", "./src/a.rs", True),
        ("./src/**", "src/a.rs", True),
        ("src/**", "src", True),
        ("src/**", "srcs/a.rs", False),
        ("**", "any/file.rs", True),
        ("src/*.rs", "src/a.rs", False),
        (".", "any/file.rs", True),
        ("./", "./any/file.rs", True),
        ("..", "any/file.rs", False),
    ],
)
def test_scopes(scope: str, file: str, expected: bool) -> None:
    assert covers(scope, file) is expected


def test_boundaries_go_by_module_and_anti_patterns_always_hold() -> None:
    stable = {"rule": "r", "stability": "permanent"}
    here = Entry(CONVENTION, {"id": "conv-1", "scope": "src/git/", **stable})
    there = Entry(CONVENTION, {"id": "conv-2", "scope": "docs/", **stable})
    module = Entry(BOUNDARY, {"id": "b", "module": "src/git", "owns": "o", "boundary": "b"})
    always = Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"})
    store = KnowledgeStore(entries=(here, there, module, always), extra={"x": 1})
    expected = KnowledgeStore(entries=(here, module, always), extra={"x": 1})
    assert store.narrow("src/git/ops.rs") == expected


def convention(rule: str, scope: str = "src/", id_: str = "conv-1") -> Entry:
    return Entry(CONVENTION, {"id": id_, "scope": scope, "rule": rule})


def boundary(text: str, module: str = "src/git/", owns: str = "git") -> Entry:
    return Entry(BOUNDARY, {"id": "bound-1", "module": module, "owns": owns, "boundary": text})


def anti_pattern(pattern: str, instead: str = "x") -> Entry:
    return Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": pattern, "instead": instead})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("All Errors Use Snafu", "all errors use snafu"),
        ("  all\terrors\n use   snafu ", "all errors use snafu"),
        ("all errors use snafu.", "all errors use snafu"),
        ("all errors use snafu ?! …", "all errors use snafu"),
        ("错误都用 snafu。", "错误都用 snafu"),
        ("use parse()", "use parse()"),
        ("e.g. this", "e.g. this"),
        ("...", ""),
    ],
)
def test_normalize(text: str, expected: str) -> None:
    assert normalize(text) == expected


@given(st.text(max_size=20))
def test_normalizing_twice_changes_nothing(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("src/", "src"),
        ("./src//", "src"),
        ("src/./a", "src/a"),
        (".//src", "src"),
        ("*", "*"),
        ("/", "*"),
        (".", "*"),
        ("./.", "*"),
        ("..", ".."),
        (".github", ".github"),
        (" a ", "a"),
        ("", "*"),
        ("src/**", "src"),
        (" ./src/* ", "src"),
        ("**/*", "*"),
        ("src/*.py", "src/*.py"),
    ],
)
def test_normalize_place(place: str, expected: str) -> None:
    assert normalize_place(place) == expected


@pytest.mark.parametrize(
    ("candidate", "existing", "same"),
    [
        pytest.param(convention("Use X."), convention("use  x"), True, id="case, space, dot"),
        pytest.param(convention("use x", "./src"), convention("use x", "src/"), True, id="scope"),
        pytest.param(convention("use x", "src/a/"), convention("use x"), False, id="other scope"),
        pytest.param(convention("use x"), convention("use y"), False, id="other rule"),
        pytest.param(boundary("No IO", owns="a"), boundary("no io", owns="b"), True, id="owns"),
        pytest.param(boundary("no io", "a/"), boundary("no io", "b/"), False, id="other module"),
        pytest.param(anti_pattern("P", "a"), anti_pattern("p!", "b"), True, id="instead"),
        pytest.param(anti_pattern("use x"), convention("use x"), False, id="other kind"),
    ],
)
def test_duplicates(candidate: Entry, existing: Entry, same: bool) -> None:
    store = KnowledgeStore(entries=(existing,))
    found = store.find_duplicate(candidate.with_fields(id=""))
    assert found == (existing if same else None)


def test_the_nearest_share_half_their_words_and_come_first_to_last() -> None:
    near = convention("all errors use our own root error", id_="conv-1")
    nearer = convention("all errors use our root error", "*", id_="conv-2")
    far = convention("tests run on real repositories", id_="conv-3")
    other_kind = anti_pattern("all errors use our root")
    candidate = convention("all errors use our root", id_="")
    store = KnowledgeStore(entries=(near, far, nearer, other_kind))
    assert store.find_nearest(candidate) == (nearer, near)


def test_an_entry_without_words_is_near_to_nothing() -> None:
    store = KnowledgeStore(entries=(convention("a b"), convention("c")))
    assert store.find_nearest(convention("...", id_="")) == ()
