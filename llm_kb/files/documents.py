"""The subjects of a topic as the documents of a search."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.layouts import is_shown
from llm_kb.files.walk import are_unchanged
from llm_kb.search.index.documents import MAX_FILE_BYTES, Documents, File, bound_files
from llm_kb.subjects.topics import Catalog, Subject, Topic
from llm_kb.texts.formats import can_convert, is_readable, is_unread_document


class TopicDocuments:
    """The subjects of a topic that is a directory; hidden ones only with `hidden`.

    Files that come with skills are among them. `role_of` returns the role that a file's owner
    gave it, empty if there is none. If `rules` change, the topic is listed again.

    `place` is its path below the workspace, with a slash at its end.

    Implements `Documents` of the search.
    """

    def __init__(  # noqa: PLR0913 - each is one thing to know of the topic
        self,
        topic: Topic,
        catalog: DirectoryCatalog,
        *,
        place: str = "",
        hidden: bool = False,
        trust: int | None = None,
        role_of: Callable[[str], str] = lambda _: "",
        rules: str = "",
    ) -> None:
        self.name = topic.id
        self.trust = trust
        self.root = str(topic.root)
        self.place = place
        self._topic = topic
        self._catalog = catalog
        self._hidden = hidden
        self._role_of = role_of
        # The settings that determine which files are documents.
        self._rules = repr((can_convert(), hidden, rules, topic))
        self._subjects: dict[str, Subject] = {}
        self._listed: Sequence[Subject] | None = None

    def note(self) -> str:
        """Return a note on the state of the next list; empty if a change could go unnoticed."""
        listing, stamps = self._catalog.list_watched()
        self._listed = listing.subjects
        return json.dumps([self._rules, stamps]) if stamps else ""

    def holds(self, note: str, files: Iterable[tuple[str, int, int]]) -> bool:
        """Tell whether a note's state, and path, size and time of the files, are unchanged."""
        prefix, stat = f"{self._topic.root}{os.sep}", os.stat
        try:
            rules, stamps = json.loads(note)
            if rules != self._rules or not are_unchanged(self._topic.root, stamps):
                return False
            for path, size, mtime_ns in files:
                status = stat(prefix + path)
                if status.st_size != size or status.st_mtime_ns != mtime_ns:
                    return False
        except (OSError, ValueError, TypeError, AttributeError):  # also of a damaged note
            return False
        return True

    def list(self) -> Iterator[File]:
        """Yield the subjects with size and time. Raises OSError if the directory is missing."""
        topic, generated = self._topic, self._topic.generated
        next(topic.root.iterdir(), None)
        every = self._catalog.list().subjects if self._listed is None else self._listed
        self._listed = None
        for subject in every:
            is_shown_here = self._hidden or is_shown(subject, topic.layout)
            if not (is_shown_here and _is_searched(subject)):
                continue
            self._subjects[subject.path] = subject
            try:
                # Not `Path.stat`: making a Path takes longer than the call.
                status = os.stat(f"{topic.root}{os.sep}{subject.path}")  # noqa: PTH116
            except OSError:
                continue  # gone since it was listed
            role = self._role_of(subject.path)
            yield File(subject.path, status.st_size, status.st_mtime_ns, role, generated)

    def find_subject(self, path: str) -> Subject | None:
        """Return the subject at a path; None if it is gone or disabled."""
        known = self._subjects.get(path)
        # If nothing was listed in this search, look for the one subject.
        return known or next((s for s in self._catalog.list(path).subjects if s.path == path), None)

    def read(self, path: str) -> bytes:
        """Return the content of a listed subject."""
        return self._catalog.read(self._subjects[path], MAX_FILE_BYTES + 1).data


class MemoryDocuments(Documents):
    """The few subjects of a topic that is not a directory, read for every search."""

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
            yield File(subject.path, *stamp_content(data))

    def find_subject(self, path: str) -> Subject | None:
        """Return the subject at a path; None if there is none."""
        return next((s for s in self._catalog.list().listed if s.path == path), None)

    def read(self, path: str) -> bytes:
        """Return the content of a listed subject."""
        return self._texts[path]


def stamp_content(data: bytes) -> tuple[int, int]:
    """Return a size and a time that change with a content that is not in a file."""
    return len(data), int.from_bytes(blake2b(data, digest_size=7).digest(), "big")


def _is_searched(subject: Subject) -> bool:
    """Tell whether a search reads a subject, or reports how it could be read."""
    return is_readable(subject.path) or is_unread_document(subject.path)


def find_unsearched(root: Path, subjects: Iterable[Subject]) -> list[str]:
    """Return which subjects of a directory no search reads, since they are too many."""
    paths = [subject.path for subject in subjects if is_readable(subject.path)]
    return bound_files([File(path, find_size(root / path), 0) for path in paths])[1]


def find_size(file: Path) -> int:
    """Return the size of a file; 0 if it cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
