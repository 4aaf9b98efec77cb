"""Long lists summarized by patterns, each of which matches exactly its names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llm_kb.rendering.learn_text import Group, narrow
from llm_kb.subjects.patterns import parse_pattern


def shape(groups: tuple[Group, ...]) -> dict[str, int]:
    """Return how many names each pattern stands for."""
    return {group.pattern: len(group.names) for group in groups}


def test_few_names_are_one_group() -> None:
    assert shape(narrow(["a", "b/c"], few=2, most=10)) == {"**": 2}


def test_a_directory_is_split_into_its_files_and_its_directories() -> None:
    names = ["top", "api/a", "api/b", "guide/a", "guide/deep/b"]
    assert shape(narrow(names, few=2, most=10)) == {"*": 1, "api/**": 2, "guide/**": 2}


def test_the_largest_directory_is_split_first_and_only_as_far_as_there_is_room() -> None:
    names = [f"big/{letter}/{n}" for letter in "abc" for n in range(5)]
    names += [f"small/{letter}/{n}" for letter in "ab" for n in range(3)]
    assert shape(narrow(names, few=2, most=4)) == {
        "big/a/*": 5,
        "big/b/*": 5,
        "big/c/*": 5,
        "small/**": 6,
    }


def test_files_side_by_side_are_told_by_their_first_characters() -> None:
    names = [f"notes/{letter}{n}" for letter in "xy" for n in range(3)]
    assert shape(narrow(names, few=3, most=10)) == {"notes/x*": 3, "notes/y*": 3}


def test_directories_too_many_to_name_are_told_by_their_first_characters() -> None:
    names = [f"{letter}{n}/file" for letter in "xy" for n in range(5)]
    assert shape(narrow(names, few=5, most=3)) == {"x*/**": 5, "y*/**": 5}


def test_wildcards_in_names_are_ordinary_characters_of_a_pattern() -> None:
    names = ["[a]*/x", "[a]*/y", "b?/x", "b?/y"]
    assert shape(narrow(names, few=2, most=10)) == {"[[]a][*]/**": 2, "b[?]/**": 2}


def test_names_that_cannot_be_told_apart_stay_together() -> None:
    assert shape(narrow(["same", "same"], few=1, most=10)) == {"same": 2}


slugs = st.lists(
    st.lists(st.text("ab*[?", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join),
    unique=True,
    max_size=40,
)


@given(slugs, st.integers(1, 6), st.integers(1, 12))
def test_every_pattern_matches_exactly_its_names(names: list[str], few: int, most: int) -> None:
    groups = narrow(names, few=few, most=most)
    assert len(groups) <= most
    assert sorted(name for group in groups for name in group.names) == sorted(names)
    for group in groups:
        pattern = parse_pattern(group.pattern)
        assert [name for name in sorted(names) if pattern.matches(name)] == sorted(group.names)
