"""Entries of the knowledge store, `chronicle/knowledge-v1`: ids, JSON, places, likeness. Pure.

An entry is its JSON object, checked: keys this version does not know are kept
where they are, so that nothing is lost when the store is written back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from llm_kb.errors import limit_problems
from llm_kb.files.fields import Fields, describe

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
    introduction: str
    """The first sentence of its subject."""
    text: str
    """An entry in Markdown, by the names of its fields; `where` is its place."""
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
    introduction="Rules this repository keeps, each with the files it applies to.",
    text="%(rule)s — %(where)s, %(stability)s",
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
    introduction="What each module is responsible for, and what it must not do.",
    text="%(where)s owns %(owns)s. Boundary: %(boundary)s",
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
    introduction="What was tried and is to be avoided here, and what to do instead.",
    text="Avoid: %(pattern)s. Instead: %(instead)s",
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

    @property
    def key(self) -> tuple[str, str, str]:
        """Its kind, place and rule, normalized: equal for duplicates."""
        return self.kind.name, normalize_place(self.place or EVERYWHERE), normalize(self.rule)

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

    def with_entries(self, entries: Iterable[Entry]) -> KnowledgeStore:
        """Return the store with other entries, which are put in the order of their kinds."""
        ordered = sorted(entries, key=lambda entry: KINDS.index(entry.kind))
        return replace(self, entries=tuple(ordered))

    def narrow(self, file: str) -> KnowledgeStore:
        """Return the entries that apply to a file, with all anti-patterns."""
        return self.with_entries(e for e in self.entries if covers(e.place or EVERYWHERE, file))

    def find_duplicate(self, candidate: Entry) -> Entry | None:
        """Return the first other entry that has the candidate's key."""
        key = candidate.key
        return next((e for e in self.entries if e.key == key and e.id != candidate.id), None)

    def find_nearest(self, candidate: Entry, limit: int = 3) -> tuple[Entry, ...]:
        """Return the other entries whose rules share the most words with the candidate's."""
        words = set(normalize(candidate.rule).split())
        scored = []
        for entry in self.of_kind(candidate.kind):
            others = set(normalize(entry.rule).split())
            share = len(words & others) / (len(words | others) or 1)
            if share >= NEAR_ENOUGH and entry.id != candidate.id:
                scored.append((share, entry))
        scored.sort(key=lambda pair: -pair[0])  # stable: of equals, the older entry first
        return tuple(entry for _, entry in scored[:limit])

    def next_id(self, kind: Kind) -> str:
        """Return an id above those that entries of a kind have."""
        # Python refuses to convert very long numbers.
        plain = re.compile(rf"{kind.prefix}-([0-9]{{1,15}})")
        numbers = (int(found[1]) for e in self.entries if (found := plain.fullmatch(e.id)))
        return f"{kind.prefix}-{max(numbers, default=0) + 1}"


MakeError: TypeAlias = Callable[[Sequence[str]], Exception]
"""Returns an error about all problems, each given with its path."""


def parse_store(data: bytes, make_error: MakeError) -> KnowledgeStore:
    """Return the store of a JSON text; raise the error of `make_error` for its problems."""
    table: Mapping[str, Any] = read_fields(data, make_error).table
    if (found := table.get("schema")) != SCHEMA:
        raise make_error([f"schema: found {describe(found)}; allowed: {SCHEMA!r}"])
    # Not by getters, which are slow: every command reads the whole store.
    problems = [problem for kind in KINDS for problem in _find_problems(kind, table.get(kind.key))]
    if problems:
        raise make_error(limit_problems(problems))
    entries = (Entry(kind, item) for kind in KINDS for item in table.get(kind.key) or ())
    known = {"schema", *(kind.key for kind in KINDS)}
    extra = {key: value for key, value in table.items() if key not in known}
    return KnowledgeStore(entries=tuple(entries), extra=extra)


def read_fields(data: str | bytes, make_error: MakeError) -> Fields:
    """Return the fields of a JSON object; raise the error of `make_error` if it is not JSON."""
    try:
        return Fields(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise make_error([f"not JSON: {error}"]) from error


def _find_problems(kind: Kind, listed: Any) -> Iterator[str]:
    """Yield what is wrong with the list of one kind; it may be absent."""
    if not isinstance(listed, list | None):
        yield f"{kind.key}: found {describe(listed)}; allowed: a list of tables"
        return
    for number, item in enumerate(listed or ()):
        where = f"{kind.key}[{number}]"
        if not isinstance(item, dict):
            yield f"{where}: found {describe(item)}; allowed: a table"
            continue
        wrong = [n for n in ("id", *kind.required) if not isinstance(item.get(n), str)]
        if not isinstance(item.get(kind.provenance), str | None):
            wrong.append(kind.provenance)
        yield from (f"{where}.{n}: found {describe(item.get(n))}; allowed: a string" for n in wrong)
        if "stability" in kind.order and item.get("stability") not in STABILITIES:
            found = describe(item.get("stability"))
            yield f"{where}.stability: found {found}; allowed: {', '.join(STABILITIES)}"


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

_SENTENCE_ENDS = ".,;:!?…。、，；：！？ "  # noqa: RUF001 - the full-width ones end sentences too
# Brackets and quotes stay: `parse()` and `parse(*)` are different rules.


def normalize(text: str) -> str:
    """Return text in lower case, white space collapsed, without trailing punctuation."""
    return " ".join(text.lower().split()).rstrip(_SENTENCE_ENDS)


EVERYWHERE = "*"
"""The place of an entry that applies to the whole repository."""


def normalize_place(place: str) -> str:
    """Return a place in the form for comparison: `src` for `./src/`, `src/**` and `src`.

    The root itself, which a model may write as `.`, and stars alone become `*`.
    """
    parts = [part for part in place.strip().split("/") if part not in {"", "."}]
    while parts and parts[-1] in {"*", "**"}:
        parts.pop()
    return "/".join(parts) or EVERYWHERE


def plain_place(place: str) -> str:
    """Return a place in the form for storage: a directory given as such ends in a slash."""
    plain = normalize_place(place)
    is_directory = plain != EVERYWHERE and place.rstrip("*").endswith("/")
    return f"{plain}/" if is_directory else plain


def covers(place: str, file: str) -> bool:
    """Tell whether a place is a path below the root itself, a directory above it, or everything."""
    plain = normalize_place(place)
    return plain == EVERYWHERE or f"{normalize_place(file)}/".startswith(f"{plain}/")


def is_outside(place: str) -> bool:
    """Tell whether a place cannot be below the root of the repository."""
    parts = place.split("/")
    return parts[0] in {"", "~"} or ".." in parts or place[1:3] in {":/", ":\\"}


def find_pattern_problem(place: str) -> str | None:
    """Return the reason why a place that does not exist is not one path; None if it is one."""
    if place != EVERYWHERE and set(place) & set("\\*?{},;| "):
        return "is not a path; give one directory such as 'src/' or file, or '*' for everything"
    return None
