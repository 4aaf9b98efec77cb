"""Entries of the knowledge store and their JSON, `chronicle/knowledge-v1`. Pure.

An entry is its JSON object, checked: keys this version does not know are kept
where they are, so that nothing is lost when the store is written back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter, methodcaller
from typing import NamedTuple, cast

SCHEMA = "chronicle/knowledge-v1"
STABILITIES = ("permanent", "provisional", "experimental")

LAST_IDS = "last_ids"
"""A key of our own: by prefix, the highest number of an id that has been removed."""

_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One of the three kinds of entry, and the names of its fields."""

    name: str
    """What `emit_knowledge` calls it."""
    key: str
    """The key of its list in the store."""
    prefix: str
    """What its ids begin with."""
    title: str
    order: tuple[str, ...]
    """Its fields in the order they are written."""
    required: tuple[str, ...]
    place: str | None
    """The field that says where it holds; None when it holds everywhere."""
    rule: str
    """The field that makes two entries of one place the same."""
    provenance: str
    origin: str
    """How its provenance is spoken of."""

    @property
    def always(self) -> tuple[str, ...]:
        """The fields that every entry of the kind has."""
        return ("id", *self.settable)

    @property
    def settable(self) -> tuple[str, ...]:
        """The fields its author fills; the rest is filled in for them."""
        return (*self.required, *(("stability",) if "stability" in self.order else ()))


CONVENTION = Kind(
    name="convention",
    key="conventions",
    prefix="conv",
    title="Conventions",
    order=("id", "scope", "rule", "decided_in", "stability"),
    required=("scope", "rule"),
    place="scope",
    rule="rule",
    provenance="decided_in",
    origin="decided in",
)
BOUNDARY = Kind(
    name="boundary",
    key="boundaries",
    prefix="bound",
    title="Module boundaries",
    order=("id", "module", "owns", "boundary", "decided_in"),
    required=("module", "owns", "boundary"),
    place="module",
    rule="boundary",
    provenance="decided_in",
    origin="decided in",
)
ANTI_PATTERN = Kind(
    name="anti_pattern",
    key="anti_patterns",
    prefix="ap",
    title="Anti-patterns",
    order=("id", "pattern", "instead", "learned_from"),
    required=("pattern", "instead"),
    place=None,
    rule="pattern",
    provenance="learned_from",
    origin="learned from",
)
KINDS = (CONVENTION, BOUNDARY, ANTI_PATTERN)


