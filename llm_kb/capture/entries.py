"""Entries of the knowledge store, `chronicle/knowledge-v1`: ids, JSON, places, likeness. Pure.

An entry is its JSON object, checked: keys this version does not know are kept
where they are, so that nothing is lost when the store is written back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from llm_kb.files.fields import BadValueError, Fields, describe

SCHEMA = "chronicle/knowledge-v1"
STABILITIES = ("permanent", "provisional", "experimental")

Anchor: TypeAlias = "tuple[str | None, str | None]"
"""The place an entry applies to, and the commit it comes from."""

REVIEWED_IN = "reviewed_in"
"""A key of our own: the commit at which a person last confirmed an entry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One of the three kinds of entry, and the names of its fields."""

    name: str
    """Its name in `emit_knowledge`."""
    key: str
    """The key of its list in the store."""
    prefix: str
    """The prefix of its ids."""
    title: str
    order: tuple[str, ...]
    """Its fields in the order of the JSON."""
    place: str | None
    """The name of the field with its scope or module; None if it has no such field."""
    rule: str
    """The field that two duplicates of one place have in common."""
    provenance: str

    @cached_property
    def settable(self) -> tuple[str, ...]:
        """The fields that its author fills; the program fills the others."""
        return tuple(name for name in self.order if name not in {"id", self.provenance})

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The fields without which it is not an entry."""
        return tuple(name for name in self.settable if name != "stability")


CONVENTION = Kind(
    name="convention",
    key="conventions",
    prefix="conv",
    title="Conventions",
    order=("id", "scope", "rule", "decided_in", "stability"),
    place="scope",
    rule="rule",
    provenance="decided_in",
)
BOUNDARY = Kind(
    name="boundary",
    key="boundaries",
    prefix="bound",
    title="Module boundaries",
    order=("id", "module", "owns", "boundary", "decided_in"),
    place="module",
    rule="boundary",
    provenance="decided_in",
)
ANTI_PATTERN = Kind(
    name="anti_pattern",
    key="anti_patterns",
    prefix="ap",
    title="Anti-patterns",
    order=("id", "pattern", "instead", "learned_from"),
    place=None,
    rule="pattern",
    provenance="learned_from",
)
KINDS = (CONVENTION, BOUNDARY, ANTI_PATTERN)


