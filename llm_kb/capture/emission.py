"""The arguments and answers of `emit_knowledge`, and changes of entries in a store. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_kb.capture import entries
from llm_kb.capture.entries import KINDS, STABILITIES, Entry, Kind, KnowledgeStore
from llm_kb.capture.rendering import render_short
from llm_kb.errors import KbError, find_similar, limit_problems
from llm_kb.files.fields import describe
from llm_kb.knowledge_base.tool_text import string
from llm_kb.texts.safe import JOINERS, one_line

MAX_FIELD_CHARS = 2000
"""The most characters of one field: an entry is a sentence or two."""

EMIT_GUIDELINES = """\
## Knowledge capture (optional)

If you observe a convention, module boundary, or anti-pattern that applies
repo-wide or module-wide — not just to this one commit — use `emit_knowledge`
to record it.

Guidelines:
- Only emit when the pattern clearly applies beyond this single commit
- Prefer `provisional` stability for inferred conventions
- Never emit for one-off implementation choices
- Typical commits produce zero knowledge entries
- Good examples: "all errors use snafu", "git module never imports provider",
  "don't use serde_json::from_str for annotations — use parse_annotation()"
- Bad examples: "this function takes a &str" (too specific),
  "code should be clean" (too vague)
"""
"""What the system prompt says of the tool wherever a request offers it."""

EMIT_NAME = "emit_knowledge"
EMIT_DESCRIPTION = (
    "Record a repo-wide convention, module boundary, or anti-pattern discovered in this "
    "commit. Only use when the pattern clearly applies beyond this single commit. Most "
    "commits produce zero knowledge entries."
)


EMIT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "entry_type": string("Type of knowledge entry", [kind.name for kind in KINDS]),
        "scope": string("For convention: directory/file scope (e.g. 'src/', 'src/schema/', '*')"),
        "rule": string("For convention: the rule or convention text"),
        "stability": string(
            "For convention: how stable is this convention? Default: provisional",
            STABILITIES,
        ),
        "module": string("For boundary: the module path (e.g. 'src/git/')"),
        "owns": string("For boundary: what this module is responsible for"),
        "boundary": string("For boundary: the boundary rule (what it must not do)"),
        "pattern": string("For anti_pattern: the pattern to avoid"),
        "instead": string("For anti_pattern: what to do instead"),
    },
    "required": ["entry_type"],
}


MOST_SHOWN = 300
"""The most characters of one problem that an error shows."""


class InvalidEntryError(KbError):
    """Fields that do not make an entry, with every problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each[:MOST_SHOWN] for each in limit_problems(self.problems)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """An entry that was added or already there, and the store that holds it."""

    store: KnowledgeStore
    entry: Entry
    is_new: bool
    near: tuple[Entry, ...] = ()


def parse_emission(arguments: Mapping[str, object], *, tag: str = "entry_type") -> Entry:
    """Return the entry that the arguments describe, without id and provenance.

    `tag` is the argument that names the kind. Raises InvalidEntryError with every problem.
    """
    fields = dict(arguments)
    name = fields.pop(tag, None)
    for kind in KINDS:
        if kind.name == name:
            return parse_fields(kind, fields)
    names = ", ".join(kind.name for kind in KINDS)
    found = f"unknown type {name!r}" if name else "required"
    raise InvalidEntryError([f"{tag}: {found}; use one of {names}"])


def parse_fields(kind: Kind, fields: Mapping[str, object]) -> Entry:
    """Return the entry of a kind with some fields. Raises InvalidEntryError likewise."""
    # Models fill arguments that they do not need with null or empty text.
    cleaned = {n: clean(value) if isinstance(value, str) else value for n, value in fields.items()}
    given = {name: value for name, value in cleaned.items() if value is not None and value != ""}
    problems = [f"{name}: required for {kind.name}" for name in kind.required if name not in given]
    for name, value in given.items():
        if problem := _find_problem(kind, name, value):
            problems.append(f"{name}: {problem}")
    if problems:
        raise InvalidEntryError(problems)
    if kind.place:
        given[kind.place] = entries.plain_place(str(given[kind.place]))
    if kind is entries.CONVENTION:
        given.setdefault("stability", "provisional")
    return Entry(kind, given)


