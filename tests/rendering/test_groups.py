"""Long lists summarized by patterns, each of which matches exactly its names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.learn_text import narrow
from llm_kb.subjects.patterns import parse_pattern


def test_directories_are_told_from_what_is_beside_them() -> None:
    names = ["top", "api/a", "api/b", "guide/a", "guide/deep/b"]
    assert narrow(names) == {
        "*": ["top"],
        "api/**": ["api/a", "api/b"],
        "guide/**": ["guide/a", "guide/deep/b"],
    }


def test_directories_that_all_share_are_passed_over() -> None:
    names = ["docs/ref/a/x", "docs/ref/b/y", "docs/ref/z"]
    assert list(narrow(names)) == ["docs/ref/a/**", "docs/ref/b/**", "docs/ref/*"]


def test_wildcards_in_names_are_ordinary_characters_of_a_pattern() -> None:
    assert list(narrow(["[a]*/x", "b?/x"])) == ["[[]a][*]/**", "b[?]/**"]


slugs = st.lists(
    st.lists(st.text("ab*[?", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join),
    unique=True,
    min_size=1,
    max_size=40,
)


@given(slugs)
def test_every_pattern_matches_exactly_its_names(names: list[str]) -> None:
    groups = narrow(names)
    assert sorted(name for inside in groups.values() for name in inside) == sorted(names)
    for text, inside in groups.items():
        pattern = parse_pattern(text)
        assert [name for name in sorted(names) if pattern.matches(name)] == inside
