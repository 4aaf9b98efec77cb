"""The catalog of a directory: which of its files are subjects, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from llm_kb.containment import Containment
from llm_kb.disabling import Disabled
from llm_kb.errors import UnreadableError
from llm_kb.file_reader import FileReader
from llm_kb.gathering import Gathering
from llm_kb.layouts import SKILL_FILE
from llm_kb.lookup import find_places
from llm_kb.patterns import Pattern
from llm_kb.spelling import compose, pick, strip_dots
from llm_kb.topics import Content, Layout, Listing, Read, Subject, Topic, slugify
from llm_kb.walk import describe

ReadFile: TypeAlias = Callable[[str, "int | None"], tuple[bytes, int, str]]


class DirectoryCatalog:
    """The subjects of a topic that is a directory of files. Implements `Catalog`.

    No file is remembered between calls, so each sees the directory as it is then.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def list_subjects(self) -> Listing:
        """Return every subject, hidden ones included, sorted by slug."""
        gathering = self._gather()
        for batch in gathering.walk.batches():
            gathering.add(batch)
        skipped = sorted(gathering.skipped, key=lambda skipped: (skipped.path, skipped.reason))
        return Listing(subjects=gathering.rows.settle(), skipped=skipped)

    def iter_listed(self) -> Iterator[Subject]:
        """Yield the listed subjects in no order, as they are found."""
        gathering = self._gather()
        for batch in gathering.walk.batches(hidden=False):
            gathering.start_over()
            gathering.add(gathering.reader.listed(batch))
            yield from gathering.rows.settle()

    def match(self, pattern: Pattern) -> Sequence[Subject]:
        """Return the listed subjects whose slug the pattern matches, sorted."""
        gathering = self._gather()
        reader = gathering.reader
        for batch in gathering.walk.batches(reader.enters(pattern), hidden=False):
            gathering.add(reader.listed(batch))
        return gathering.rows.settle(pattern.matches)

    def find(self, reference: str) -> Sequence[Subject]:
        """Return the subjects a slug, with or without extension and dots, names.

        Only the directories it may lie in are looked into.
        """
        reference = compose(reference)
        components = strip_dots(reference).split("/")
        if "\0" in reference or not all(components):
            return ()
        gathering = self._gather()
        stem = components[-1].partition(".")[0]
        for place in find_places(gathering.walk, self._containment, components[:-1]):
            # What a file is called may depend on all whose names start alike, so they are kept.
            gathering.scan(place, lambda name: stem in name or not name.isascii())
        bare = "/".join(components)
        slugs = {bare, slugify(bare)}
        if self._topic.layout is Layout.SKILLS:
            for place in find_places(gathering.walk, self._containment, components):
                gathering.scan(place, SKILL_FILE.__eq__)
            slugs.add("/".join(components[:-1]))
        return pick(reference, gathering.rows.settle(slugs.__contains__))

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject, at most its first `limit` bytes."""
        return self._read(self._containment.read_file, subject, limit)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """Give what reads subjects fast that lie in one directory and are read in a row."""
        files = FileReader(self._containment)
        try:
            yield partial(self._read, files.read)
        finally:
            files.close()

    def _read(self, read_file: ReadFile, subject: Subject, limit: int | None = None) -> Content:
        path = subject.path
        try:
            data, size, real = read_file(path, limit)
        except OSError as error:
            raise UnreadableError(path, describe(error)) from error
        if real != path and self._excludes(real):
            raise UnreadableError(path, "it leads to a file that is no subject")
        return Content(data, size)

    @cached_property
    def _containment(self) -> Containment:
        return Containment(self._topic.root, self._topic.allow_links_to)

    @cached_property
    def _disabled(self) -> Disabled | None:
        entries = self._topic.disabled
        return Disabled(entries, ignores_case=self._containment.ignores_case) if entries else None

    def _gather(self) -> Gathering:
        return Gathering(self._topic, self._containment, self._disabled)

    def _excludes(self, path: str) -> bool:
        """Tell whether a file may not be read under another name either."""
        if Path(path).is_absolute():
            return False  # outside, where links are allowed to lead
        is_disabled = self._disabled is not None and self._disabled.covers(slugify(path), [path])
        return is_disabled or self._gather().walk.ignores_any(path)