class Entry(NamedTuple):
    """One convention, boundary or anti-pattern."""

    kind: Kind
    fields: Mapping[str, Any]
    """Its JSON object. Each field in `kind.order` is text or absent."""

    @property
    def id(self) -> str:
        """Its id; unique unless the store was edited by hand."""
        return self.text("id")

    def text(self, name: str) -> str:
        """Return a field as text, which is empty if the field is absent."""
        text: str | None = self.fields.get(name)
        return text or ""

    @property
    def place(self) -> str | None:
        """The scope or module it applies to; None for an anti-pattern, which applies everywhere."""
        return self.text(self.kind.place) if self.kind.place else None

    @property
    def rule(self) -> str:
        """The text of its rule, boundary or pattern."""
        return self.text(self.kind.rule)

    @property
    def provenance(self) -> str | None:
        """The commit it comes from, or another reference, such as an issue."""
        return self.text(self.kind.provenance) or None

    @property
    def is_settled(self) -> bool:
        """Whether a person has confirmed it."""
        is_permanent = self.kind is CONVENTION and self.text("stability") == "permanent"
        return is_permanent or bool(self.fields.get(REVIEWED_IN))

    @property
    def anchor(self) -> Anchor:
        """Its place and its provenance."""
        return self.place, self.provenance

    def with_fields(self, **fields: object) -> Entry:
        """Return the entry with some fields changed."""
        return Entry(self.kind, {**self.fields, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeStore:
    """Every entry of a repository, kind by kind in the order of `KINDS`."""

    entries: tuple[Entry, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    """Top-level keys besides the schema and the three lists."""

    def of_kind(self, kind: Kind) -> tuple[Entry, ...]:
        """Return the entries of one kind, in their order."""
        return tuple(entry for entry in self.entries if entry.kind is kind)

    def next_id(self, kind: Kind) -> str:
        """Return an id above those of all entries of a kind."""
        # Python refuses to convert very long numbers.
        plain = re.compile(rf"{kind.prefix}-([0-9]{{1,15}})")
        numbers = (int(found[1]) for e in self.entries if (found := plain.fullmatch(e.id)))
        return f"{kind.prefix}-{max(numbers, default=0) + 1}"


def arrange(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries kind by kind, in the order of `KINDS` and of their own within each."""
    ordered = tuple(entries)
    return tuple(entry for kind in KINDS for entry in ordered if entry.kind is kind)


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


NEAR_ENOUGH = 0.5
"""The least share of common words of two similar rules."""

EVERYWHERE = "*"
"""The place of an entry that applies to the whole repository."""

_SENTENCE_ENDS = ".,;:!?…。、，；：！？ "  # noqa: RUF001 - the full-width ones end sentences too
# Brackets and quotes stay: `parse()` and `parse(*)` are different rules.


def normalize(text: str) -> str:
    """Return text in lower case, white space collapsed, without trailing punctuation."""
    return " ".join(text.lower().split()).rstrip(_SENTENCE_ENDS)


def dedup_key(entry: Entry) -> tuple[str, str | None, str]:
    """Return the kind, place and rule of an entry, normalized: equal for duplicates."""
    place = entry.place
    return entry.kind.name, None if place is None else normalize_place(place), normalize(entry.rule)


def normalize_place(place: str) -> str:
    """Return a scope in the form for comparison: `src` for `./src/`, `src/**` and `src`."""
    plain = plain_place(place.strip())
    while plain.startswith("./"):
        plain = plain[2:].lstrip("/")
    return plain.rstrip("/") or plain


def plain_place(place: str) -> str:
    """Return a place in the form for storage: `src/` for `src/**`, `*` for the root itself."""
    plain = without_stars(place)
    # A model writes `.` or `./` for the whole repository.
    is_root = plain.startswith(".") and set(plain.split("/")) <= {"", "."}
    return EVERYWHERE if is_root else plain


def without_stars(place: str) -> str:
    """Return a place without stars at its end: `src/` for `src/**`, `*` for stars alone."""
    parts = place.split("/")
    count = len(parts)
    while parts and parts[-1] in {"*", "**"}:
        parts.pop()
    if not parts:
        return EVERYWHERE
    return place if len(parts) == count else "/".join(parts) + "/"


def find_place_problem(place: str, *, exists: bool) -> str | None:
    """Return the reason why a text is not a place below the root; None if it is one.

    A place need not exist. `exists` tells whether it does, since an existing file may be
    named like a pattern or like two paths.
    """
    parts = place.split("/")
    if parts[0] in {"", "~"} or ".." in parts or place[1:3] in {":/", ":\\"}:
        return "is outside the repository; give a path below its root, or '*' for everything"
    if place == EVERYWHERE or exists:
        return None
    if set(place) & set("\\*?{},;| "):
        return "is not a path; give one directory such as 'src/' or file, or '*' for everything"
    return None


def find_duplicate(candidate: Entry, entries: Iterable[Entry]) -> Entry | None:
    """Return the first entry that is a duplicate of the candidate."""
    key = dedup_key(candidate)
    same = (e for e in entries if e.kind is candidate.kind and dedup_key(e) == key)
    return next(same, None)


def find_nearest(candidate: Entry, entries: Iterable[Entry], limit: int = 3) -> tuple[Entry, ...]:
    """Return the entries of the same kind whose rules share the most words, nearest first."""
    words = set(normalize(candidate.rule).split())
    scored = []
    for entry in entries:
        if entry.kind is candidate.kind:
            others = set(normalize(entry.rule).split())
            share = len(words & others) / (len(words | others) or 1)
            if share >= NEAR_ENOUGH:
                scored.append((share, entry))
    scored.sort(key=lambda pair: -pair[0])  # stable: of equals, the older entry first
    return tuple(entry for _, entry in scored[:limit])


def scope_matches(scope: str, file: str) -> bool:
    """Tell whether a scope covers a file; both are paths below the repository's root.

    `*` and the root cover everything; `dir/`, `dir/**` and `dir` cover the files below; a path
    covers itself.
    """
    scope = plain_place(scope)
    if scope == EVERYWHERE:
        return True
    scope, file = scope.removeprefix("./"), file.removeprefix("./")
    if scope.endswith("/"):
        return file.startswith(scope)
    return file == scope or file.startswith(scope + "/")


def filter_by_file(store: KnowledgeStore, file: str) -> KnowledgeStore:
    """Return the entries that apply to a file, with all anti-patterns."""
    entries = (e for e in store.entries if e.place is None or scope_matches(e.place, file))
    return replace(store, entries=tuple(entries))
