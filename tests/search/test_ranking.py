"""Candidates of several topics are ranked as one, spread over files, each text once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.search.hits import Hit
from llm_kb.search.ranking import PER_FILE, Candidates, join_candidates, rank, spread

WORDS = ("walrus", "tusks", "grow")


def make(
    topic: str,
    scores: dict[int, float],
    *,
    cosines: dict[int, float] | None = None,
    frequencies: tuple[int, ...] | None = None,
    words: tuple[str, ...] = WORDS,
) -> Candidates:
    """Make candidates of a topic of 100 chunks, each of a file of its own."""
    cosines = cosines or {}
    hits = [
        Hit(topic, f"{n}.md", 1, 9, "", "", f"{topic}{n}", b"", scores.get(n, 0.0), cosines.get(n))
        for n in scores | cosines
    ]
    counts = frequencies or (10,) * len(words)
    return Candidates(hits=hits, words=words, stems=words, frequencies=counts, total=100)


def ranked(candidates: Candidates, limit: int = 9) -> list[str]:
    return [f"{hit.topic}{hit.path[0]}" for hit in rank(candidates, limit)]


def test_one_set_stays_as_it_is() -> None:
    candidates = make("a", {1: 2.0, 2: 1.0})

    assert join_candidates([candidates]) is candidates
    assert ranked(candidates) == ["a1", "a2"]


def test_several_are_ranked_together() -> None:
    joined = join_candidates([make("a", {1: 2.0, 2: 1.0}), make("b", {1: 1.5, 2: 0.5})])

    assert ranked(joined, 3) == ["a1", "b1", "a2"]
    assert joined.total == 200
    assert joined.frequencies == [20, 20, 20]


def test_a_topic_about_a_word_does_not_lose_by_it() -> None:
    about = make("a", {1: 1.0}, frequencies=(90, 90, 90))
    beside = make("b", {1: 2.0}, frequencies=(2, 2, 2))

    assert ranked(join_candidates([beside, about])) == ["a1", "b1"]


def test_a_phrase_in_a_topic_about_its_words_is_not_scaled_with_them() -> None:
    """A phrase may be rare where its words are not, and FTS5 counts both in one score."""
    small = make("a", {1: 3.0}, frequencies=(90, 90, 90))
    large = make("b", {1: 30.0}, frequencies=(2, 2, 2))

    assert ranked(join_candidates([small, large])) == ["b1", "a1"]


def test_a_word_that_a_topic_lacks_scales_nothing() -> None:
    lacking = make("b", {}, frequencies=(0, 0, 0))

    assert ranked(join_candidates([lacking, make("a", {1: 2.0})])) == ["a1"]
    assert ranked(join_candidates([])) == []
    assert ranked(join_candidates([lacking, lacking])) == []


def test_the_nearest_is_so_in_all_topics() -> None:
    one = make("a", {}, cosines={1: 0.3, 2: 0.2})
    other = make("b", {}, cosines={1: 0.9, 2: 0.25})

    assert ranked(join_candidates([one, other])) == ["b1", "a1", "b2", "a2"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("", ["a2", "a1", "a3"]), ("open", ["a1", "a2", "a3"])],
    ids=["a question", "a look-up"],
)
def test_a_look_up_is_ordered_by_its_words_alone(name: str, expected: list[str]) -> None:
    candidates = make("a", {1: 1.0, 2: 0.9}, cosines={2: 0.9, 3: 0.8})

    assert ranked(replace(candidates, name=name)) == expected


def test_files_of_one_path_in_two_topics_are_two() -> None:
    def fill(topic: str) -> Candidates:
        candidates = make(topic, {n: 10.0 - n for n in range(PER_FILE)})
        return replace(candidates, hits=[hit._replace(path="s.md") for hit in candidates.hits])

    texts = [hit.text for hit in rank(join_candidates([fill("a"), fill("b")]), 2 * PER_FILE)]

    assert texts == [f"{topic}{n}" for n in range(PER_FILE) for topic in "ab"]


def test_a_text_is_a_hit_once_and_names_its_copies() -> None:
    candidates = make("a", {1: 3.0, 2: 2.0, 3: 1.0})
    hits = [hit._replace(text="same" if hit.path != "2.md" else "other") for hit in candidates.hits]

    found = rank(replace(candidates, hits=hits), 3)

    assert [(hit.path, [copy.path for copy in hit.copies]) for hit in found] == [
        ("1.md", ["3.md"]),
        ("2.md", []),
    ]


def test_one_group_does_not_fill_the_results() -> None:
    items = ["a1", "a2", "a3", "b1", "a4", "c1"]

    assert spread(items, lambda item: item[0], per_group=2, limit=4) == ["a1", "a2", "b1", "c1"]
    assert spread(items, lambda item: item[0], per_group=2, limit=6) == [
        *("a1", "a2", "b1", "c1"),
        *("a3", "a4"),
    ]


@given(st.lists(st.sampled_from("aab")), st.integers(1, 3), st.integers(0, 9))
def test_spreading_loses_nothing(items: list[str], per_group: int, limit: int) -> None:
    numbered = list(enumerate(items))
    chosen = spread(numbered, lambda item: item[1], per_group=per_group, limit=limit)

    assert len(chosen) == min(limit, len(items))
    assert len(set(chosen)) == len(chosen)
