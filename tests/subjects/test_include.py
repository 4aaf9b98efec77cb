"""`include` takes what its patterns match, and enters no directory in vain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.subjects.ignore import Include


@pytest.mark.parametrize(
    ("patterns", "taken", "left"),
    [
        ([], ["a.md", "x/.y"], []),
        (["*.md", "*.rst"], ["a.md", "x/y/b.rst", "x.md/c.py"], ["a.py", "md"]),
        (["/*.md"], ["a.md", "x.md/b"], ["x/a.md"]),
        (["/*/**/*.md"], ["x/a.md", "x/y/a.md", "v1.2/a.md"], ["a.md"]),
        (["docs/"], ["docs/a", "x/docs/b/c"], ["docs"]),
        (["web/.cursorrules"], ["web/.cursorrules"], [".cursorrules", "web/x"]),
        (["!*.md", "*.md"], ["a.md"], ["a"]),
        (["[z-a]"], [], ["a", "z-a"]),
    ],
)
def test_patterns_say_what_is_taken(patterns: list[str], taken: list[str], left: list[str]) -> None:
    include = Include(patterns)
    assert [path for path in (*taken, *left) if include.takes(path)] == taken


def test_only_a_path_written_out_names_a_file() -> None:
    include = Include([".cursorrules", "/web/.rules", ".*", r".\[x\]", ".dir/"])
    names = [".cursorrules", "web/.rules", ".[x]", "web/.cursorrules", ".a", ".dir", ".dir/a"]
    assert [name for name in names if include.names(name)] == names[:3]


def test_a_pattern_that_is_not_valid_is_named_and_left_out() -> None:
    assert [(each.path, each.reason) for each in Include(["!a", "*.md"]).problems] == [
        ("include", "'!a' left out: what a topic leaves out is `ignore`")
    ]
    assert [each.path for each in Include(["a["]).problems] == ["include"]


def test_a_directory_on_no_way_to_a_file_is_not_entered() -> None:
    include = Include(["/*.md", "/docs/*/x.md", "/web/.cursorrules"])
    entered = ["docs/", "docs/a/", "web/", "x.md/", "x.md/y/"]
    left = ["src/", "docs/a/b/", "web/a/", "doc/"]
    assert [each for each in (*entered, *left) if include.enters(each)] == entered


_LEVEL = st.sampled_from(["a", "b", "*", "**", "?", "[ab]", "a*"])
_NAME = st.sampled_from(["a", "b", "ab", "c"])


@given(
    st.lists(st.tuples(st.booleans(), st.lists(_LEVEL, min_size=1, max_size=3), st.booleans())),
    st.lists(_NAME, min_size=1, max_size=5),
)
def test_every_directory_above_a_file_that_is_taken_is_entered(
    parts: list[tuple[bool, list[str], bool]], names: list[str]
) -> None:
    patterns = [f"{'/' * start}{'/'.join(levels)}{'/' * end}" for start, levels, end in parts]
    include = Include(patterns)
    if include.takes("/".join(names)):
        above = ["".join(f"{name}/" for name in names[:count]) for count in range(1, len(names))]
        assert list(filter(include.enters, above)) == above
