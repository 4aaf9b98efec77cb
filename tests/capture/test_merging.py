"""Merging two stores that were changed separately."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry, KnowledgeStore
from llm_kb.capture.sync import merge


def conv(number: int, rule: str, **more: object) -> Entry:
    fields = {"id": f"conv-{number}", "scope": "*", "rule": rule, "stability": "permanent"}
    return Entry(CONVENTION, {**fields, **more})


def anti(number: int, pattern: str, **more: object) -> Entry:
    return Entry(ANTI_PATTERN, {"id": f"ap-{number}", "pattern": pattern, "instead": "i", **more})


def store(*entries: Entry, **extra: object) -> KnowledgeStore:
    return KnowledgeStore(entries=entries, extra=extra)


A, B, C = conv(1, "a"), conv(2, "b"), conv(3, "c")


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        pytest.param(store(A), store(A), store(A), (store(A), []), id="nothing changed"),
        pytest.param(
            store(),
            store(),
            store(A),
            (store(A), ["Received: conv-1 (*): a"]),
            id="they added",
        ),
        pytest.param(store(), store(A), store(), (store(A), []), id="we added"),
        pytest.param(
            store(A),
            store(A, B),
            store(A, C),
            (store(A, C, B), ["Received: conv-3 (*): c"]),
            id="both added",
        ),
        pytest.param(store(A, B), store(A), store(A, B), (store(A), []), id="we removed"),
        pytest.param(
            store(A, B),
            store(A, B),
            store(A),
            (store(A), ["Removed there: conv-2 (*): b"]),
            id="they removed",
        ),
        pytest.param(
            store(A),
            store(A, B),
            store(A, conv(2, "x")),
            (
                store(A, conv(2, "x"), conv(3, "b")),
                ["Received: conv-2 (*): x", "Renumbered: conv-2 (*): b is now conv-3"],
            ),
            id="both gave out one id: ours gets a new one",
        ),
        pytest.param(
            store(),
            store(conv(1, "Use x.")),
            store(conv(7, "use  X")),
            (
                store(conv(7, "use  X")),
                [],
            ),
            id="both added the same: theirs stays",
        ),
        pytest.param(
            store(A),
            store(conv(1, "a", stability="provisional")),
            store(A, B),
            (store(conv(1, "a", stability="provisional"), B), ["Received: conv-2 (*): b"]),
            id="changed here alone",
        ),
        pytest.param(
            store(A, B),
            store(conv(1, "a2"), B),
            store(A, B),
            (store(B, conv(1, "a2")), []),
            id="reworded here alone: it keeps its id",
        ),
        pytest.param(
            store(A, B),
            store(A, B),
            store(conv(1, "a2"), B),
            (
                store(conv(1, "a2"), B),
                ["Received: conv-1 (*): a2", "Removed there: conv-1 (*): a"],
            ),
            id="changed there alone",
        ),
        pytest.param(
            store(A),
            store(conv(1, "ours")),
            store(conv(1, "theirs")),
            (
                store(conv(1, "theirs"), conv(2, "ours")),
                ["Received: conv-1 (*): theirs", "Renumbered: conv-1 (*): ours is now conv-2"],
            ),
            id="one id came to say two things: both stay",
        ),
        pytest.param(
            store(A),
            store(conv(1, "a", by="us", us=1)),
            store(conv(1, "a", by="them", them=2)),
            (store(conv(1, "a", by="them", us=1, them=2)), []),
            id="changed by both where nothing is known of it: all keys stay",
        ),
        pytest.param(
            store(anti(1, "p")),
            store(anti(1, "p", instead="ours")),
            store(anti(1, "p", instead="theirs")),
            (
                store(anti(1, "p", instead="theirs")),
                [
                    "Conflict: theirs is kept of ap-1: p\n  ours: instead: ours\n"
                    "  `llm kb knowledge edit ap-1` changes it."
                ],
            ),
            id="changed by both: theirs stays",
        ),
        pytest.param(
            store(),
            store(conv(1, "a", stability="provisional")),
            store(conv(2, "a")),
            (
                store(conv(2, "a")),
                [
                    "Conflict: theirs is kept of conv-2 (*): a\n  ours: stability: provisional\n"
                    "  `llm kb knowledge edit conv-2` changes it."
                ],
            ),
            id="added apart and not quite the same: theirs stays",
        ),
        pytest.param(
            store(A),
            store(conv(1, "ours")),
            store(),
            (store(conv(1, "ours")), []),
            id="changed here, removed there: kept",
        ),
        pytest.param(
            store(A),
            store(),
            store(conv(1, "theirs")),
            (store(conv(1, "theirs")), ["Received: conv-1 (*): theirs"]),
            id="removed here, changed there: kept",
        ),
        pytest.param(
            store(x=1, y=1),
            store(x=1, y=2),
            store(x=3, y=1, z=4),
            (store(x=3, y=2, z=4), []),
            id="other keys",
        ),
        pytest.param(
            store(),
            store(anti(1, "p")),
            store(A),
            (store(A, anti(1, "p")), ["Received: conv-1 (*): a"]),
            id="kinds keep their order",
        ),
    ],
)
def test_merges(
    base: KnowledgeStore,
    ours: KnowledgeStore,
    theirs: KnowledgeStore,
    expected: tuple[KnowledgeStore, list[str]],
) -> None:
    assert merge(base, ours, theirs) == expected


def test_a_new_id_is_free_on_both_sides() -> None:
    ours = store(conv(1, "ours"), conv(4, "d"))
    merged = merge(store(), ours, store(conv(1, "theirs"), conv(5, "e")))
    assert merged[1][-1] == "Renumbered: conv-1 (*): ours is now conv-6"


entries = st.builds(conv, st.integers(1, 6), st.sampled_from("abcdefgh"))
stores = st.lists(entries, max_size=6, unique_by=(lambda e: e.id, lambda e: e.rule)).map(
    lambda found: store(*found)
)


@given(stores, stores, stores)
def test_nothing_is_lost_but_what_one_side_removed(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    merged = {entry.key for entry in merge(base, ours, theirs)[0].entries}
    before = {entry.key for entry in base.entries}
    here = {entry.key for entry in ours.entries}
    there = {entry.key for entry in theirs.entries}
    assert (here | there) - before <= merged
    assert merged <= here | there
    assert here & there <= merged


@given(stores, stores, stores)
def test_ids_stay_unique(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    ids = [entry.id for entry in merge(base, ours, theirs)[0].entries]
    assert len(set(ids)) == len(ids)


@given(stores, stores)
def test_one_changed_side_is_taken_over(base: KnowledgeStore, changed: KnowledgeStore) -> None:
    """Its rules, that is: where only an id changed, the others' id stays."""

    def rules(store: KnowledgeStore) -> list[str]:
        return sorted(entry.rule for entry in store.entries)

    assert rules(merge(base, base, changed)[0]) == rules(changed)
    assert rules(merge(base, changed, base)[0]) == rules(changed)


@given(stores, stores, stores)
def test_merging_again_changes_nothing(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    once = merge(base, ours, theirs)[0]
    assert set(map(repr, merge(theirs, theirs, once)[0].entries)) == set(map(repr, once.entries))
