"""The subjects of a topic as the documents of a search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.layouts import is_shown
from llm_kb.search.index.documents import (
    MAX_FILE_BYTES,
    File,
    LeftOut,
    Watch,
    find_left_out,
)
from llm_kb.subjects.names import is_readable, is_unread_document
from llm_kb.subjects.topics import Catalog, Layout, Subject


class TopicDocuments:
    """The subjects of a topic that is a directory; hidden ones only with `hidden`.

    Files that come with skills are among them.

    `role_of` returns the role that a file's owner gave it; empty if there is none. With
    `generated`, files that machines made are indexed as well.

    Implements `Documents` of the search.
    """

    def __init__(  # noqa: PLR0913 - each is one thing to know of the topic
        self,
        name: str,
        root: Path,
        catalog: Catalog,
        database: Path | None,
        *,
        hidden: bool = False,
        trust: int | None = None,
        role_of: Callable[[str], str] = lambda _: "",
        generated: bool = False,
        watch: Watch | None = None,
        layout: Layout = Layout.FILES,
    ) -> None:
        self._layout = layout
        self.name = name
        self.watch = watch
        self.trust = trust
        self._role_of = role_of
        self._generated = generated
        self.database = database
        self._root = root
        self._catalog = catalog
        self._hidden = hidden
        self._subjects: dict[str, Subject] = {}

    def list(self) -> Iterator[File]:
        """Yield the subjects with size and time. Raises OSError if the directory is missing."""
        next(self._root.iterdir(), None)
        catalog = self._catalog
        found: Iterable[Subject] = ()
        if self._hidden or self._layout is Layout.SKILLS:
            every = catalog.list().subjects
            found = (s for s in every if self._hidden or is_shown(s, self._layout))
        else:
            found = catalog.list().listed
        prefix = f"{self._root}{os.sep}"
        for subject in filter(_is_listed, found):
            self._subjects[subject.path] = subject
            try:
                # Not `Path.stat`: making a Path takes longer than the call.
                status = os.stat(prefix + subject.path)  # noqa: PTH116
            except OSError:
                continue  # gone since it was listed
            role = self._role_of(subject.path)
            yield File(subject.path, status.st_size, status.st_mtime_ns, role, self._generated)

    def find_subject(self, path: str) -> Subject | None:
        """Return the subject at a path; None if it is gone or disabled."""
        known = self._subjects.get(path)
        # If nothing was listed in this search, look for the one subject.
        return known or next((s for s in self._catalog.list(path).subjects if s.path == path), None)

    def read(self, path: str) -> bytes:
        """Return the content of a listed subject."""
        return self._catalog.read(self._subjects[path], MAX_FILE_BYTES + 1).data


class MemoryDocuments:
    """The few subjects of a topic that is not a directory, indexed for every search.

    Implements `Documents` of the search.
    """

    database = None
    trust = None
    watch = None

    def __init__(self, name: str, catalog: Catalog) -> None:
        self.name = name
        self._catalog = catalog
        self._texts: dict[str, bytes] = {}

    def list(self) -> Iterator[File]:
        """Yield the subjects that can be read."""
        for subject in self._catalog.list().listed:
            try:
                data = self._catalog.read(subject, MAX_FILE_BYTES).data
            except UnreadableError:
                continue  # `llm kb check` reports it
            self._texts[subject.path] = data
            yield File(subject.path, len(data), 0)

    def find_subject(self, path: str) -> Subject | None:
        """Return the subject at a path; None if there is none."""
        return next((s for s in self._catalog.list().listed if s.path == path), None)

    def read(self, path: str) -> bytes:
        """Return the content of a listed subject."""
        return self._texts[path]


def _is_listed(subject: Subject) -> bool:
    """Tell whether a search reads a subject, or reports how it could be read."""
    return is_readable(subject.path) or is_unread_document(subject.path)


def find_unsearched(root: Path, subjects: Iterable[Subject]) -> tuple[LeftOut, ...]:
    """Return the subjects of a directory that no search reads, with the reasons."""
    return find_left_out(
        File(subject.path, find_size(root / subject.path), 0)
        for subject in subjects
        if _is_listed(subject)
    )


def find_size(file: Path) -> int:
    """Return the size of a file; 0 if it cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
