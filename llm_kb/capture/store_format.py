"""The knowledge store as JSON: parsed with every problem reported, written as it was. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter, methodcaller
from typing import cast

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


def store_json(store: KnowledgeStore) -> dict[str, object]:
    """Return the store as the JSON object it is written as."""
    lists = {kind.key: [entry_json(e) for e in store.of_kind(kind)] for kind in KINDS}
    return {"schema": SCHEMA, **lists, **store.extra}


def entry_json(entry: Entry) -> Mapping[str, object]:
    """Return the JSON object of an entry, its known fields first and in order."""
    kind, fields = entry
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
