"""The knowledge store as JSON: parsed with every problem reported, written as it was. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from llm_kb.capture.entries import KINDS, SCHEMA, STABILITIES, Entry, Kind, KnowledgeStore, describe

_MAX_PROBLEMS = 20


class StoreFormatError(ValueError):
    """Bytes that are not a knowledge store, each problem with the path to it."""

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
    entries = tuple(entry for kind in KINDS for entry in _parse_kind(kind, raw, problems))
    if problems:
        raise StoreFormatError(problems)
    known = {"schema", *(kind.key for kind in KINDS)}
    extra = {key: value for key, value in raw.items() if key not in known}
    return KnowledgeStore(entries=entries, extra=extra)


def _parse_kind(kind: Kind, raw: Mapping[str, object], problems: list[str]) -> Iterator[Entry]:
    listed = raw.get(kind.key, [])
    if not isinstance(listed, list):
        problems.append(f"{kind.key}: expected a list, found {describe(listed)}")
        return
    for index, fields in enumerate(listed):
        if not isinstance(fields, dict):
            problems.append(f"{kind.key}[{index}]: expected an object, found {describe(fields)}")
            continue
        problems.extend(f"{kind.key}[{index}].{p}" for p in _find_problems(kind, fields))
        yield Entry(kind, fields)


def _find_problems(kind: Kind, fields: Mapping[str, object]) -> Iterator[str]:
    for name in kind.order:
        value = fields.get(name)
        if name == "stability":
            if value not in STABILITIES:
                allowed = ", ".join(STABILITIES)
                yield f"stability: expected one of {allowed}, found {value!r}"
        elif not isinstance(value, str) and (value is not None or name != kind.provenance):
            yield f"{name}: expected text, found " + (
                describe(value) if name in fields else "nothing"
            )


def dump_store(store: KnowledgeStore) -> bytes:
    """Return a store as JSON, its known fields first and in order."""
    lists = {
        kind.key: [_order_fields(kind, entry.fields) for entry in store.of_kind(kind)]
        for kind in KINDS
    }
    return dump_json({"schema": SCHEMA, **lists, **store.extra})


def _order_fields(kind: Kind, fields: Mapping[str, object]) -> Mapping[str, object]:
    known = {name: fields[name] for name in kind.order if fields.get(name) is not None}
    return known | {key: value for key, value in fields.items() if key not in kind.order}


def dump_json(value: object) -> bytes:
    """Return pretty JSON, ending in a newline, as git-chronicle writes it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair, which only an escape can carry.
        return json.dumps(value, indent=2).encode() + b"\n"