def _find_problem(kind: Kind, name: str, value: object) -> str | None:
    if name not in kind.settable:
        return f"is not a field of {kind.name}, which takes {', '.join(kind.settable)}"
    if not isinstance(value, str):
        return f"expected text, found {describe(value)}"
    if name == "stability" and value not in STABILITIES:
        return f"unknown stability {value!r}; use one of {', '.join(STABILITIES)}"
    if name == kind.place and entries.is_outside(value):
        return f"{value!r} is outside the repository; give a path below its root, or '*' for all"
    if len(value) > MAX_FIELD_CHARS:
        return f"{len(value):,} characters; keep it to {MAX_FIELD_CHARS:,}"
    return None


def clean(text: str) -> str:
    """Return text on one line without invisible characters; empty if none is visible."""
    line = one_line(text)
    return line if line.strip(JOINERS + " ") else ""


def add_entry(store: KnowledgeStore, entry: Entry, commit: str) -> Addition:
    """Return the store with an entry of a commit under a new id; a duplicate changes nothing."""
    if duplicate := store.find_duplicate(entry):
        return Addition(store=store, entry=duplicate, is_new=False)
    near = store.find_nearest(entry)
    id_ = store.next_id(entry.kind)
    entry = entry.with_fields(**{"id": id_, entry.kind.provenance: commit})
    store = store.with_entries((*store.entries, entry))
    return Addition(store=store, entry=entry, is_new=True, near=near)


def edit_entry(
    store: KnowledgeStore, id_: str, changes: Mapping[str, object]
) -> tuple[KnowledgeStore, Entry]:
    """Return the store with some fields of an entry changed, and that entry.

    The entry keeps its id, its provenance and its unknown keys.
    Raises InvalidEntryError, or KbError if there is no such entry or it becomes a duplicate.
    """
    found = _find_entry(store, id_)
    kept = {name: found.text(name) for name in found.kind.settable}
    entry = found.with_fields(**parse_fields(found.kind, {**kept, **changes}).fields)
    if duplicate := store.find_duplicate(entry):
        raise KbError(
            f"{duplicate.id!r} says the same already; "
            f"`llm kb knowledge remove {id_}` drops this one"
        )
    return _put(store, found, entry), entry


def keep_entry(store: KnowledgeStore, id_: str, commit: str) -> tuple[KnowledgeStore, Entry]:
    """Return the store with an entry marked as reviewed at a commit, and that entry.

    A convention becomes permanent. Raises KbError for an unknown id.
    """
    found = _find_entry(store, id_)
    stable = {"stability": "permanent"} if found.kind is entries.CONVENTION else {}
    entry = found.with_fields(**stable, reviewed_in=commit)
    return _put(store, found, entry), entry


def remove_entry(store: KnowledgeStore, id_: str) -> tuple[KnowledgeStore, tuple[Entry, ...]]:
    """Return the store without an id, and the entries that had it.

    Raises KbError if no entry has the id.
    """
    _find_entry(store, id_)
    removed = tuple(entry for entry in store.entries if entry.id == id_)
    return store.with_entries(e for e in store.entries if e.id != id_), removed


def _find_entry(store: KnowledgeStore, id_: str) -> Entry:
    found = next((entry for entry in store.entries if entry.id == id_), None)
    if found is None:
        near = find_similar(id_, [entry.id for entry in store.entries], most=3)
        hint = f"; did you mean: {', '.join(near)}" if near else ""
        raise KbError(f"no entry is called {id_!r}{hint}; `llm kb knowledge list` shows them all")
    return found


def _put(store: KnowledgeStore, old: Entry, new: Entry) -> KnowledgeStore:
    return store.with_entries(new if entry is old else entry for entry in store.entries)


def render_reply(addition: Addition) -> str:
    """Return the answer of the tool: the entry that was recorded or that exists already."""
    if not addition.is_new:
        return f"already exists: {render_short(addition.entry)}"
    lines = [f"recorded {addition.entry.kind.name} {render_short(addition.entry)}"]
    if addition.near:
        lines.append("similar entries, kept apart:")
        lines.extend(f"- {render_short(entry)}" for entry in addition.near)
    return "\n".join(lines)
