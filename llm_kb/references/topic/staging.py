"""A topic in the making: its staged files, the earlier version, and the links between pages."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from llm_kb.files.atomic import WriteError, writing
from llm_kb.files.containment import read_regular
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import TopicFileError, TopicTooLargeError
from llm_kb.references.sources.records import Source, source_table
from llm_kb.references.sources.rules import page_key, unused_name
from llm_kb.references.topic.topic_directory import (
    RESERVED,
    FileRecord,
    Provenance,
    hash_content,
    write_staged,
)
from llm_kb.rendering.plain_text import format_size
from llm_kb.texts.markup import mark_fenced
from llm_kb.texts.outlines.outline import read_document

_CODE_OR_LINK = re.compile(
    r"(?<!`)(`+)(?!`)[^`\n]{0,1000}\1(?!`)|\]\((https?://[^\s<>()#]*(?:\([^\s<>()#]*\)[^\s<>()#]*){0,20})(?:#([^\s()]*))?\)"
)


class PageLinks:
    """The pages of a directory of fetched files, by the addresses they were fetched from.

    Files of repositories are not pages: they have a commit or a revision.
    """

    def __init__(self, root: Path, files: Mapping[str, FileRecord]) -> None:
        self.pages = {
            path: record
            for path, record in files.items()
            if not (record.commit or record.revision) and record.url.startswith("http")
        }
        self._root = root
        self._places = {page_key(record.url): path for path, record in self.pages.items()}
        self._anchors: Callable[[str], frozenset[str]] = lru_cache(maxsize=None)(self._find_anchors)

    def localize(self, path: str, text: str) -> str:
        """Return a page with its links to the others relative, as files; code stays as it is.

        The `#part` of a link is kept if the other page has a heading of that name.
        """

        def replace(found: re.Match[str]) -> str:
            key = page_key(found[2]) if found[2] else ""
            place = self._places.get(key) or self._places.get(f"{key}/")
            if not place:
                return found[0]
            has_part = found[3] and found[3].casefold() in self._anchors(place)
            part = f"#{found[3]}" if has_part else ""
            if place == path and part:
                return f"]({part})"
            return f"]({posixpath.relpath(place, posixpath.dirname(path))}{part})"

        return "".join(
            line if is_code else _CODE_OR_LINK.sub(replace, line)
            for is_code, line in mark_fenced(text.splitlines(keepends=True))
        )

    def _find_anchors(self, path: str) -> frozenset[str]:
        text = read_regular(self._root / path).decode("utf-8", "replace")
        return frozenset(part.anchor.casefold() for part in read_document(path, text).sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTopic:
    """The directory and the record of a topic, numbered as its `topic.md` lists the sources now.

    `asked` has, for the number of each source that was fetched, the source as it was then. `record`
    is as it was written, with the files of sources that are gone. A topic that is made now has
    nothing of all this.
    """

    # Not a directory, so that no file is found there by mistake.
    directory: Path = Path(os.devnull)
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    asked: Mapping[int, Source] = field(default_factory=dict)
    record: Provenance = field(default_factory=Provenance)
    approved: frozenset[str] | None = None
    """The hosts that a person has approved for the topic; None for any, as it is made now."""

    @classmethod
    def match(
        cls,
        directory: Path,
        recorded: Provenance,
        sources: Sequence[Source],
        approved: frozenset[str] = frozenset(),
    ) -> OldTopic:
        """Find the files of each source so far, without those of sources that are gone."""
        places = match_sources(recorded.sources, sources)
        numbers = {old: new for new, old in places.items()}
        return cls(
            directory=directory,
            files={
                path: replace(record, source=numbers[record.source])
                for path, record in recorded.files.items()
                if record.source in numbers
            },
            asked={new: recorded.sources[old] for new, old in places.items()},
            record=recorded,
            approved=approved,
        )

    @property
    def is_new(self) -> bool:
        """Whether the topic is made now."""
        return self.approved is None

    def find_own_files(self) -> list[str]:
        """Return the paths of the files that were put into the topic by hand, sorted.

        Raises TopicFileError for a directory that cannot be read: files may be in it.
        """
        found: list[str] = []
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

    def has(self, records: Mapping[str, FileRecord]) -> bool:
        """Tell whether the files on disk are as recorded."""
        try:
            return all(
                hash_content(read_regular(self.directory / path)) == record.hash
                for path, record in records.items()
            )
        except OSError:
            return False


def match_sources(recorded: Sequence[Source], sources: Sequence[Source]) -> dict[int, int]:
    """Return the number that each source has in a record, without those that are not in it.

    A source is matched by its request, else by its address alone.
    """
    free = dict(enumerate(recorded))
    found: dict[int, int] = {}
    for is_same in (
        asks_the_same,
        lambda a, b: (a.type, a.url) == (b.type, b.url),
    ):
        for new, source in enumerate(sources):
            candidates = [old for old, other in free.items() if is_same(source, other)]
            if new not in found and candidates:
                found[new] = candidates[0]
                del free[candidates[0]]
    return found


def asks_the_same(one: Source, other: Source | None) -> bool:
    """Tell whether two sources make the same request, whatever was found there."""
    return other is not None and _wish(one) == _wish(other)


def _wish(source: Source) -> dict[str, Any]:
    """Return what a source asks for: its fields, but for those that a fetch fills in."""
    table = source_table(source)
    return {key: value for key, value in table.items() if key not in {"commit", "role"}}


@dataclass(slots=True, kw_only=True)
class Staged:
    """A topic in a staging directory, with the files put there so far.

    `failed` are the numbers of the sources that gave nothing new, `kept` the fetched files that are
    as they were in the old topic, and `own` those that were never fetched. Methods that write raise
    WriteError, as on a full disk, and TopicTooLargeError for more than `most_files`, or more than
    `most_bytes` together.
    """

    directory: Path
    now: str
    most_bytes: int
    most_files: int
    old: OldTopic
    own: tuple[str, ...] = ()
    written_bytes: int = 0
    files: dict[str, FileRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def write(self, path: str, data: bytes, record: FileRecord) -> None:
        """Write one file and record it; if its name is taken, leave it out with a warning."""
        new = replace(record, hash=hash_content(data), size=len(data), fetched_at=self.now)
        self._put(path, data, new)

    def keep(self, path: str, record: FileRecord, *, edited: bool = False) -> bool:
        """Keep the old topic's file if it is as recorded there, or also if it was `edited`.

        It keeps its modification time, so that it is not indexed again.
        """
        origin = self.old.directory / path
        try:
            data = read_regular(origin)
        except OSError:
            return False
        if not edited and hash_content(data) != record.hash:
            return False
        if not self._put(path, data, record, origin):
            return False
        self.kept.add(path)
        return True

    def _put(self, path: str, data: bytes, record: FileRecord, origin: Path | None = None) -> bool:
        """Write a file, or take over its origin, unless its name is taken; tell whether it was."""
        self.written_bytes += len(data)
        if self.written_bytes > self.most_bytes:
            raise TopicTooLargeError(record.url, "max_bytes", format_size(self.most_bytes))
        if len(self.files) >= self.most_files:
            raise TopicTooLargeError(record.url, "max_files", f"{self.most_files:,}")
        target = self.directory / path
        with writing(target):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if origin:
                    take_over(origin, target)
                else:
                    with target.open("xb") as file:
                        file.write(data)
            except (FileExistsError, NotADirectoryError):
                # Names that differ in case alone, on a disk that cannot tell them apart.
                self.warnings.append(f"{record.url}: {path!r} left out, its name is already taken")
                return False
        self.files[path] = record
        return True

    def rewrite(self, path: str, data: bytes) -> None:
        """Replace a staged file; if it is a link to the old topic's, that one is not changed."""
        write_staged(self.directory, path, data)
        self.kept.discard(path)
        self.files[path] = replace(self.files[path], hash=hash_content(data), size=len(data))

    def fail_source(self, index: int) -> None:
        """Replace the files of a source fetched so far by those of the old topic."""
        self.failed.add(index)
        for path in [path for path, record in self.files.items() if record.source == index]:
            self.written_bytes -= self.files.pop(path).size
            (self.directory / path).unlink()
        for path, record in self.old.of_source(index).items():
            self.keep(path, record, edited=True)

    def keep_own_files(self) -> None:
        """Keep the files of the old topic that were added by hand, since they are its owner's.

        If a fetched file now has the same name, the owner's file is renamed, with a warning.
        """
        kept: list[str] = []
        own = self.old.find_own_files()
        for path in own:
            name = path
            if os.path.lexists(self.directory / path):
                if not self.old.record.files:
                    continue  # the record was deleted, so this may be a fetched file
                name = unused_name(path, [*self.files, *own])
                self.warnings.append(f"your file {path!r} is now {name!r}: a source has its name")
            target = self.directory / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                take_over(self.old.directory / path, target)
            except OSError as error:
                reason = f"{error.strerror or error}; {path!r} was added by hand and would be lost"
                raise WriteError(target, reason) from error
            kept.append(name)
        self.own = tuple(kept)


def take_over(origin: Path, target: Path) -> None:
    """Link or copy a file with its time; a link costs no space, and is deleted in no time."""
    try:
        os.link(origin, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        shutil.copy2(origin, target, follow_symlinks=False)
