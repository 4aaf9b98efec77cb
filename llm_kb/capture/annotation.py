"""Annotations of commits: `LiveInput` in, a `chronicle/v3` note and a `LiveResult` out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from llm_kb.capture import notes, store
from llm_kb.capture.emission import InvalidEntryError, add_entry, parse_emission
from llm_kb.capture.entries import EVERYWHERE, Entry, dump_json, normalize_place, read_fields
from llm_kb.capture.rendering import Section, code_span, shorten_commit
from llm_kb.errors import KbError
from llm_kb.files.fields import Fields
from llm_kb.files.git import GitError, read_objects, run_git
from llm_kb.rendering.plain_text import shorten
from llm_kb.texts.safe import one_line

SCHEMA = "chronicle/v3"
CATEGORIES = ("dead_end", "gotcha", "insight", "unfinished_thread")

MAX_LINE = 2**32 - 1  # git-chronicle's limit


class InvalidAnnotationError(KbError):
    """JSON that is not an annotation, with the path of each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"the annotation is invalid, and nothing was written:{listed}")


Wisdom: TypeAlias = Mapping[str, Any]
"""One lesson of a commit, as its JSON: `category`, `content`, and perhaps `file` and `lines`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveInput:
    """An agent's report about a commit it has just made."""

    commit: str
    summary: str
    wisdom: tuple[Wisdom, ...] = ()
    knowledge: tuple[Entry, ...] = ()


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
    if "lines" in wisdom and "file" not in wisdom:
        fields.report("lines", "lines need a file; `file` is missing")
    fields.reject_unknown()
    return wisdom


def parse_wisdom(fields: Fields) -> Wisdom:
    """Return the lesson in some fields, where problems are reported."""
    wisdom: dict[str, Any] = {
        "category": fields.choice("category", CATEGORIES),
        "content": fields.text("content").strip(),
    }
    if fields.has("file"):
        wisdom["file"] = fields.text("file")
    if fields.has("lines"):
        wisdom["lines"] = _parse_lines(fields.fields("lines"))
    return wisdom


def _parse_lines(fields: Fields) -> dict[str, int]:
    start, end = fields.count("start", most=MAX_LINE), fields.count("end", most=MAX_LINE)
    if start > end and fields.has("end"):
        fields.report("", f"start {start} is after end {end}")
    fields.reject_unknown()
    return {"start": start, "end": end}


def _parse_knowledge(items: Iterable[Fields]) -> Iterator[Entry]:
    for item in items:
        try:
            yield parse_emission(item.table, tag="type")
        except InvalidEntryError as error:
            item.problems.extend(f"{item.path}.{problem}" for problem in error.problems)


def annotate(directory: Path, live: LiveInput) -> dict[str, object]:
    """Write an annotation on its commit and its entries to the store; return a LiveResult's JSON.

    Both are written, or neither. Raises UnknownCommitError, and DamagedStoreError when the
    entries could not be added.
    """

    def decide(snapshot: store.Snapshot) -> tuple[dict[str, object], Sequence[notes.Move]]:
        commit, kept = snapshot.commit, snapshot.store
        warnings = []
        for number, entry in enumerate(live.knowledge):
            if problem := store.find_place_problem(directory, commit, entry):
                warnings.append(f"knowledge[{number}].{problem}")
            kept = add_entry(kept, entry, commit).store
        written = len(kept.entries) - len(snapshot.store.entries)
        note = notes.read_note(directory, notes.ANNOTATIONS_REF, commit)
        if note.data is not None:
            warnings.insert(0, f"replaced the annotation that {commit[:8]} had")
        message = f"Annotate {commit[:12]}"
        text = dump_json(_make_note(directory, commit, live))
        new = notes.commit_notes(directory, note.commit, {commit: text}, message)
        moves = [(notes.ANNOTATIONS_REF, new, note.commit)]
        if written:
            moves.append(store.save_store(directory, snapshot, kept, message))
        return {
            "success": True,
            "commit": commit,
            "wisdom_written": len(live.wisdom),
            "knowledge_written": written,
            "knowledge_duplicates": len(live.knowledge) - written,
            "warnings": warnings,
        }, moves

    return store.change_store(directory, decide, live.commit)


def _make_note(directory: Path, commit: str, live: LiveInput) -> dict[str, object]:
    provenance = {"source": "live"}
    with suppress(GitError):  # it is not set
        name = run_git("config", "--get", "user.name", cwd=directory).decode(errors="replace")
        provenance["author"] = name.strip()
    return {
        "schema": SCHEMA,
        "commit": commit,
        "timestamp": datetime.now(timezone.utc).isoformat(),
        "summary": live.summary,
        **({"wisdom": list(live.wisdom)} if live.wisdom else {}),
        "provenance": provenance,
    }


MAX_NOTES = 2000
"""The most annotations that are read."""

MAX_NOTE_BYTES = 200_000
MAX_BYTES = 3_000_000
"""The most bytes of one annotation and of all that are read."""

_MAX_CHARS = 500


def read_wisdom(directory: Path) -> Section:
    """Return the lessons of a repository's annotations as a list, by file.

    Raises DamagedNotesError. Other notes are passed over: git-chronicle keeps several things
    under this ref.
    """
    lessons = sorted(
        _read_lessons(directory), key=lambda lesson: (lesson[1].get("file", ""), lesson[0])
    )
    return Section(
        slug="wisdom",
        title="Wisdom",
        introduction=(
            "What single commits taught: dead ends, gotchas, insights, unfinished threads. "
            "Each names the file it is about and the commit; lines are those of that commit."
        ),
        items=[_make_item(commit, wisdom) for commit, wisdom in lessons],
    )


def _read_lessons(directory: Path) -> Iterator[tuple[str, Wisdom]]:
    """Yield commits and lessons from their annotations."""
    if notes.read_ref(directory, notes.ANNOTATIONS_REF) is None:
        return
    listed = sorted(notes.list_notes(directory, notes.ANNOTATIONS_REF).items())[:MAX_NOTES]
    asked = "".join(f"{blob}\n" for _, blob in listed).encode()
    sizes = run_git("cat-file", "--batch-check=%(objectsize)", cwd=directory, stdin=asked)
    left = MAX_BYTES
    chosen: dict[str, str] = {}
    for (commit, blob), size in zip(listed, sizes.split(b"\n"), strict=False):
        # Of a missing object git says so.
        if size.isdigit() and int(size) <= min(MAX_NOTE_BYTES, left):
            left -= int(size)
            chosen[commit] = blob
    for commit, text in zip(chosen, read_objects(directory, chosen.values()), strict=True):
        if text:
            yield from parse_lessons(commit, text.data)


def parse_lessons(commit: str, data: bytes) -> Iterator[tuple[str, Wisdom]]:
    """Yield the valid lessons of one annotation."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return
    listed = raw.get("wisdom") if isinstance(raw, dict) else None
    for item in listed if isinstance(listed, list) else ():
        fields = Fields(item)
        wisdom = parse_wisdom(fields)
        if not fields.problems:
            yield commit, wisdom


def _make_item(commit: str, wisdom: Wisdom) -> tuple[str, str]:
    file, lines = wisdom.get("file"), wisdom.get("lines")
    place = code_span(file) if file else ""
    if lines:
        place += f", lines {lines['start']}-{lines['end']}"
    kind = wisdom["category"].replace("_", " ")
    content = shorten(one_line(wisdom["content"]), _MAX_CHARS)
    return (
        normalize_place(file or EVERYWHERE),
        f"- {place}{': ' if place else ''}{kind}: {content} (from {shorten_commit(commit)})",
    )
