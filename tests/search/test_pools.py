"""Pools of several topics are ranked as one."""

from __future__ import annotations

import pytest

from llm_kb.search.index.index import StoredChunk
from llm_kb.search.pools import PER_FILE, Pool, join_pools, rank_pool

WORDS = ("walrus", "tusks", "grow")


def make_pool(
    topic: str,
    scores: dict[int, float],
    *,
    cosines: dict[int, float] | None = None,
    frequencies: dict[str, int] | None = None,
    words: tuple[str, ...] = WORDS,
) -> Pool:
    """Make a pool of a topic of 100 chunks, each of a file of its own."""
    cosines = cosines or {}
    return Pool(
        chunks={
            (topic, id_): StoredChunk(f"{id_}.md", 1, 9, "", "", "text") for id_ in scores | cosines
        },
        scores={(topic, id_): score for id_, score in scores.items()},
        cosines={(topic, id_): cosine for id_, cosine in cosines.items()},
        words=words,
        frequencies=frequencies or dict.fromkeys(words, 10),
        total=100,
    )


def test_one_pool_stays_as_it_is() -> None:
    pool = make_pool("a", {1: 2.0, 2: 1.0})

    assert join_pools([pool]) is pool
    assert rank_pool(pool, 5) == [("a", 1), ("a", 2)]


def test_pools_are_ranked_together() -> None:
    joined = join_pools([make_pool("a", {1: 2.0, 2: 1.0}), make_pool("b", {1: 1.5, 2: 0.5})])

    assert rank_pool(joined, 3) == [("a", 1), ("b", 1), ("a", 2)]
    assert joined.total == 200
    assert joined.frequencies == dict.fromkeys(WORDS, 20)


def test_a_topic_about_a_word_does_not_lose_by_it() -> None:
    about = make_pool("about", {1: 1.0}, frequencies=dict.fromkeys(WORDS, 90))
    beside = make_pool("beside", {1: 2.0}, frequencies=dict.fromkeys(WORDS, 2))

    assert about.scores[("about", 1)] < beside.scores[("beside", 1)]
    assert rank_pool(join_pools([beside, about]), 2) == [("about", 1), ("beside", 1)]


def test_a_word_that_a_topic_lacks_scales_nothing() -> None:
    lacking = make_pool("lacking", {}, frequencies=dict.fromkeys(WORDS, 0))
    pool = make_pool("a", {1: 2.0})

    assert rank_pool(join_pools([lacking, pool]), 2) == [("a", 1)]
    assert rank_pool(join_pools([]), 2) == []
    assert rank_pool(join_pools([lacking, lacking]), 2) == []


def test_the_nearest_is_so_in_all_topics() -> None:
    one = make_pool("a", {}, cosines={1: 0.3, 2: 0.2})
    other = make_pool("b", {}, cosines={1: 0.9, 2: 0.25})

    assert rank_pool(join_pools([one, other]), 4) == [("b", 1), ("a", 1), ("b", 2), ("a", 2)]


@pytest.mark.parametrize(
    ("words", "first"),
    [(WORDS, 2), (WORDS[:2], 1), (WORDS[:1], 1)],
    ids=["a question", "two words", "one word"],
)
def test_the_best_by_words_stays_first_of_a_look_up(words: tuple[str, ...], first: int) -> None:
    pool = make_pool("a", {1: 1.0, 2: 0.9}, cosines={2: 0.9, 3: 0.8}, words=words)

    assert rank_pool(pool, 3)[0] == ("a", first)
    assert sorted(rank_pool(pool, 3)) == [("a", 1), ("a", 2), ("a", 3)]


def test_files_of_one_path_in_two_topics_are_two() -> None:
    def fill(topic: str) -> Pool:
        pool = make_pool(topic, {id_: 10.0 - id_ for id_ in range(PER_FILE)})
        same = {key: chunk._replace(path="same.md") for key, chunk in pool.chunks.items()}
        return Pool(
            chunks=same,
            scores=pool.scores,
            cosines={},
            words=pool.words,
            frequencies=pool.frequencies,
            total=pool.total,
        )

    ranked = rank_pool(join_pools([fill("a"), fill("b")]), 2 * PER_FILE)

    assert ranked == [(topic, id_) for id_ in range(PER_FILE) for topic in "ab"]