class Entry(NamedTuple):
    """One convention, boundary or anti-pattern.

    A named tuple, because thousands are made at every reading, and a frozen
    dataclass takes three times as long to make.
    """

    kind: Kind
    fields: Mapping[str, object]
    """Its JSON object; what `kind.order` names is text where it is there."""

    @property
    def id(self) -> str:
        """Its id, unique in a store that nobody edited by hand."""
        return self[1]["id"]  # type: ignore[return-value]  # checked when it was read

    def text(self, name: str) -> str:
        """Return a field as text; empty where it is absent."""
        return cast("str | None", self.fields.get(name)) or ""

    @property
    def place(self) -> str | None:
        """The scope or module it holds in; None when it holds everywhere."""
        return self.text(self.kind.place) if self.kind.place else None

    @property
    def rule(self) -> str:
        """What it says: the rule, the boundary or the pattern."""
        return self.text(self.kind.rule)

    @property
    def provenance(self) -> str | None:
        """The commit it comes from, or whatever else was given for one."""
        return self.text(self.kind.provenance) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeStore:
    """Every entry of a repository, kind by kind in the order of `KINDS`."""

    entries: tuple[Entry, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    """Top-level keys besides the schema and the three lists."""

    def of_kind(self, kind: Kind) -> tuple[Entry, ...]:
        """Return the entries of one kind, in their order."""
        return tuple(entry for entry in self.entries if entry.kind is kind)

    @property
    def last_ids(self) -> Mapping[str, int]:
        """The highest number of a removed id, by prefix, where one is remembered."""
        found = self.extra.get(LAST_IDS)
        if not isinstance(found, dict):
            return {}
        return {key: number for key, number in found.items() if type(number) is int}

    def next_id(self, kind: Kind) -> str:
        """Return the next id of a kind: one that no entry has or, by our record, ever had."""
        numbers = (id_number(kind, entry.id) for entry in self.entries)
        return f"{kind.prefix}-{max(self.last_ids.get(kind.prefix, 0), *numbers, 0) + 1}"


def arrange(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries kind by kind, in the order of `KINDS` and of their own within each."""
    ordered = tuple(entries)
    return tuple(entry for kind in KINDS for entry in ordered if entry.kind is kind)


def id_number(kind: Kind, id_: str) -> int:
    """Return N of an id `prefix-N` of a kind, 0 for any other."""
    prefix, dash, number = id_.rpartition("-")
    plain = dash and prefix == kind.prefix and number.isascii() and number.isdigit()
    # Longer numbers are nobody's count, and Python refuses to convert the longest.
    return int(number) if plain and len(number) <= 15 else 0


class StoreFormatError(ValueError):
    """Bytes that are no knowledge store, each problem with the path to it."""

    def __init__(self, problems: list[str]) -> None:
        left_out = len(problems) - _MAX_PROBLEMS
        shown = problems[:_MAX_PROBLEMS]
        self.problems = (*shown, f"and {left_out} more") if left_out > 0 else tuple(shown)
        super().__init__("; ".join(self.problems))


def parse_store(data: bytes) -> KnowledgeStore:
    """Read a store from its JSON; raise StoreFormatError with every problem of it."""
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
    entries: list[Entry] = []
    for kind in KINDS:
        entries += _parse_kind(kind, raw, problems)
    if problems:
        raise StoreFormatError(problems)
    known = {"schema", *(kind.key for kind in KINDS)}
    extra = {key: value for key, value in raw.items() if key not in known}
    return KnowledgeStore(entries=tuple(entries), extra=extra)


def _parse_kind(kind: Kind, raw: Mapping[str, object], problems: list[str]) -> Iterable[Entry]:
    listed = raw.get(kind.key, [])
    if not isinstance(listed, list):
        problems.append(f"{kind.key}: expected a list, found {describe(listed)}")
        return ()
    if _is_plain(kind, listed):
        return map(Entry, repeat(kind), listed)
    return list(_parse_entries(kind, listed, problems))


def _parse_entries(kind: Kind, listed: list[object], problems: list[str]) -> Iterator[Entry]:
    for index, fields in enumerate(listed):
        if not isinstance(fields, dict):
            problems.append(f"{kind.key}[{index}]: expected an object, found {describe(fields)}")
            continue
        found = [f"{kind.key}[{index}].{problem}" for problem in _check_fields(kind, fields)]
        problems.extend(found)
        if not found:
            yield Entry(kind, fields)


def _is_plain(kind: Kind, listed: Sequence[object]) -> bool:
    """Tell whether all is well with a list, looking at all of its entries together.

    A store has thousands of entries and hardly ever a problem: entry by entry, the
    search for one takes longer than parsing the JSON.
    """
    if set(map(type, listed)) != {dict}:
        return False
    entries = cast("Sequence[dict[str, object]]", listed)
    try:
        texts = list(map(itemgetter(*kind.always), entries))
    except KeyError:
        return False
    origins = set(map(type, map(methodcaller("get", kind.provenance), entries)))
    return (
        set(map(type, chain.from_iterable(texts))) == {str}
        and origins <= {str, type(None)}
        and ("stability" not in kind.order or {text[-1] for text in texts} <= set(STABILITIES))
    )


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


def describe(value: object) -> str:
    """Return the name of a JSON value's type."""
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names[type(value)]


def store_json(store: KnowledgeStore) -> dict[str, object]:
    """Return the store as the JSON object it is written as."""
    lists = {kind.key: [entry_json(e) for e in store.of_kind(kind)] for kind in KINDS}
    return {"schema": SCHEMA, **lists, **store.extra}


def entry_json(entry: Entry) -> dict[str, object]:
    """Return the JSON object of an entry, its known fields first and in order."""
    order = entry.kind.order
    known = {name: entry.fields[name] for name in order if entry.fields.get(name) is not None}
    return known | {key: value for key, value in entry.fields.items() if key not in order}


def dump_json(value: object) -> bytes:
    """Return pretty JSON, ending in a newline, as git-chronicle writes it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair, which only an escape can carry.
        return json.dumps(value, indent=2).encode() + b"\n"


def dump_store(store: KnowledgeStore) -> bytes:
    """Return what `dump_json` makes of a store, in a fraction of the time."""
    members = [f'"schema": "{SCHEMA}"']
    for kind in KINDS:
        entries = [entry_json(entry) for entry in store.of_kind(kind)]
        members.append(f'"{kind.key}": {_dump_entries(entries)}')
    for key, value in store.extra.items():
        members.append(f"{_ENCODE(key)}: {_dump_nested(value)}")
    try:
        return ("{\n  " + ",\n  ".join(members) + "\n}\n").encode()
    except UnicodeEncodeError:
        return dump_json(store_json(store))


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
