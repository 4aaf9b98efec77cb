"""The knowledge store as JSON: parsed with every problem reported, written as it was. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from llm_kb.capture.entries import KINDS, SCHEMA, STABILITIES, Entry, Kind, KnowledgeStore, describe

_MAX_PROBLEMS = 20


class StoreFormatError(ValueError):
    """Bytes that are no knowledge store, each problem with the path to it."""

    def __init__(self, problems: list[str]) -> None:
        left_out = len(problems) - _MAX_PROBLEMS
        shown = problems[:_MAX_PROBLEMS]
        self.problems = (*shown, f"and {left_out} more") if left_out > 0 else tuple(shown)
        super().__init__("; ".join(self.problems))


def parse_store(data: bytes) -> KnowledgeStore:
    """Read a store from its JSON; raise StoreFormatError with every problem of it."""
    return parse_tables(data).to_store()


def parse_tables(data: bytes) -> StoreTables:
    """Read the tables of a store from its JSON, as `parse_store` does."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreFormatError([f"not JSON: {error}"]) from error
    if not isinstance(raw, dict):
        raise StoreFormatError([f"expected an object, found {describe(raw)}"])
    if raw.get("schema") != SCHEMA:
        found = repr(raw["schema"]) if "schema" in raw else "nothing"
        raise StoreFormatError([f"schema: expected {SCHEMA!r}, found {found}"])
    problems: list[str] = []
    tables = tuple(_parse_table(kind, raw, problems) for kind in KINDS)
    if problems:
        raise StoreFormatError(problems)
    known = {"schema", *(kind.key for kind in KINDS)}
    extra = {key: value for key, value in raw.items() if key not in known}
    return StoreTables(tables=tables, extra=extra)


def _parse_table(kind: Kind, raw: Mapping[str, object], problems: list[str]) -> Table:
    listed = raw.get(kind.key, [])
    if not isinstance(listed, list):
        problems.append(f"{kind.key}: expected a list, found {describe(listed)}")
        return make_table(kind, ())
    return _make_plain_table(kind, listed) or make_table(
        kind, list(_parse_rows(kind, listed, problems))
    )


def _make_plain_table(kind: Kind, listed: Sequence[Fields]) -> Table | None:
    """Return the table of a list of which all is well, looking at columns alone.

    A store has thousands of entries and hardly ever a problem: entry by entry, the
    search for one takes longer than parsing the JSON.
    """
    try:
        table = make_table(kind, listed)
        for column in table.columns.values():
            "".join(column)  # takes nothing but text
    except (AttributeError, KeyError, TypeError):
        return None
    is_plain = (
        set(map(type, listed)) <= {dict}
        and {type(origin) for _, origin in table.distinct_anchors} <= {str, type(None)}
        and set(table.columns.get("stability", ())) <= set(STABILITIES)
    )
    return table if is_plain else None


def _parse_rows(kind: Kind, listed: list[object], problems: list[str]) -> Iterator[Fields]:
    for index, fields in enumerate(listed):
        if not isinstance(fields, dict):
            problems.append(f"{kind.key}[{index}]: expected an object, found {describe(fields)}")
            continue
        found = [f"{kind.key}[{index}].{problem}" for problem in _check_fields(kind, fields)]
        problems.extend(found)
        if not found:
            yield fields


def _check_fields(kind: Kind, fields: Mapping[str, object]) -> Iterator[str]:
    for name in kind.order:
        value = fields.get(name)
        if name == "stability":
            if value not in STABILITIES:
                allowed = ", ".join(STABILITIES)
                yield f"stability: expected one of {allowed}, found {value!r}"
        elif value is None and name == kind.provenance:
            pass  # the one field that may be absent
        elif not isinstance(value, str):
            yield f"{name}: expected text, found " + (
                describe(value) if name in fields else "nothing"
            )


def order_fields(kind: Kind, fields: Fields) -> Fields:
    """Return the JSON object of an entry, its known fields first and in order."""
    if tuple(fields) in _AS_WRITTEN[kind] and fields.get(kind.provenance, "") is not None:
        return fields
    known = {name: fields[name] for name in kind.order if fields.get(name) is not None}
    return known | {key: value for key, value in fields.items() if key not in kind.order}


_AS_WRITTEN = {
    kind: {kind.order, tuple(name for name in kind.order if name != kind.provenance)}
    for kind in KINDS
}
"""The fields of an entry that needs no putting in order, with and without provenance."""


def dump_json(value: object) -> bytes:
    """Return pretty JSON, ending in a newline, as git-chronicle writes it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair, which only an escape can carry.
        return json.dumps(value, indent=2).encode() + b"\n"


def dump_store(store: KnowledgeStore) -> bytes:
    """Return what `dump_json` would make of a store, in a fraction of the time."""
    lists = {kind: [entry.fields for entry in store.of_kind(kind)] for kind in KINDS}
    return _dump_lists(lists, store.extra)


def dump_tables(stored: StoreTables) -> bytes:
    """Return what `dump_store` makes of the same store."""
    return _dump_lists({table.kind: table.rows for table in stored.tables}, stored.extra)


def _dump_lists(lists: Mapping[Kind, Sequence[Fields]], extra: Mapping[str, object]) -> bytes:
    members = [f'"schema": "{SCHEMA}"']
    ordered = {k.key: [order_fields(k, row) for row in rows] for k, rows in lists.items()}
    members += [f'"{key}": {_dump_entries(rows)}' for key, rows in ordered.items()]
    members += [f"{_ENCODE(key)}: {_dump_nested(value)}" for key, value in extra.items()]
    try:
        return ("{\n  " + ",\n  ".join(members) + "\n}\n").encode()
    except UnicodeEncodeError:
        return dump_json({"schema": SCHEMA, **ordered, **extra})


def is_as_written(data: bytes) -> bool:
    """Tell whether the bytes of a store are laid out as `dump_store` would lay them out.

    Not each entry is looked at: they may have been edited by hand, line by line.
    """
    # A line begins nowhere inside a text, so these are keys.
    keys = [f'\n  "{kind.key}": ['.encode() for kind in KINDS]
    if not (data.startswith(b"{\n") and data.endswith(b"\n}\n") and all(k in data for k in keys)):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False  # half a surrogate pair, which JSON in UTF-8 cannot carry
    return True


# With an indent, Python encodes JSON in Python; without one, in C. Entries are flat as a
# rule, and then the separators can bring the start of the next line along.
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",\n      ", ": ")).encode


def _dump_entries(entries: Sequence[Mapping[str, object]]) -> str:
    values = chain.from_iterable(entry.values() for entry in entries)
    if not entries or any(isinstance(value, (dict, list)) for value in values):
        return _dump_nested(entries)
    # A line never ends inside a text, where a line break is an escape. So this can only
    # be where one entry ends and the next begins.
    items = _ENCODE(entries)[2:-2].replace("},\n      {", "\n    },\n    {\n      ")
    return "[\n    {\n      " + items + "\n    }\n  ]"


def _dump_nested(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


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
