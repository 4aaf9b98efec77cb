"""Parses and formats the knowledge store as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from llm_kb.capture.entries import KINDS, SCHEMA, STABILITIES, Entry, Kind, KnowledgeStore
from llm_kb.files.fields import Fields
from llm_kb.files.values import BadValueError, describe

MakeError: TypeAlias = Callable[[Sequence[str]], Exception]
"""Returns an error about all problems, each given with its path."""


def parse_store(data: bytes, make_error: MakeError) -> KnowledgeStore:
    """Return the store of a JSON text; raise the error of `make_error` for its problems."""
    fields = read_fields(data, make_error)
    if (found := fields.table.get("schema")) != SCHEMA:
        # The fields of another schema are unknown.
        fields.refuse("schema", BadValueError(describe(found), repr(SCHEMA)))
        fields.raise_problems(make_error)
    entries = tuple(entry for kind in KINDS for entry in _parse_kind(kind, fields))
    fields.raise_problems(make_error)
    known = {"schema", *(kind.key for kind in KINDS)}
    extra = {key: value for key, value in fields.table.items() if key not in known}
    return KnowledgeStore(entries=entries, extra=extra)


def read_fields(data: str | bytes, make_error: MakeError) -> Fields:
    """Return the fields of a JSON object; raise the error of `make_error` if it is not JSON."""
    try:
        return Fields(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise make_error([f"not JSON: {error}"]) from error


def _parse_kind(kind: Kind, fields: Fields) -> list[Entry]:
    listed = fields.table[kind.key] if fields.has(kind.key) else []
    if isinstance(listed, list) and all(_is_entry(kind, item) for item in listed):
        return [Entry(kind, item) for item in listed]
    # Field by field is slow, and every command reads the whole store.
    for item in fields.list_of_fields(kind.key):
        for name in ("id", *kind.required):
            item.text(name)
        if "stability" in kind.order:
            item.choice("stability", STABILITIES)
        item.text(kind.provenance, "")
    return []


def _is_entry(kind: Kind, item: object) -> bool:
    """Tell whether a JSON value is a valid entry."""
    if not isinstance(item, dict):
        return False
    provenance = item.get(kind.provenance)
    return (
        all(isinstance(item.get(name), str) for name in ("id", *kind.required))
        and (provenance is None or isinstance(provenance, str))
        and ("stability" not in kind.order or item.get("stability") in STABILITIES)
    )


def dump_store(store: KnowledgeStore) -> bytes:
    """Return a store as JSON, with the known fields first and in order."""
    lists = {
        kind.key: [_order_fields(kind, entry.fields) for entry in store.of_kind(kind)]
        for kind in KINDS
    }
    return dump_json({"schema": SCHEMA, **lists, **store.extra})


def _order_fields(kind: Kind, fields: Mapping[str, object]) -> Mapping[str, object]:
    known = {name: fields[name] for name in kind.order if fields.get(name) is not None}
    return known | {key: value for key, value in fields.items() if key not in kind.order}


def dump_json(value: object) -> bytes:
    """Return indented JSON that ends in a newline, as git-chronicle writes it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair has to be escaped.
        return json.dumps(value, indent=2).encode() + b"\n"
