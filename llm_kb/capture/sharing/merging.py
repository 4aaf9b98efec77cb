"""Brings two stores that grew apart together again, entry by entry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from llm_kb.capture.entries import LAST_IDS, OTHER_VERSIONS, Entry, KnowledgeStore, arrange
from llm_kb.capture.likeness import dedup_key, normalize


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merged store, and what did not simply come together."""

    store: KnowledgeStore
    received: tuple[Entry, ...] = ()
    """Entries of theirs that are new here."""
    dropped: tuple[Entry, ...] = ()
    """Entries that were here, unchanged, and have been removed there."""
    duplicates: tuple[tuple[Entry, Entry], ...] = ()
    """Ours and theirs of duplicates that both sides added; they are one entry now."""
    renumbered: tuple[tuple[Entry, Entry], ...] = ()
    """Ours as it was and as it is now: theirs has an entry of that id."""
    conflicts: tuple[tuple[Entry, Entry], ...] = ()
    """Ours and theirs of an entry that both have changed; it holds both versions now."""


def merge(base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore) -> Merge:
    """Merge two stores that both come from `base`; an empty one where that is unknown.

    An entry is what it says, and its id a name for it: one that says something
    else than before is another entry. What either side added stays, what one side
    removed and the other left alone goes.
    """
    merger = _Merger(_by_key(base), _by_key(ours), _by_key(theirs))
    merger.extra = _merge_extra(base.extra, ours.extra, theirs.extra)
    for entry in theirs.entries:
        merger.take_theirs(entry)
    merger.taken = {entry.id for entry in merger.kept}
    for entry in ours.entries:
        merger.take_ours(entry)
    return Merge(
        store=KnowledgeStore(entries=arrange(merger.kept), extra=merger.extra),
        received=tuple(merger.received),
        dropped=tuple(merger.dropped),
        duplicates=tuple(merger.duplicates),
        renumbered=tuple(merger.renumbered),
        conflicts=tuple(merger.conflicts),
    )


_Key: TypeAlias = tuple[str, str | None, str]


def _by_key(store: KnowledgeStore) -> dict[_Key, Entry]:
    # Of several that say the same, which only an editor can have made, the first.
    return {dedup_key(entry): entry for entry in reversed(store.entries)}


class _Merger:
    def __init__(
        self, before: dict[_Key, Entry], here: dict[_Key, Entry], there: dict[_Key, Entry]
    ) -> None:
        self.before, self.here, self.there = before, here, there
        self.extra: dict[str, object] = {}
        self.taken: set[str] = set()
        self.kept: list[Entry] = []
        self.received: list[Entry] = []
        self.dropped: list[Entry] = []
        self.duplicates: list[tuple[Entry, Entry]] = []
        self.renumbered: list[tuple[Entry, Entry]] = []
        self.conflicts: list[tuple[Entry, Entry]] = []

    def take_theirs(self, entry: Entry) -> None:
        key = dedup_key(entry)
        before, ours = self.before.get(key), self.here.get(key)
        if ours is not None:
            self.kept.append(self._choose(before, ours, entry))
        elif before is None or not _is_same(entry, before):
            self.kept.append(entry)
            self.received.append(entry)
        # else it was removed here, and nobody there cared

    def _choose(self, before: Entry | None, ours: Entry, theirs: Entry) -> Entry:
        """Return the entry to keep of two duplicates, under the id of theirs."""
        if before is not None and _is_same(theirs, before):
            return ours._replace(fields={**ours.fields, "id": theirs.id})
        if before is not None and (_is_same(ours, before) or _is_same(ours, theirs)):
            return theirs
        if before is None and ours.id == theirs.id and _is_same(ours, theirs):
            return theirs
        both = _hold_both(ours, theirs)
        if both is not theirs or before is not None:
            self.conflicts.append((ours, theirs))
        else:
            self.duplicates.append((ours, theirs))
        return both

    def take_ours(self, entry: Entry) -> None:
        key = dedup_key(entry)
        before = self.before.get(key)
        if key in self.there:
            return
        if before is not None and _is_same(entry, before):
            self.dropped.append(entry)
            return
        if entry.id in self.taken:
            new = entry._replace(fields={**entry.fields, "id": self._next_id(entry)})
            self.renumbered.append((entry, new))
            self.taken.add(new.id)
            entry = new
        self.kept.append(entry)

    def _next_id(self, entry: Entry) -> str:
        # Also what was removed on one side has had its id.
        sides = (self.before, self.here, self.there)
        seen = (*(e for side in sides for e in side.values()), *self.kept)
        return KnowledgeStore(entries=seen, extra=self.extra).next_id(entry.kind)


def _hold_both(ours: Entry, theirs: Entry) -> Entry:
    """Return their entry, with the differing fields of ours as another version."""
    differing = {
        name: ours.text(name)
        for name in ours.kind.settable
        if normalize(ours.text(name)) != normalize(theirs.text(name))
    }
    versions = [*theirs.other_versions, *ours.other_versions, *([differing] if differing else [])]
    known = [version for n, version in enumerate(versions) if version not in versions[:n]]
    return theirs.with_fields(**{OTHER_VERSIONS: known}) if known else theirs


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are equal but for their ids."""
    return {**one.fields, "id": ""} == {**other.fields, "id": ""}


def _merge_extra(
    base: Mapping[str, object], ours: Mapping[str, object], theirs: Mapping[str, object]
) -> dict[str, object]:
    changed = {key: value for key, value in ours.items() if base.get(key) != value}
    merged = {**ours, **theirs, **changed}
    records = [KnowledgeStore(extra=extra).last_ids for extra in (ours, theirs)]
    last = {
        prefix: max(record.get(prefix, 0) for record in records)
        for prefix in dict.fromkeys(prefix for record in records for prefix in record)
    }
    return {**merged, LAST_IDS: last} if last else merged
