"""Brings two stores that grew apart together again, entry by entry. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from llm_kb.capture.entries import LAST_IDS, OTHER_VERSIONS, Entry, KnowledgeStore, arrange
from llm_kb.capture.likeness import dedup_key, normalize


@dataclass(slots=True, kw_only=True)
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
    merger = _Merger(base, ours, theirs)
    kept = list(merger.keep_theirs(theirs.entries))
    kept += merger.keep_ours(ours.entries, taken={entry.id for entry in kept})
    merger.merge.store = replace(merger.merge.store, entries=arrange(kept))
    return merger.merge


_Key: TypeAlias = tuple[str, str | None, str]


def _by_key(store: KnowledgeStore) -> dict[_Key, Entry]:
    # Of several that say the same, which only an editor can have made, the first.
    return {dedup_key(entry): entry for entry in reversed(store.entries)}


class _Merger:
    def __init__(self, base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore) -> None:
        self.before, self.here, self.there = _by_key(base), _by_key(ours), _by_key(theirs)
        extra = _merge_extra(base.extra, ours.extra, theirs.extra)
        self.merge = Merge(store=KnowledgeStore(extra=extra))

    def keep_theirs(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries to keep of theirs, those of both sides among them."""
        for entry in entries:
            key = dedup_key(entry)
            before, ours = self.before.get(key), self.here.get(key)
            if ours is not None:
                yield self._choose(before, ours, entry)
            elif before is None or not _is_same(entry, before):
                self.merge.received += (entry,)
                yield entry
            # else it was removed here, and nobody there cared

    def keep_ours(self, entries: Iterable[Entry], taken: set[str]) -> Iterator[Entry]:
        """Yield the entries to keep that are ours alone, with another id if theirs is taken."""
        # Also what was removed on one side has had its id.
        sides = (self.before, self.here, self.there)
        seen = [entry for side in sides for entry in side.values()]
        for entry in entries:
            key = dedup_key(entry)
            before = self.before.get(key)
            if key in self.there:
                continue
            if before is not None and _is_same(entry, before):
                self.merge.dropped += (entry,)
                continue
            kept = entry
            if entry.id in taken:
                store = replace(self.merge.store, entries=tuple(seen))
                kept = entry.with_fields(id=store.next_id(entry.kind))
                self.merge.renumbered += ((entry, kept),)
                taken.add(kept.id)
                seen.append(kept)
            yield kept

    def _choose(self, before: Entry | None, ours: Entry, theirs: Entry) -> Entry:
        """Return the entry to keep of two duplicates, under the id of theirs."""
        if before is not None and _is_same(theirs, before):
            return ours.with_fields(id=theirs.id)
        if before is not None and (_is_same(ours, before) or _is_same(ours, theirs)):
            return theirs
        if before is None and ours.id == theirs.id and _is_same(ours, theirs):
            return theirs
        both = _hold_both(ours, theirs)
        if both is not theirs or before is not None:
            self.merge.conflicts += ((ours, theirs),)
        else:
            self.merge.duplicates += ((ours, theirs),)
        return both


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
