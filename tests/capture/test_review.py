"""The entries to review, and their order."""

from __future__ import annotations

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Anchor, Entry, Status
from llm_kb.capture.likeness import order_for_review


def conv(name: str, **fields: object) -> Entry:
    known = {"id": name, "scope": f"{name}/", "rule": name, "stability": "permanent"}
    return Entry(CONVENTION, {**known, "decided_in": "a" * 40, **fields})


def test_the_most_doubtful_come_first_and_the_settled_not_at_all() -> None:
    known: dict[str, Status] = {
        "gone": Status(place_exists=False),
        "branch": Status(is_on_branch=False),
        "settled": Status(is_on_branch=True, place_exists=True),
        "new": Status(),
        "two": Status(),
    }
    entries = [conv(name) for name in known]
    entries[3] = conv("new", stability="provisional")
    entries[4] = conv("two", other_versions=[{"rule": "x"}])
    anti = Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"})
    kept = Entry(ANTI_PATTERN, {**anti.fields, "id": "ap-2", "reviewed_in": "b" * 40})
    statuses: dict[Anchor, Status] = {e.anchor: known[e.id] for e in entries}
    statuses |= {e.anchor: Status() for e in (anti, kept)}
    found = [entry.id for entry in order_for_review([*entries, anti, kept], statuses)]
    assert found == ["two", "gone", "branch", "new", "ap-1"]
    everything = order_for_review([*entries, anti, kept], statuses, everything=True)
    assert [entry.id for entry in everything][5:] == ["settled", "ap-2"]
