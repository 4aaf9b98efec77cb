"""Annotations of commits: `LiveInput` in, `chronicle/v3` and `LiveResult` out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path

from llm_kb.capture.emission import (
    MAX_FIELD_CHARS,
    add_entry,
    clean,
    parse_emission,
    with_provenance,
)
from llm_kb.capture.entries import KINDS, STABILITIES, Entry, Kind, KnowledgeStore, describe
from llm_kb.capture.entries import SCHEMA as STORE_SCHEMA
from llm_kb.capture.errors import InvalidAnnotationError, InvalidEntryError
from llm_kb.capture.git.notes import ANNOTATIONS_REF, commit_note, read_note
from llm_kb.capture.git.repository import read_config
from llm_kb.capture.store import Change, Snapshot, change_store
from llm_kb.capture.store_format import dump_json
from llm_kb.git import ObjectReader, run_git

SCHEMA = "chronicle/v3"
CATEGORIES = ("dead_end", "gotcha", "insight", "unfinished_thread")

_SHORT_SUMMARY = 20
_MANY_FILES = 3
MAX_LINE = 2**32 - 1  # what git-chronicle can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Wisdom:
    """One lesson of a commit, of one file and its lines where it names them."""

    category: str
    content: str
    file: str | None = None
    lines: tuple[int, int] | None = None

    def to_json(self) -> dict[str, object]:
        """Return the lesson as it is written; what it does not name is left out."""
        raw: dict[str, object] = {"category": self.category, "content": self.content}
        if self.file is not None:
            raw["file"] = self.file
        if self.lines is not None:
            raw["lines"] = {"start": self.lines[0], "end": self.lines[1]}
        return raw


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveInput:
    """What an agent hands over about a commit it has just made."""

    commit: str
    summary: str
    wisdom: tuple[Wisdom, ...] = ()
    knowledge: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveResult:
    """What became of a LiveInput."""

    commit: str
    wisdom_written: int
    knowledge_written: int
    knowledge_duplicates: int
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the result as it is printed; there is none without success."""
        return {
            "success": True,
            "commit": self.commit,
            "wisdom_written": self.wisdom_written,
            "knowledge_written": self.knowledge_written,
            "knowledge_duplicates": self.knowledge_duplicates,
            "warnings": list(self.warnings),
        }


