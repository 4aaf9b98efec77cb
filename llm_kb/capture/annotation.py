"""Annotations of commits: `LiveInput` in, a `chronicle/v3` note and a `LiveResult` out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from llm_kb.capture.emission import add_entry, parse_emission, with_provenance
from llm_kb.capture.entries import Entry, dump_json, read_fields
from llm_kb.capture.errors import InvalidAnnotationError, InvalidEntryError
from llm_kb.capture.likeness import find_place_problem
from llm_kb.capture.notes import ANNOTATIONS_REF, commit_notes, read_config, read_note
from llm_kb.capture.store import Change, Snapshot, change_store, has_place
from llm_kb.files.fields import Fields
from llm_kb.git.read import ObjectReader
from llm_kb.git.run import run_git

SCHEMA = "chronicle/v3"
CATEGORIES = ("dead_end", "gotcha", "insight", "unfinished_thread")

_SHORT_SUMMARY = 20
_MANY_FILES = 3
MAX_LINE = 2**32 - 1  # git-chronicle's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wisdom:
    """One lesson of a commit, about a file and its lines or about the whole repository."""

    category: str
    content: str
    file: str | None = None
    lines: tuple[int, int] | None = None

    def to_json(self) -> dict[str, object]:
        """Return the lesson as JSON, without the fields it does not have."""
        raw: dict[str, object] = {"category": self.category, "content": self.content}
        if self.file is not None:
            raw["file"] = self.file
        if self.lines is not None:
            raw["lines"] = {"start": self.lines[0], "end": self.lines[1]}
        return raw


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveInput:
    """An agent's report about a commit it has just made."""

    commit: str
    summary: str
    wisdom: tuple[Wisdom, ...] = ()
    knowledge: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveResult:
    """The answer to a LiveInput: the numbers of entries written, and warnings."""

    success: bool = True
    """Always true, since a failure raises an error."""
    commit: str
    wisdom_written: int
    knowledge_written: int
    knowledge_duplicates: int
    warnings: tuple[str, ...]


def parse_live_input(data: str | bytes) -> LiveInput:
    """Return the LiveInput of a JSON text.

    Raises InvalidAnnotationError with the path of every problem.
    """
    fields = read_fields(data, InvalidAnnotationError)
    live = LiveInput(
        commit=fields.text("commit").strip(),
        summary=fields.text("summary").strip(),
        wisdom=tuple(map(_parse_strictly, fields.list_of_fields("wisdom"))),
        knowledge=tuple(_parse_knowledge(fields.list_of_fields("knowledge"))),
    )
    fields.reject_unknown()
    fields.raise_problems(InvalidAnnotationError)
    return live


def _parse_strictly(fields: Fields) -> Wisdom:
    wisdom = parse_wisdom(fields)
    if wisdom.lines and wisdom.file is None:
        fields.report("lines", "lines need a file; `file` is missing")
    fields.reject_unknown()
    return wisdom


def parse_wisdom(fields: Fields) -> Wisdom:
    """Return the lesson in some fields, where problems are reported."""
    return Wisdom(
        category=fields.choice("category", CATEGORIES),
        content=fields.text("content").strip(),
        file=fields.text("file") if fields.has("file") else None,
        lines=_parse_lines(fields.fields("lines")) if fields.has("lines") else None,
    )


def _parse_lines(fields: Fields) -> tuple[int, int]:
    start, end = fields.count("start", most=MAX_LINE), fields.count("end", most=MAX_LINE)
    if start > end and fields.has("end"):
        fields.report("", f"start {start} is after end {end}")
    fields.reject_unknown()
    return start, end


def _parse_knowledge(items: Iterable[Fields]) -> Iterator[Entry]:
    for item in items:
        try:
            yield parse_emission(item.table, tag="type", where=f"{item.path}.")
        except InvalidEntryError as error:
            item.problems.extend(error.problems)


def annotation_json(
    live: LiveInput, *, commit: str, timestamp: str, author: str | None
) -> dict[str, object]:
    """Return the annotation of a commit as JSON."""
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
    """Return warnings about an annotation, which is written all the same."""
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


def annotate(directory: Path, live: LiveInput) -> LiveResult:
    """Write an annotation on its commit and its entries to the store, all at once.

    Raises UnknownCommitError, or DamagedStoreError when the entries could not be
    added; then nothing is written.
    """
    author = read_config(directory, "chronicle.author", "user.name")

    def decide(snapshot: Snapshot) -> Change[LiveResult]:
        commit, store = snapshot.commit, snapshot.store
        missing = _find_missing_places(directory, commit, live)
        for entry in live.knowledge:
            store = add_entry(store, with_provenance(entry, commit)).store
        written = len(store.entries) - len(snapshot.store.entries)
        with ObjectReader(directory) as reader:
            note = read_note(reader, ANNOTATIONS_REF, commit)
        assert note is not None  # noqa: S101 - an object was named
        now = datetime.now(timezone.utc).isoformat()
        raw = annotation_json(live, commit=commit, timestamp=now, author=author)
        message = f"Annotate {commit[:12]}"
        new = commit_notes(directory, note.commit, {commit: dump_json(raw)}, message)
        said, files = _read_commit(directory, commit)
        warnings = find_warnings(
            live, commit=commit, message=said, files=files, overwrites=note.data is not None
        )
        result = LiveResult(
            commit=commit,
            wisdom_written=len(live.wisdom),
            knowledge_written=written,
            knowledge_duplicates=len(live.knowledge) - written,
            warnings=(*warnings, *missing),
        )
        return Change(
            result=result,
            store=store if written else None,
            message=message,
            moves=((ANNOTATIONS_REF, new, note.commit),),
        )

    return change_store(directory, decide, live.commit)


def _find_missing_places(directory: Path, commit: str, live: LiveInput) -> list[str]:
    """Return a warning for each place that does not exist; raise if one is not a path."""
    warnings, problems = [], []
    for number, entry in enumerate(live.knowledge):
        place = entry.place
        if not place or has_place(directory, commit, place, head=True):
            continue
        problem = find_place_problem(place, exists=False)
        where = f"knowledge[{number}].{entry.kind.place}: {place!r}"
        if problem:
            problems.append(f"{where} {problem}")
        else:
            warnings.append(f"{where} does not exist at {commit[:12]}")
    if problems:
        raise InvalidAnnotationError(problems)
    return warnings


def _read_commit(directory: Path, commit: str) -> tuple[str, list[str]]:
    """Return the message of a commit and the files it changes."""
    shape = ("-1", "-z", "--name-only", "--no-renames", "--no-relative", "--format=%B%x00")
    listed = run_git("log", "--no-show-signature", *shape, commit, cwd=directory)
    message, _, files = listed.decode(errors="replace").partition("\0")
    return message, [path for path in files.split("\0") if path.strip()]
