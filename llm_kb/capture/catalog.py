"""The entries captured in a repository as the topic `repo-knowledge`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from llm_kb.capture.annotation import Wisdom, parse_wisdom
from llm_kb.capture.entries import KINDS, KnowledgeStore
from llm_kb.capture.history import read_statuses
from llm_kb.capture.likeness import EVERYWHERE, find_place_problem, normalize_place
from llm_kb.capture.notes import (
    ANNOTATIONS_REF,
    KNOWLEDGE_REF,
    Repository,
    find_repository,
    has_ref,
    list_notes,
    read_note,
)
from llm_kb.capture.rendering import (
    Item,
    Section,
    View,
    code_span,
    describe_places,
    make_section,
    make_texts,
    render_place,
    shorten_commit,
)
from llm_kb.capture.store import parse_note
from llm_kb.errors import KbError, UnreadableError
from llm_kb.files.fields import Fields
from llm_kb.git.read import ObjectReader
from llm_kb.git.run import run_git
from llm_kb.rendering.plain_text import one_line, shorten
from llm_kb.subjects.topics import Catalog, Content, Listing, Skipped, Subject, Topic, slugify

TOPIC_ID = "repo-knowledge"
_EXTENSION = ".md"


def find_knowledge(directory: Path) -> Repository | None:
    """Return the repository of a directory if anything was captured in it.

    Usually no process is started.
    """
    repository = find_repository(directory, bare=False)
    refs = (KNOWLEDGE_REF, ANNOTATIONS_REF)
    return repository if repository and any(has_ref(repository, r) for r in refs) else None


def open_knowledge(
    repository: Repository,
    *,
    branch_only: bool = False,
) -> tuple[Topic, Catalog]:
    """Return the topic of a repository's captured entries, and its catalog.

    `branch_only` leaves out the entries of commits that are not on the current branch.
    """
    catalog = KnowledgeCatalog(repository, branch_only)
    places = describe_places(catalog.sections, repository.root)
    topic = Topic(
        id=TOPIC_ID,
        root=repository.root,
        title="Repository conventions",
        introduction=(
            "Conventions, module boundaries and anti-patterns recorded in this repository"
            + (f", by place: {places}. A path gives what applies there." if places else ".")
        ),
        description=(
            "What was learned while working on this repository and holds beyond one commit. "
            "Each entry names the files it applies to and the commit it comes from. Load a path "
            "of the repository, such as `src/` or `src/main.py`, for what applies there."
            + (f" There are entries for: {places}." if places else "")
        ),
    )
    return topic, catalog


class KnowledgeCatalog:
    """One subject for each kind of entry, rendered from the store on first use.

    A path of the repository names a subject, too: all entries that apply there. If the store
    cannot be read, the catalog has no subjects and reports the reason.
    """

    def __init__(self, repository: Repository, branch_only: bool) -> None:
        self._repository = repository
        self._branch_only = branch_only
        self._problem: str | None = None

    def list(self, reference: str | None = None) -> Listing:
        """Return the subjects, and the reason if there are none; or what a reference names."""
        subjects = sorted(map(_make_subject, self._texts))
        if reference is not None:
            named = [s for s in subjects if reference in {s.slug, s.path}]
            return Listing(subjects=tuple(named) or self._find_place(reference))
        problem = self._problem
        skipped = () if problem is None else (Skipped(path=KNOWLEDGE_REF, reason=problem),)
        return Listing(subjects=tuple(subjects), skipped=skipped)

    def _find_place(self, reference: str) -> Sequence[Subject]:
        """Return the entries that apply to a path of the repository, as one subject."""
        # Stars alone are a pattern for all subjects, not the place `*`.
        if not set(reference) - {"*", "/"}:
            return ()
        place = normalize_place(reference)
        is_place = not find_place_problem(place, exists=True) and self._render_place(place)
        return (_make_subject(place),) if is_place else ()

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return the entries of one kind or place; raise UnreadableError if there are none."""
        slug = subject.path.removesuffix(_EXTENSION)
        is_place = not find_place_problem(slug, exists=True)
        text = self._texts.get(slug) or (self._render_place(slug) if is_place else None)
        if text is None:
            raise UnreadableError(subject.path, "no such entries were captured")
        data = text.encode("utf-8", "replace")
        return Content(data=data if limit is None else data[:limit], size=len(data))

    def _render_place(self, place: str) -> str | None:
        """Return the entries that apply to a path; None for an unknown path."""
        # `find` has refused paths outside the work tree.
        exists = bool(self.sections) and os.path.lexists(self._repository.root / place)
        return render_place(place, self.sections, exists=exists)

    @cached_property
    def _texts(self) -> dict[str, str]:
        return make_texts(self.sections)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All entries as lists, one for each kind; empty if the store cannot be read."""
        loaded = self._loaded
        if loaded is None:
            return ()
        view = loaded.view
        entries = [
            entry
            for entry in loaded.store.entries
            if not (self._branch_only and view.is_elsewhere(entry))
        ]
        kinds = [make_section(kind, [e for e in entries if e.kind is kind], view) for kind in KINDS]
        return (*kinds, _make_wisdom(loaded.lessons))

    @cached_property
    def _loaded(self) -> _Loaded | None:
        try:
            return self._load()
        except KbError as error:
            # A request must not fail because of a topic that it may not use.
            self._problem = str(error)
            return None

    def _load(self) -> _Loaded:
        with ObjectReader(self._repository.root) as reader:
            store = parse_note(read_note(reader, KNOWLEDGE_REF))
        lessons = read_lessons(self._repository.root)
        anchors = {entry.anchor for entry in store.entries}
        statuses = read_statuses(self._repository.root, anchors) if anchors else {}
        return _Loaded(store, lessons, View(statuses=statuses, now=int(time.time())))


class _Loaded(NamedTuple):
    """The entries and lessons of a repository, and the status of the entries."""

    store: KnowledgeStore
    lessons: Sequence[Lesson]
    view: View


def _make_subject(slug: str) -> Subject:
    return Subject(slug=slugify(slug + _EXTENSION), name=slug, path=slug + _EXTENSION)


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
        sizes = _read_sizes(directory, [id_ for _, id_ in notes])
        lessons: list[Lesson] = []
        left = MAX_BYTES
        for (commit, id_), size in zip(notes, sizes, strict=True):
            if size is None or size > min(MAX_NOTE_BYTES, left):
                continue
            left -= size
            if blob := reader.read(id_):
                lessons.extend(parse_lessons(commit, blob.data))
    return tuple(lessons)


def _read_sizes(directory: Path, blobs: Sequence[str]) -> list[int | None]:
    """Return the number of bytes of each blob; None for a missing one."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    listed = run_git("cat-file", "--batch-check=%(objectsize)", cwd=directory, stdin=asked)
    return [int(line) if line.isdigit() else None for line in listed.splitlines()]


def parse_lessons(commit: str, data: bytes) -> Iterator[Lesson]:
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


def _make_wisdom(lessons: Iterable[Lesson]) -> Section:
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
