"""A store as its three lists, each looked at column by column. Pure.

To list thousands of entries takes no `Entry`: they share a few places and commits, and
what is done to a whole column is done in C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from llm_kb.capture.entries import KINDS, Entry, Kind, KnowledgeStore

Fields: TypeAlias = Mapping[str, Any]
Anchor: TypeAlias = "tuple[str | None, str | None]"
"""What ties an entry to its repository: the place it holds in, the commit it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The entries of one kind as they stand in a store, and the columns of their fields."""

    kind: Kind
    rows: Sequence[Fields]
    columns: Mapping[str, Sequence[str]]
    """What every entry has, by the field's name."""
    provenance: Sequence[str | None]
    distinct_anchors: frozenset[Anchor]

    @property
    def anchors(self) -> Iterator[Anchor]:
        """The anchor of each row."""
        return _pair(self.kind, self.columns, self.provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTables:
    """A store as it was read: a table for each of `KINDS`, in that order."""

    tables: tuple[Table, ...]
    extra: Mapping[str, object]

    @property
    def anchors(self) -> frozenset[Anchor]:
        """The anchors of all entries."""
        return frozenset().union(*(table.distinct_anchors for table in self.tables))

    def to_store(self) -> KnowledgeStore:
        """Return the same entries one by one."""
        # In C, as Entry() is not.
        pairs = chain.from_iterable(zip(repeat(t.kind), t.rows) for t in self.tables)
        return KnowledgeStore(entries=tuple(map(Entry._make, pairs)), extra=self.extra)


def make_table(kind: Kind, rows: Sequence[Fields]) -> Table:
    """Return the table of some rows; KeyError or TypeError says that they are not of the kind."""
    columns = {name: list(map(itemgetter(name), rows)) for name in kind.always}
    try:
        provenance = list(map(itemgetter(kind.provenance), rows))
    except KeyError:
        provenance = [row.get(kind.provenance) for row in rows]  # slower, and absent is None
    return Table(
        kind=kind,
        rows=rows,
        columns=columns,
        provenance=provenance,
        distinct_anchors=frozenset(_pair(kind, columns, provenance)),
    )


def _pair(
    kind: Kind, columns: Mapping[str, Sequence[str]], provenance: Sequence[str | None]
) -> Iterator[Anchor]:
    places: Iterable[str | None] = columns[kind.place] if kind.place else repeat(None)
    return zip(places, provenance, strict=False)


def make_tables(store: KnowledgeStore) -> StoreTables:
    """Return the tables of a store."""
    return StoreTables(
        tables=tuple(make_table(k, [entry.fields for entry in store.of_kind(k)]) for k in KINDS),
        extra=store.extra,
    )
