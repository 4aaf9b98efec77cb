"""Reads and renders the lessons in annotations of commits: dead ends, gotchas, insights."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from llm_kb.capture.annotation import CATEGORIES, Wisdom
from llm_kb.capture.git.notes import ANNOTATIONS_REF, flatten_notes
from llm_kb.capture.likeness import EVERYWHERE, normalize_place
from llm_kb.capture.rendering import shorten_commit
from llm_kb.capture.subjects import Item, Section, code_span
from llm_kb.git.read import ObjectReader
from llm_kb.rendering.plain_text import one_line, shorten

MAX_NOTES = 2000
"""The most annotations that are read."""

_MAX_CHARS = 500


Lesson: TypeAlias = tuple[str, Wisdom]
"""A commit and a lesson from its annotation."""


def read_lessons(reader: ObjectReader) -> tuple[Lesson, ...]:
    """Return the lessons of a repository's annotations.

    Raises DamagedNotesError. Other notes are passed over: git-chronicle keeps several things
    under this ref.
    """
    if reader.read(ANNOTATIONS_REF) is None:
        return ()
    notes = sorted(flatten_notes(reader, ANNOTATIONS_REF).items())[:MAX_NOTES]
    blobs = reader.read_ids([entry.id.hex() for _, entry in notes])
    return tuple(
        lesson
        for (name, _), blob in zip(notes, blobs, strict=True)
        if blob
        for lesson in parse_lessons(name.decode(errors="replace"), blob.data)
    )


def parse_lessons(commit: str, data: bytes) -> Iterator[Lesson]:
    """Yield the valid lessons of one annotation."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return
    listed = raw.get("wisdom") if isinstance(raw, dict) else None
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict) or item.get("category") not in CATEGORIES:
            continue
        content, file, lines = item.get("content"), item.get("file"), item.get("lines")
        if isinstance(content, str) and one_line(content):
            wisdom = Wisdom(
                category=item["category"],
                content=content,
                file=file if isinstance(file, str) and file.strip() else None,
                lines=_parse_lines(lines) if isinstance(lines, dict) else None,
            )
            yield commit, wisdom


def _parse_lines(lines: dict[str, object]) -> tuple[int, int] | None:
    start, end = lines.get("start"), lines.get("end")
    return (start, end) if type(start) is int and type(end) is int else None


def make_section(lessons: Iterable[Lesson]) -> Section:
    """Return the lessons as a list, by file."""
    ordered = sorted(lessons, key=lambda lesson: (lesson[1].file or "", lesson[0]))
    return Section(
        slug="wisdom",
        title="Wisdom",
        introduction=(
            "What single commits taught: dead ends, gotchas, insights, unfinished threads. "
            "Each names the file it is about and the commit; lines are those of that commit."
        ),
        items=tuple(
            Item(
                place=normalize_place(wisdom.file) if wisdom.file else EVERYWHERE,
                text=_render(commit, wisdom),
            )
            for commit, wisdom in ordered
        ),
    )


def _render(commit: str, wisdom: Wisdom) -> str:
    place = ""
    if wisdom.file:
        lines = f", lines {wisdom.lines[0]}-{wisdom.lines[1]}" if wisdom.lines else ""
        place = f"{code_span(wisdom.file)}{lines}: "
    kind = wisdom.category.replace("_", " ")
    content = shorten(one_line(wisdom.content), _MAX_CHARS)
    return f"- {place}{kind}: {content} (from {shorten_commit(commit)})"
