"""Reads and renders the lessons in annotations of commits: dead ends, gotchas, insights."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from llm_kb.capture.annotation import CATEGORIES, Wisdom
from llm_kb.capture.likeness import EVERYWHERE, normalize_place
from llm_kb.capture.notes import ANNOTATIONS_REF, list_notes
from llm_kb.capture.rendering import shorten_commit
from llm_kb.capture.subjects import Item, Section, code_span
from llm_kb.git.read import ObjectReader
from llm_kb.git.run import run_git
from llm_kb.rendering.plain_text import one_line, shorten

MAX_NOTES = 2000
"""The most annotations that are read."""

MAX_NOTE_BYTES = 200_000
MAX_BYTES = 10_000_000
"""The most bytes of one annotation and of all that are read."""

_MAX_CHARS = 500


Lesson: TypeAlias = tuple[str, Wisdom]
"""A commit and a lesson from its annotation."""


def read_lessons(directory: Path) -> tuple[Lesson, ...]:
    """Return the lessons of a repository's annotations.

    Raises DamagedNotesError. Other notes are passed over: git-chronicle keeps several things
    under this ref.
    """
    with ObjectReader(directory) as reader:
        if reader.read(ANNOTATIONS_REF) is None:
            return ()
        notes = sorted(list_notes(directory, ANNOTATIONS_REF).items())[:MAX_NOTES]
        readable = _find_readable(directory, [blob for _, blob in notes])
        return tuple(
            lesson
            for commit, id_ in notes
            if id_ in readable and (blob := reader.read(id_))
            for lesson in parse_lessons(commit, blob.data)
        )


def _find_readable(directory: Path, blobs: Sequence[str]) -> set[str]:
    """Return the blobs that exist and are short, together as well as each."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    command = ("cat-file", "--batch-check=%(objectname) %(objectsize)")
    listed = run_git(*command, cwd=directory, stdin=asked).decode(errors="replace")
    readable, left = set(), MAX_BYTES
    for line in listed.splitlines():
        id_, _, size = line.partition(" ")
        if size.isdigit() and int(size) <= min(MAX_NOTE_BYTES, left):
            readable.add(id_)
            left -= int(size)
    return readable


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
