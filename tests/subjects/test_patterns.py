"""Patterns: their matches, the directories they enter, and their speed."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.errors import PatternError
from llm_kb.subjects.patterns import compile_any, parse_pattern, split_knowledge
from tests import brute_force

SLUGS = (
    "a", "b", "ab", "a-b", "README", "a/b", "a/c", "a/b/c", "a/b/c/d", "b/a", "x/a/b", "x/y/z",
    "maintainers/jean", "maintainers/ryan", "!x", "#x", "{a,b}", "[a", "a]b", "é", "a b", "a\nb",
)  # fmt: skip


def matched(pattern: str, slugs: Sequence[str] = SLUGS) -> list[str]:
    """Return what a pattern matches, in the order of the slugs."""
    return list(filter(parse_pattern(pattern).matches, slugs))


TABLE = {
    "a": ["a"],
    "*": [slug for slug in SLUGS if "/" not in slug],
    "**": list(SLUGS),
    "**/**": list(SLUGS),
    "?": ["a", "b", "é"],
    "a*": ["a", "ab", "a-b", "a]b", "a b", "a\nb"],
    "a?b": ["a-b", "a]b", "a b", "a\nb"],
    "a/*": ["a/b", "a/c"],
    "a/**": ["a/b", "a/c", "a/b/c", "a/b/c/d"],
    "a/**/**": ["a/b", "a/c", "a/b/c", "a/b/c/d"],
    "a/**/c": ["a/c", "a/b/c"],
    "a/**/*": ["a/b", "a/c", "a/b/c", "a/b/c/d"],
    "**/a": ["a", "b/a"],
    "**/a/*": ["a/b", "a/c", "x/a/b"],
    "**/b/**": ["a/b/c", "a/b/c/d", "b/a"],
    "*/*": ["a/b", "a/c", "b/a", "maintainers/jean", "maintainers/ryan"],
    "maintainers/j*": ["maintainers/jean"],
    "**e": [],
    "*/**/*": [slug for slug in SLUGS if "/" in slug],
    "[ab]": ["a", "b"],
    "[!a]": ["b", "é"],
    "[^a]": ["b", "é"],
    "[b-a]": [],
    "a[!x]b": ["a-b", "a]b", "a b", "a\nb"],
    "a[,-.]b": ["a-b"],
    "a[]-]b": ["a-b", "a]b"],
    "a[.-0]b": [],
    "a[!/]b": [],
    "[a": ["[a"],
    "[a*": ["[a"],
    "!*": ["!x"],
    "#x": ["#x"],
    "{a,b}": ["{a,b}"],
    "{a,*": ["{a,b}"],
    "A": [],
    "readme": [],
    "a/": [],
    "a//b": [],
    ".": [],
    unicodedata.normalize("NFD", "é"): ["é"],
    "[" + unicodedata.normalize("NFD", "é") + "]": ["é"],
}


@pytest.mark.parametrize(("pattern", "expected"), TABLE.items(), ids=map(ascii, TABLE))
def test_a_pattern_matches_whole_slugs(pattern: str, expected: list[str]) -> None:
    assert matched(pattern) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("/a", "it starts with '/'; patterns are relative to the topic", id="absolute"),
        pytest.param(
            "a/../b", "it contains a '..' component; patterns stay inside the topic", id="up"
        ),
        pytest.param(
            "..", "it contains a '..' component; patterns stay inside the topic", id="only-up"
        ),
        pytest.param("a\\b", "it contains a backslash; separate levels with '/'", id="backslash"),
        pytest.param("a\0", "it contains a NUL character", id="nul"),
    ],
)
def test_what_cannot_be_a_pattern_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    assert caught.value.reason == reason


@pytest.mark.parametrize("text", ["..a", "a..", "a/...", "...", "a...b"])
def test_dots_that_are_no_component_of_two_are_ordinary(text: str) -> None:
    assert parse_pattern(text).literal == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("a/b", "a/b"),
        ("a[b", "a[b"),
        ("[]", "[]"),
        ("[!]", "[!]"),
        ("a[b/c]", "a[b/c]"),
        ("a]b", "a]b"),
        ("a[b]", None),
        ("a/*", None),
        ("a?", None),
        ("**", None),
    ],
)
def test_a_pattern_without_wildcards_is_the_slug_it_matches(text: str, literal: str | None) -> None:
    assert parse_pattern(text).literal == literal


def test_a_class_that_holds_every_other_character_holds_no_slash() -> None:
    assert [matched(f"a{part}b", ["a/b", "a.b"]) for part in ("[!x]", "[+-9]", "?")] == [
        ["a.b"],
        ["a.b"],
        ["a.b"],
    ]


def patterns_of(alphabet: str) -> st.SearchStrategy[str]:
    """Return patterns of up to five levels of these characters."""
    level = st.one_of(st.sampled_from(["**", "*", "a"]), st.text(alphabet, min_size=1, max_size=8))
    levels = level.filter(lambda text: text != "..")
    return st.lists(levels, min_size=1, max_size=5).map("/".join)


PATTERNS = patterns_of("aab*?[]!^-.")
NAMES = st.text(alphabet="aab-.[]!", min_size=1, max_size=5)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)


@given(text=PATTERNS, slugs=st.lists(PATHS, min_size=1, max_size=20))
def test_every_matcher_agrees_with_trying_everything(text: str, slugs: list[str]) -> None:
    pattern = parse_pattern(text)
    expected = [slug for slug in slugs if brute_force.matches(text, slug)]
    either = compile_any([parse_pattern("never"), pattern, parse_pattern("nor?")])
    assert list(filter(pattern.matches, slugs)) == expected
    assert list(filter(either, slugs)) == expected


@given(texts=st.lists(PATTERNS, max_size=6), slugs=st.lists(PATHS, max_size=10))
def test_many_patterns_match_what_each_does(texts: list[str], slugs: list[str]) -> None:
    patterns = [parse_pattern(text) for text in texts]
    expected = [slug for slug in slugs if any(p.matches(slug) for p in patterns)]
    assert list(filter(compile_any(patterns), slugs)) == expected


BAD = {
    "stars": "*a" * 499 + "c",
    "stars-in-a-run": "a*" * 40 + "c",
    "levels": "**/a/" * 199 + "c",
    "levels-and-stars": "**/*a*/" * 142 + "c",
    "one-of-any": "*?" * 499 + "c",
    "classes": "[a-z]*" * 166 + "!",
    "long-chunk": "*" + "a" * 997 + "c*",
    "long-run": "**/" + "a/" * 496 + "c/**",
    "star-levels": "**/" + "*/" * 498 + "c",
    "question-marks": "*" + "?" * 998 + "c",
}


@pytest.mark.parametrize(
    "slug",
    ["a" * 4000, "a/" * 1999 + "aa", "ab" * 2000],
    ids=["one-level", "levels", "two-letters"],
)
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_the_worst_patterns_end(text: str, slug: str) -> None:
    """None of these would, if anything were tried more than a few times."""
    assert not parse_pattern(text).matches(slug)
    assert not compile_any([parse_pattern(text), parse_pattern("x")])(slug)


@pytest.mark.parametrize("unit", ["a*", "?", "[a]", "**/", "*/"])
@pytest.mark.parametrize(("size", "limit"), [(100_000, "4,096"), (2_000, "1,000")])
def test_a_long_pattern_is_refused(unit: str, size: int, limit: str) -> None:
    with pytest.raises(PatternError, match=f"longer than {limit} characters") as caught:
        parse_pattern(unit * (size // len(unit)) + "b")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("unit", ["a", "[", "a/"])
def test_an_exact_slug_may_be_as_long_as_a_path(unit: str) -> None:
    slug = unit * (4_095 // len(unit)) + "b"
    assert parse_pattern(slug).matches(slug)
    assert not parse_pattern(slug).matches("a" * 4000)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A directory of real files, and their paths."""
    root = tmp_path_factory.mktemp("globstar")
    names = [
        "a", "b", "ab", "aab", "ba", "a-b", "[a", "a]", "!a", "^a", "-", "d/a", "d/ab", "d/b-a",
        "d/e/a", "d/e/b", "d/e/f/ab", "e/d/a", "aa/aa/aa/a", "aa/b/aa/b", "[b/a", "!b/b",
    ]  # fmt: skip
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root, names


BASH = shutil.which("bash")
GLOBSTAR = """
shopt -s globstar dotglob nullglob; shopt -u extglob; IFS=
for pattern in "$@"; do printf '%s\\0' $pattern; printf '\\n\\0'; done
"""


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
# `fnmatch` takes the `!` in `[?--!]`, after a range that is empty, for a negation.
@given(
    texts=st.lists(
        patterns_of("aab*?[]!^-").filter(lambda text: not re.search("-.!", text)),
        min_size=20,
        max_size=60,
    )
)
def test_patterns_mean_what_they_mean_to_bash(
    tree: tuple[Path, list[str]], texts: list[str]
) -> None:
    root, names = tree
    ran = subprocess.run(
        [str(BASH), "-c", GLOBSTAR, "bash", *texts],
        cwd=root,
        env={"LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=True,
    )
    answers = ran.stdout.decode().split("\n\0")[:-1]
    for text, answer in zip(texts, answers, strict=True):
        found = set(answer.split("\0")) & set(names)
        assert (text, set(matched(text, names))) == (text, found)


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