def parse_live_input(data: str | bytes) -> LiveInput:
    """Read a LiveInput; raise InvalidAnnotationError with the path of every problem."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidAnnotationError([f"not JSON: {error}"]) from error
    if not isinstance(raw, dict):
        raise InvalidAnnotationError([f"expected an object, found {describe(raw)}"])
    problems: list[str] = []
    reader = _Fields(raw, "", problems)
    live = LiveInput(
        commit=reader.text("commit"),
        summary=reader.text("summary"),
        wisdom=tuple(_parse_wisdom(item) for item in reader.objects("wisdom")),
        knowledge=tuple(_parse_knowledge(reader)),
    )
    reader.reject_others("commit", "summary", "wisdom", "knowledge")
    if problems:
        raise InvalidAnnotationError(problems)
    return live


def _parse_wisdom(reader: _Fields) -> Wisdom:
    category = reader.text("category")
    if category and category not in CATEGORIES:
        reader.report("category", f"unknown category {category!r}; use one of {_OF}")
    wisdom = Wisdom(
        category=category,
        content=reader.text("content"),
        file=reader.text("file") if reader.has("file") else None,
        lines=_parse_lines(reader) if reader.has("lines") else None,
    )
    if reader.has("lines") and not reader.has("file"):
        reader.report("lines", "lines of which file? `file` is missing")
    reader.reject_others("category", "content", "file", "lines")
    return wisdom


_OF = ", ".join(CATEGORIES)


def _parse_lines(reader: _Fields) -> tuple[int, int]:
    lines = reader.object("lines")
    if lines is None:
        return 0, 0
    start, end = lines.number("start"), lines.number("end")
    if lines.has("start") and lines.has("end") and start > end:
        reader.report("lines", f"start {start} is after end {end}")
    lines.reject_others("start", "end")
    return start, end


def _parse_knowledge(reader: _Fields) -> Iterable[Entry]:
    for item in reader.objects("knowledge"):
        try:
            yield parse_emission(item.raw, tag="type", where=item.where)
        except InvalidEntryError as error:
            reader.problems.extend(error.problems)


class _Fields:
    """The fields of one object: reads them, and reports what is wrong with its path."""

    def __init__(self, raw: Mapping[str, object], where: str, problems: list[str]) -> None:
        self.raw = raw
        self.where = where
        self.problems = problems

    def has(self, name: str) -> bool:
        return self.raw.get(name) is not None

    def report(self, name: str, problem: str) -> None:
        self.problems.append(f"{self.where}{name}: {problem}")

    def text(self, name: str) -> str:
        value = self.raw.get(name)
        if not isinstance(value, str):
            self.report(name, self._expected("text", name))
            return ""
        if not value.strip():
            self.report(name, "is empty")
        return clean(value)

    def number(self, name: str) -> int:
        value = self.raw.get(name)
        if type(value) is not int or not 0 <= value <= MAX_LINE:
            self.report(name, self._expected("a line number", name))
            return 0
        return value

    def object(self, name: str) -> _Fields | None:
        value = self.raw.get(name)
        if isinstance(value, dict):
            return _Fields(value, f"{self.where}{name}.", self.problems)
        self.report(name, self._expected("an object", name))
        return None

    def objects(self, name: str) -> Iterable[_Fields]:
        if not self.has(name):
            return
        value = self.raw[name]
        if not isinstance(value, list):
            self.report(name, self._expected("a list", name))
            return
        for index, item in enumerate(value):
            place = f"{name}[{index}]"
            if isinstance(item, dict):
                yield _Fields(item, f"{self.where}{place}.", self.problems)
            else:
                self.report(place, f"expected an object, found {describe(item)}")

    def reject_others(self, *known: str) -> None:
        for name in self.raw:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
                self.report(name, f"unknown field; {hint}")

    def _expected(self, wanted: str, name: str) -> str:
        found = repr(self.raw[name]) if name in self.raw else "nothing"
        return f"expected {wanted}, found {found[:80]}"


def annotation_json(
    live: LiveInput, *, commit: str, timestamp: str, author: str | None
) -> dict[str, object]:
    """Return the annotation of a commit as it is written."""
    raw: dict[str, object] = {
        "schema": SCHEMA,
        "commit": commit,
        "timestamp": timestamp,
        "summary": live.summary,
    }
    if live.wisdom:
        raw["wisdom"] = [wisdom.to_json() for wisdom in live.wisdom]
    raw["provenance"] = {"source": "live"} | ({"author": author} if author else {})
    return raw


def find_warnings(
    live: LiveInput, *, commit: str, message: str, files: Sequence[str], overwrites: bool
) -> tuple[str, ...]:
    """Return what could be better about an annotation; none of it stops the writing."""
    warnings = []
    if overwrites:
        warnings.append(f"replaced the annotation that {commit[:8]} had")
    if len(live.summary) < _SHORT_SUMMARY:
        warnings.append("the summary is very short; say why, not only what")
    if live.summary == message.strip():
        warnings.append("the summary repeats the commit message; say what the message does not")
    if len(files) > _MANY_FILES and not live.wisdom:
        warnings.append(f"{len(files)} files changed and nothing was learned; is there no wisdom?")
    return tuple(warnings)


_LOG = ("log", "-1", "--no-show-signature")


def annotate(directory: Path, live: LiveInput) -> LiveResult:
    """Write an annotation on its commit and its entries to the store, all at once.

    Raises UnknownCommitError, or DamagedStoreError when the entries could not be
    added; then nothing is written.
    """
    author = read_config(directory, "chronicle.author", "user.name")
    done: list[LiveResult] = []

    def decide(snapshot: Snapshot) -> Change:
        store, written = _add_all(snapshot, live)
        with ObjectReader(directory) as reader:
            note = read_note(reader, ANNOTATIONS_REF, snapshot.commit)
        assert note is not None  # noqa: S101 - an object was named
        now = datetime.now(timezone.utc).isoformat()
        raw = annotation_json(live, commit=snapshot.commit, timestamp=now, author=author)
        message = f"Annotate {snapshot.commit[:12]}"
        new = commit_note(directory, note, dump_json(raw), message)
        done.append(_report(directory, live, snapshot.commit, written, note.data is not None))
        return Change(
            store=store if written else None,
            message=message,
            moves=((ANNOTATIONS_REF, new, note.commit),),
        )

    change_store(directory, decide, live.commit)
    return done[-1]


def _add_all(snapshot: Snapshot, live: LiveInput) -> tuple[KnowledgeStore, int]:
    store, written = snapshot.store, 0
    for entry in live.knowledge:
        addition = add_entry(store, with_provenance(entry, snapshot.commit))
        store = addition.store
        written += addition.is_new
    return store, written


def _report(
    directory: Path, live: LiveInput, commit: str, written: int, overwrites: bool
) -> LiveResult:
    message = run_git(*_LOG, "--format=%B", commit, cwd=directory).decode(errors="replace")
    changed = run_git(
        "diff-tree", "--root", "--no-commit-id", "-r", "-z", "--name-only", commit, cwd=directory
    )
    files = [path.decode(errors="replace") for path in changed.split(b"\0") if path]
    warnings = find_warnings(
        live, commit=commit, message=message, files=files, overwrites=overwrites
    )
    return LiveResult(
        commit=commit,
        wisdom_written=len(live.wisdom),
        knowledge_written=written,
        knowledge_duplicates=len(live.knowledge) - written,
        warnings=warnings,
    )


_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_DESCRIPTIONS = {
    "id": "Unique in the store, and not used again after removal",
    "scope": "Directory or file the rule holds for, or * for everything",
    "rule": "The rule",
    "stability": "How firm the rule is",
    "module": "Directory of the module",
    "owns": "What the module is responsible for",
    "boundary": "What the module must not do",
    "pattern": "What to avoid",
    "instead": "What to do instead",
    "decided_in": "Commit that decided it, or another reference",
    "learned_from": "Commit that taught it, or another reference",
}


def _text(description: str, **more: object) -> dict[str, object]:
    return {"type": "string", "description": description, **more}


def _field(name: str, **more: object) -> dict[str, object]:
    choice = {"enum": list(STABILITIES)} if name == "stability" else {}
    return _text(_DESCRIPTIONS[name], **choice, **more)


def _object(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required}


def _closed(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {**_object(properties, required), "additionalProperties": False}


def _stored(kind: Kind) -> dict[str, object]:
    required = ["id", *kind.settable]
    return _object({name: _field(name) for name in kind.order}, required)


def _handed_over(kind: Kind) -> dict[str, object]:
    fields = {name: _field(name, maxLength=MAX_FIELD_CHARS) for name in kind.required}
    if "stability" in kind.settable:
        fields["stability"] = _field("stability", default="provisional")
    return _closed({"type": {"const": kind.name}, **fields}, ["type", *kind.required])


_LINE = {"type": "integer", "minimum": 0, "maximum": MAX_LINE}

_WISDOM = _closed(
    {
        "category": _text("What kind of lesson it is", enum=list(CATEGORIES)),
        "content": _text("What was learned, not what the code does", minLength=1),
        "file": _text("File it is about; without one, the whole repository"),
        "lines": _closed({"start": _LINE, "end": _LINE}, ["start", "end"]),
    },
    ["category", "content"],
)

SCHEMAS: dict[str, dict[str, object]] = {
    "live-input": {
        "$schema": _DIALECT,
        "title": "LiveInput",
        **_closed(
            {
                "commit": _text("The commit, in any notation of git's", minLength=1),
                "summary": _text("What the commit does and why so", minLength=1),
                "wisdom": {"type": "array", "items": _WISDOM, "default": []},
                "knowledge": {
                    "type": "array",
                    "items": {"oneOf": [_handed_over(kind) for kind in KINDS]},
                    "default": [],
                },
            },
            ["commit", "summary"],
        ),
    },
    "knowledge": {
        "$schema": _DIALECT,
        "title": "KnowledgeStore",
        **_object(
            {
                "schema": {"const": STORE_SCHEMA},
                **{kind.key: {"type": "array", "items": _stored(kind)} for kind in KINDS},
            },
            ["schema"],
        ),
    },
    "annotation": {
        "$schema": _DIALECT,
        "title": "Annotation",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "commit": _text("Full id of the commit"),
                "timestamp": _text("When it was written", format="date-time"),
                "summary": _text("What the commit does and why so"),
                "wisdom": {"type": "array", "items": _WISDOM},
                "provenance": _object(
                    {
                        "source": _text("How it came about; this program writes live"),
                        "author": _text("Who wrote it"),
                    },
                    ["source"],
                ),
            },
            ["schema", "commit", "timestamp", "summary", "provenance"],
        ),
    },
}
"""By the names that `llm kb knowledge schema` takes."""
