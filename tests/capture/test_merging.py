"""Merging two stores that were changed separately."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry, KnowledgeStore
from llm_kb.capture.likeness import dedup_key
from llm_kb.capture.merging import Merge, merge


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
        pytest.param(store(A), store(A), store(A), Merge(store=store(A)), id="nothing changed"),
        pytest.param(
            store(), store(), store(A), Merge(store=store(A), received=(A,)), id="they added"
        ),
        pytest.param(store(), store(A), store(), Merge(store=store(A)), id="we added"),
        pytest.param(
            store(A),
            store(A, B),
            store(A, C),
            Merge(store=store(A, C, B), received=(C,)),
            id="both added",
        ),
        pytest.param(store(A, B), store(A), store(A, B), Merge(store=store(A)), id="we removed"),
        pytest.param(
            store(A, B),
            store(A, B),
            store(A),
            Merge(store=store(A), dropped=(B,)),
            id="they removed",
        ),
        pytest.param(
            store(A),
            store(A, B),
            store(A, conv(2, "x")),
            Merge(
                store=store(A, conv(2, "x"), conv(3, "b")),
                received=(conv(2, "x"),),
                renumbered=((B, conv(3, "b")),),
            ),
            id="both gave out one id: ours gets a new one",
        ),
        pytest.param(
            store(),
            store(conv(1, "Use x.")),
            store(conv(7, "use  X")),
            Merge(
                store=store(conv(7, "use  X")),
                duplicates=((conv(1, "Use x."), conv(7, "use  X")),),
            ),
            id="both added the same: theirs stays",
        ),
        pytest.param(
            store(A),
            store(conv(1, "a", stability="provisional")),
            store(A, B),
            Merge(store=store(conv(1, "a", stability="provisional"), B), received=(B,)),
            id="changed here alone",
        ),
        pytest.param(
            store(A, B),
            store(conv(1, "a2"), B),
            store(A, B),
            Merge(store=store(B, conv(1, "a2"))),
            id="reworded here alone: it keeps its id",
        ),
        pytest.param(
            store(A, B),
            store(A, B),
            store(conv(1, "a2"), B),
            Merge(store=store(conv(1, "a2"), B), received=(conv(1, "a2"),), dropped=(A,)),
            id="changed there alone",
        ),
        pytest.param(
            store(A),
            store(conv(1, "ours")),
            store(conv(1, "theirs")),
            Merge(
                store=store(conv(1, "theirs"), conv(2, "ours")),
                received=(conv(1, "theirs"),),
                renumbered=((conv(1, "ours"), conv(2, "ours")),),
            ),
            id="one id came to say two things: both stay",
        ),
        pytest.param(
            store(A),
            store(conv(1, "a", by="us")),
            store(conv(1, "a", by="them")),
            Merge(
                store=store(conv(1, "a", by="them")),
                conflicts=((conv(1, "a", by="us"), conv(1, "a", by="them")),),
            ),
            id="changed by both where nothing is known of it: theirs stays and it is shown",
        ),
        pytest.param(
            store(anti(1, "p")),
            store(anti(1, "p", instead="ours")),
            store(anti(1, "p", instead="theirs")),
            Merge(
                store=store(anti(1, "p", instead="theirs", other_versions=[{"instead": "ours"}])),
                conflicts=((anti(1, "p", instead="ours"), anti(1, "p", instead="theirs")),),
            ),
            id="changed by both: both versions are kept",
        ),
        pytest.param(
            store(),
            store(conv(1, "a", stability="provisional")),
            store(conv(2, "a")),
            Merge(
                store=store(conv(2, "a", other_versions=[{"stability": "provisional"}])),
                conflicts=((conv(1, "a", stability="provisional"), conv(2, "a")),),
            ),
            id="added apart and not quite the same: both versions are kept",
        ),
        pytest.param(
            store(A),
            store(conv(1, "ours")),
            store(),
            Merge(store=store(conv(1, "ours"))),
            id="changed here, removed there: kept",
        ),
        pytest.param(
            store(A),
            store(),
            store(conv(1, "theirs")),
            Merge(store=store(conv(1, "theirs")), received=(conv(1, "theirs"),)),
            id="removed here, changed there: kept",
        ),
        pytest.param(
            store(x=1, y=1),
            store(x=1, y=2, last_ids={"conv": 5, "ap": 1}),
            store(x=3, y=1, z=4, last_ids={"conv": 2, "bound": 9}),
            Merge(store=store(x=3, y=2, z=4, last_ids={"conv": 5, "ap": 1, "bound": 9})),
            id="other keys, and the record of ids",
        ),
        pytest.param(
            store(),
            store(anti(1, "p")),
            store(A),
            Merge(store=store(A, anti(1, "p")), received=(A,)),
            id="kinds keep their order",
        ),
    ],
)
def test_merges(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore, expected: Merge
) -> None:
    assert merge(base, ours, theirs) == expected


def test_a_new_id_is_free_on_both_sides_and_was_never_used() -> None:
    ours = store(conv(1, "ours"), conv(4, "d"), last_ids={"conv": 6})
    merged = merge(store(), ours, store(conv(1, "theirs"), conv(5, "e")))
    assert merged.renumbered == ((conv(1, "ours"), conv(7, "ours")),)


entries = st.builds(conv, st.integers(1, 6), st.sampled_from("abcdefgh"))
stores = st.lists(entries, max_size=6, unique_by=(lambda e: e.id, lambda e: e.rule)).map(
    lambda found: store(*found)
)


@given(stores, stores, stores)
def test_nothing_is_lost_but_what_one_side_removed(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    merged = {dedup_key(entry) for entry in merge(base, ours, theirs).store.entries}
    before = {dedup_key(entry) for entry in base.entries}
    here = {dedup_key(entry) for entry in ours.entries}
    there = {dedup_key(entry) for entry in theirs.entries}
    assert (here | there) - before <= merged
    assert merged <= here | there
    assert here & there <= merged


@given(stores, stores, stores)
def test_ids_stay_unique(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    ids = [entry.id for entry in merge(base, ours, theirs).store.entries]
    assert len(set(ids)) == len(ids)


@given(stores, stores)
def test_one_changed_side_is_taken_over(base: KnowledgeStore, changed: KnowledgeStore) -> None:
    """Its rules, that is: where only an id changed, the others' id stays."""

    def rules(store: KnowledgeStore) -> list[str]:
        return sorted(entry.rule for entry in store.entries)

    assert rules(merge(base, base, changed).store) == rules(changed)
    assert rules(merge(base, changed, base).store) == rules(changed)


@given(stores, stores, stores)
def test_merging_again_changes_nothing(
    base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore
) -> None:
    once = merge(base, ours, theirs).store
    assert set(map(repr, merge(theirs, theirs, once).store.entries)) == set(map(repr, once.entries))
