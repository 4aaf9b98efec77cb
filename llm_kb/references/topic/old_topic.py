"""The topic that a refresh replaces, and which of its files came from which current source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from llm_kb.files.containment import read_regular
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import Source, source_table
from llm_kb.references.topic.links import PageLinks
from llm_kb.references.topic.provenance import FileRecord, Provenance, hash_content
from llm_kb.references.topic.topic_directory import RESERVED


# Without slots: `cached_property` keeps the links in the instance.
@dataclass(frozen=True, kw_only=True)
class OldTopic:
    """The directory and the record of a topic, numbered as its `topic.md` lists the sources now.

    `asked` has, for each of them, the source as it was when it was fetched; None for one
    that is new. `record` is as it was written, with the files of sources that are gone. A topic
    that is made now `is_new`, and has no files. A refresh that `has_asked` the operator about a
    host does not ask about another.
    """

    directory: Path
    files: Mapping[str, FileRecord]
    asked: tuple[Source | None, ...]
    record: Provenance
    approved: frozenset[str] = frozenset()
    """The hosts that a person has approved for the topic."""
    is_new: bool = False
    has_asked: bool = False

    @cached_property
    def links(self) -> PageLinks:
        """The pages among its files."""
        return PageLinks(self.directory, self.files)

    @classmethod
    def none(cls, sources: Sequence[Source]) -> OldTopic:
        """Return the state before a topic of these sources is made."""
        asked = (None,) * len(sources)
        # `os.devnull` is not a directory, so that no file is found there by mistake.
        return cls(
            directory=Path(os.devnull), files={}, asked=asked, record=Provenance(), is_new=True
        )

    @classmethod
    def match(cls, directory: Path, recorded: Provenance, sources: Sequence[Source]) -> OldTopic:
        """Find the files of each source so far, without those of sources that are gone."""
        places = match_sources(recorded, sources)
        numbers = {old: new for new, old in enumerate(places) if old is not None}
        return cls(
            directory=directory,
            files={
                path: _renumber(record, numbers[record.source])
                for path, record in recorded.files.items()
                if record.source in numbers
            },
            asked=tuple(None if old is None else recorded.sources[old] for old in places),
            record=recorded,
        )

    def find_own_files(self) -> list[str]:
        """Return the paths of the files that were put into the topic by hand, sorted.

        Raises TopicFileError for a directory that cannot be read: files may be in it.
        """
        found: list[str] = []
        if self.is_new:
            return found
        for path, entry in iter_files(self.directory):
            if isinstance(entry, OSError):
                raise TopicFileError(
                    str(self.directory / path),
                    "it cannot be read, and a refresh might lose files in it; make it readable",
                )
            if path not in self.record.files and path not in RESERVED:
                found.append(path)
        return sorted(found)

    def of_source(self, index: int) -> dict[str, FileRecord]:
        """Return the files that one source gave."""
        return {path: record for path, record in self.files.items() if record.source == index}

    def gave(self, path: str, text: str) -> bool:
        """Tell whether a page is unchanged since its file was written.

        Compared as it was sent, and with its links to other pages of the topic as paths.
        """
        recorded = self.files[path].hash
        if hash_content(text.encode()) == recorded:
            return True
        return hash_content(self.links.localize(path, text).encode()) == recorded

    def find_page(self, index: int, url: str) -> tuple[str, FileRecord] | None:
        """Return path and record of a page."""
        records = self.of_source(index).items()
        return next(((path, record) for path, record in records if record.url == url), None)

    def count_restored(self, files: Mapping[str, FileRecord]) -> int:
        """Count the files that were fetched again only because they were edited or lost here."""
        return sum(
            # The same record: the file was taken over as it is.
            path in self.files
            and record is not self.files[path]
            and record.hash == self.files[path].hash
            and not self.has({path: record})
            for path, record in files.items()
        )

    def has(self, records: Mapping[str, FileRecord]) -> bool:
        """Tell whether the files on disk are as recorded."""
        try:
            return all(
                hash_content(read_regular(self.directory / path)) == record.hash
                for path, record in records.items()
            )
        except OSError:
            return False


def match_sources(recorded: Provenance, sources: Sequence[Source]) -> tuple[int | None, ...]:
    """Return the number of each source in a record; None for a source that is not in it.

    A source is matched by its request, else by its address alone.
    """
    found: list[int | None] = [None] * len(sources)
    free = list(range(len(recorded.sources)))
    for is_same in (asks_the_same, _has_same_place):
        for new, source in enumerate(sources):
            # Its own number before any other.
            candidates = sorted(free, key=lambda number: (number != new, number))
            if found[new] is None:
                found[new] = next(
                    (old for old in candidates if is_same(source, recorded.sources[old])), None
                )
                free = [number for number in free if number != found[new]]
    return tuple(found)


def asks_the_same(one: Source, other: Source | None) -> bool:
    """Tell whether two sources make the same request, whatever was found there."""
    return other is not None and _wish(one) == _wish(other)


def _wish(source: Source) -> dict[str, Any]:
    """Return what a source asks for: its fields, but for those that a fetch fills in."""
    table = source_table(source)
    return {key: value for key, value in table.items() if key not in {"commit", "role"}}


def _has_same_place(one: Source, other: Source) -> bool:
    return (one.type, one.url) == (other.type, other.url)


def _renumber(record: FileRecord, number: int) -> FileRecord:
    return record if record.source == number else replace(record, source=number)
