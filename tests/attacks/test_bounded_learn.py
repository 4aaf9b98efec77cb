"""The slowest calls of `learn` found so far, on 3,000 files: each has two seconds.

The caller is a model, which may send anything.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_kb.errors import KbError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.subjects.topics import TopicConfig
from tests.cost import at_most, cases
from tests.knowledge_base.test_knowledge_base import make_kb

SECONDS = 2.0
MAX_ERROR = 20_000

CALLS: dict[str, list[str]] = {
    "a slug of 200,000 characters": ["q/" * 100_000 + "x"],
    "a literal of 5 MB": ["a" * 5_000_000],
    "repeated globs": ["s1*", "s2*"] * 5_000,
    "repeated slugs": ["d1/some-subject-0001"] * 3_000,
    "200,000 names": [f"n{number}" for number in range(200_000)],
    "missing names": [f"some-subjct-{number}" for number in range(50)],
    "missing globs": [f"**/*{number}*nope*" for number in range(50)],
    "globs of many stars": [f"**/*a*b*c*{number}*/**/*d*" for number in range(50)],
    "a long name like many": ["some-subject-" * 7],
    "one letter, 90 times": ["s" * 90],
    "a deep slug": ["z/" * 1_500 + "x"],
    "deep slugs": ["z/" * (1_500 - number) + "y" for number in range(3)],
    "deep and not ASCII": ["é/" * 2_000 + "y"],
    "wildcards": ["*?" * 500],
    "classes": ["[a-z]" * 200],
    "open brackets": ["[" * 1_000],
    "dots": ["./" * 2_000 + "x"],
    "everything": ["**"],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """3,000 files, one below 1,500 directories, and 500 rules that each look at all of a path."""
    root = tmp_path_factory.mktemp("hostile")
    for number in range(3_000):
        path = root / f"d{number % 30}" / f"some-subject-{number:04}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n" * 20)
    here = os.open(root, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("z", dir_fd=here)
        below = os.open("z", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("x.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    yield root
    # Python's own way to remove a tree recurses, and so would fail when pytest cleans up.
    subprocess.run(["rm", "-rf", root], check=True)


def open_kb(root: Path) -> KnowledgeBase:
    rules = tuple(f"a{number}*b*c" for number in range(500))
    topic = TopicConfig(id="p", root=root, ignore=rules)
    return make_kb((topic, DirectoryTopic(topic)))


def call(root: Path, topic: str, subjects: list[str] | None) -> str:
    """Return the answer of one call, which must not cost more than `SECONDS`."""
    kb = open_kb(root)
    with at_most(SECONDS):
        try:
            return kb.learn(topic, subjects)
        except KbError as error:
            message = str(error)
    assert len(message) <= MAX_ERROR
    return message


@pytest.mark.parametrize("subjects", cases(CALLS, "globs of many stars", "missing globs"))
def test_a_call_takes_at_most_two_seconds(root: Path, subjects: list[str]) -> None:
    answer = call(root, "p", subjects)
    assert len(answer) < 250_000


def test_listing_and_unknown_topics_take_no_longer(root: Path) -> None:
    call(root, "p", None)
    assert len(call(root, "x" * 1_000_000, None)) < 500


def test_too_many_subjects_are_refused_with_a_way_out(root: Path) -> None:
    answer = call(root, "p", [f"n{number}" for number in range(51)])
    assert answer == (
        "51 subjects of 143 characters in one call; at most 50 of 10,000 are allowed, "
        "and a pattern such as 'name/**' names any number of them"
    )


PIECES = st.sampled_from(["*", "**", "?", "[", "]", "/", "z", "é", "some-subject-", ".", "a" * 300])


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(st.lists(PIECES, max_size=400).map("".join), max_size=60), st.integers(1, 100))
def test_any_call_takes_at_most_two_seconds(root: Path, subjects: list[str], times: int) -> None:
    call(root, "p", subjects * times)
