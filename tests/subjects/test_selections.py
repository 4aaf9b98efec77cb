"""Exact references come before globs, in the order of the request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.errors import PatternError
from llm_kb.subjects.topics import Selection, find_near, select
from tests.memory import MemoryTopic

FILES = {
    "ast-grep.md": "",
    "ast-grep/.rules.md": "",
    "code-quality.md": "",
    "maintainers/jean.md": "",
    "maintainers/ryan.md": "",
    "[x].md": "",
}

CATALOG = MemoryTopic(FILES)


def slugs(selection: Selection) -> list[str]:
    return [subject.slug for subject in selection.subjects]


@pytest.mark.parametrize(
    ("patterns", "expected", "missing"),
    [
        pytest.param(["*"], ["[x]", "ast-grep", "code-quality"], (), id="one-level"),
        pytest.param(
            ["**"],
            ["[x]", "ast-grep", "code-quality", "maintainers/jean", "maintainers/ryan"],
            (),
            id="all-but-hidden",
        ),
        pytest.param(["ast-grep/rules"], ["ast-grep/rules"], (), id="exact-reaches-hidden"),
        pytest.param(["ast-grep/*"], [], ("ast-grep/*",), id="glob-does-not"),
        pytest.param(["[x]"], ["[x]"], (), id="exact-before-glob"),
        pytest.param(
            ["maintainers/r*", "**"],
            ["maintainers/ryan", "[x]", "ast-grep", "code-quality", "maintainers/jean"],
            (),
            id="first-mention-wins",
        ),
        pytest.param(
            ["nope", "code-quality", "x/*"], ["code-quality"], ("nope", "x/*"), id="some-missing"
        ),
        pytest.param([], [], (), id="nothing-asked"),
    ],
)
def test_selects(patterns: list[str], expected: list[str], missing: tuple[str, ...]) -> None:
    selection = select(CATALOG, patterns)
    assert (slugs(selection), selection.missing) == (expected, missing)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("./code-quality.md", "code-quality"),
        ("@maintainers/ryan.md", "maintainers/ryan"),
        ("`ast-grep/rules`", "ast-grep/rules"),
        (" code-quality \n", "code-quality"),
        ("- maintainers/jean: Who she is", "maintainers/jean"),
        ("- maintainers/jean (~29,900 tokens)", "maintainers/jean"),
        ("maintainers/ryan.md:3-7", "maintainers/ryan#L3-L7"),
        ("./maintainers/ryan.md:3", "maintainers/ryan#L3-L3"),
        ("@code-quality#part", "code-quality#part"),
    ],
)
def test_a_reference_is_understood_as_others_write_it(text: str, name: str) -> None:
    selection = select(CATALOG, [text])
    assert (selection.names, selection.missing) == ([name], ())


@pytest.mark.parametrize("text", ["`", "@", "./", "./none", "- : ", "``:1-5", "./../code-quality"])
def test_what_names_nothing_is_missing(text: str) -> None:
    try:
        assert select(CATALOG, [text]).missing == (text,)
    except PatternError:
        assert ".." in text


@pytest.mark.parametrize(
    ("patterns", "single"),
    [
        pytest.param(["code-quality"], True, id="exact"),
        pytest.param(["code-quality", "ast-grep"], False, id="two"),
        pytest.param(["maintainers/j*"], False, id="glob-with-one-match"),
        pytest.param(["code-quality", "nope"], False, id="one-of-two-missing"),
    ],
)
def test_knows_a_single_exact_reference(patterns: list[str], single: bool) -> None:
    assert select(CATALOG, patterns).is_single is single


def test_malformed_pattern_is_an_error_even_beside_good_ones() -> None:
    with pytest.raises(PatternError):
        select(CATALOG, ["code-quality", "../x"])


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        pytest.param("code-qualty", ("code-quality",), id="typo"),
        pytest.param("jean", ("maintainers/jean",), id="last-component"),
        pytest.param("Maintainers/Jean", ("maintainers/jean", "maintainers/ryan"), id="case"),
        pytest.param("ast-grep/rule", ("ast-grep",), id="hidden-is-never-named"),
        pytest.param("zzz", (), id="nothing-like-it"),
    ],
)
def test_names_near_slugs(pattern: str, near: tuple[str, ...]) -> None:
    assert find_near(pattern, CATALOG) == near


def test_names_five_near_slugs_at_most() -> None:
    catalog = MemoryTopic({f"page-{n}.md": "" for n in range(9)})
    assert find_near("page", catalog) == tuple(f"page-{n}" for n in range(5))


@given(
    st.lists(st.sampled_from(["*", "**", "ast-grep", "m*/?ean", "nope", "[x]", "ast-grep/rules"]))
)
def test_selection_is_within_the_catalog_and_without_duplicates(patterns: list[str]) -> None:
    selection = select(CATALOG, patterns)
    paths = [subject.path for subject in selection.subjects]
    assert set(paths) <= FILES.keys()
    assert len(set(paths)) == len(paths)
    assert selection.exact <= set(paths)
