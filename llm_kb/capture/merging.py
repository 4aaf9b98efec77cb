"""Merges two stores that were changed separately, entry by entry. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from llm_kb.capture.entries import LAST_IDS, OTHER_VERSIONS, Entry, KnowledgeStore, arrange
from llm_kb.capture.likeness import dedup_key, normalize


@dataclass(slots=True, kw_only=True)
class Merge:
    """A merged store, and the entries that changed by the merge."""

    store: KnowledgeStore
    received: tuple[Entry, ...] = ()
    """Their entries that are new here."""
    dropped: tuple[Entry, ...] = ()
    """Our unchanged entries that were removed there."""
    duplicates: tuple[tuple[Entry, Entry], ...] = ()
    """Ours and theirs of each duplicate that both sides added; it is one entry now."""
    renumbered: tuple[tuple[Entry, Entry], ...] = ()
    """Our entries before and after they got another id, since theirs has the old one."""
    conflicts: tuple[tuple[Entry, Entry], ...] = ()
    """Ours and theirs of each entry that both sides changed; it holds both versions now."""


def merge(base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore) -> Merge:
    """Merge two stores that both come from `base`, an empty store if that is unknown.

    An entry is identified by its content, not by its id: an entry with another rule is
    another entry. Entries that either side added stay; entries that one side removed and
    the other did not change go.
    """
    merger = _Merger(base, ours, theirs)
    kept = list(merger.keep_theirs(theirs.entries))
    kept += merger.keep_ours(ours.entries, taken={entry.id for entry in kept})
    merger.merge.store = replace(merger.merge.store, entries=arrange(kept))
    return merger.merge


_Key: TypeAlias = tuple[str, str | None, str]


def _by_key(store: KnowledgeStore) -> dict[_Key, Entry]:
    # Of duplicates, which only manual edits can make, the first.
    return {dedup_key(entry): entry for entry in reversed(store.entries)}


class _Merger:
    def __init__(self, base: KnowledgeStore, ours: KnowledgeStore, theirs: KnowledgeStore) -> None:
        self.before, self.here, self.there = _by_key(base), _by_key(ours), _by_key(theirs)
        extra = _merge_extra(base.extra, ours.extra, theirs.extra)
        self.merge = Merge(store=KnowledgeStore(extra=extra))

    def keep_theirs(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield their entries to keep, also those that we have too."""
        for entry in entries:
            key = dedup_key(entry)
            before, ours = self.before.get(key), self.here.get(key)
            if ours is not None:
                yield self._choose(before, ours, entry)
            elif before is None or not _is_same(entry, before):
                self.merge.received += (entry,)
                yield entry
            # else it was removed here and not changed there

    def keep_ours(self, entries: Iterable[Entry], taken: set[str]) -> Iterator[Entry]:
        """Yield the entries to keep that are ours alone, with a new id if theirs has it."""
        # An entry removed on one side has had its id, too.
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
        """Return the entry to keep of two duplicates, with the id of theirs."""
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
    """Return their entry, with our differing fields as another version."""
    differing = {
        name: ours.text(name)
        for name in ours.kind.settable
        if normalize(ours.text(name)) != normalize(theirs.text(name))
    }
    versions = [*theirs.other_versions, *ours.other_versions, *([differing] if differing else [])]
    known = [version for n, version in enumerate(versions) if version not in versions[:n]]
    return theirs.with_fields(**{OTHER_VERSIONS: known}) if known else theirs


def _is_same(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are equal except for their ids."""
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
