"""A topic in the making: its staged files, the earlier version, and the links between pages."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    total_size,
)
from llm_kb.rendering.plain_text import format_size
from llm_kb.search.chunking.markdown import mark_fenced
from llm_kb.search.chunking.outline import find_outline

_CODE_OR_LINK = re.compile(
    r"(?<!`)(`+)(?!`)[^`\n]{0,1000}\1(?!`)|\]\((https?://[^\s<>()#]*(?:\([^\s<>()#]*\)[^\s<>()#]*)*)(?:#([^\s()]*))?\)"
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
        return frozenset(part.anchor.casefold() for part in find_outline(path, text).sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTopic:
    """The directory and the record of a topic, numbered as its `topic.md` lists the sources now.

    `asked` has, for each of them, the source as it was when it was fetched; None for one
    that is new. `record` is as it was written, with the files of sources that are gone. A topic
    that is made now `is_new`, and has no files.
    """

    directory: Path
    files: Mapping[str, FileRecord]
    asked: tuple[Source | None, ...]
    record: Provenance
    approved: frozenset[str] = frozenset()
    """The hosts that a person has approved for the topic."""
    is_new: bool = False

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

    def find_page(self, index: int, url: str) -> tuple[str, FileRecord] | None:
        """Return path and record of a page."""
        records = self.of_source(index).items()
        return next(((path, record) for path, record in records if record.url == url), None)

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
    free = dict(enumerate(recorded.sources))
    found: dict[int, int] = {}
    for is_same in (asks_the_same, _has_same_place):
        for new, source in enumerate(sources):
            candidates = [old for old, other in free.items() if is_same(source, other)]
            if new not in found and candidates:
                # Its own number before any other.
                found[new] = new if new in candidates else candidates[0]
                del free[found[new]]
    return tuple(found.get(new) for new in range(len(sources)))


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


@dataclass(slots=True, kw_only=True)
class Staged:
    """A topic in a staging directory, with the files put there so far.

    `failed` are the numbers of the sources that gave nothing new, `own` the kept files that
    were never fetched. Methods that write raise WriteError, as on a full disk.
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

    def write(self, path: str, data: bytes, record: FileRecord) -> None:
        """Write one file and record it; if its name is taken, leave it out with a warning.

        Raises TopicTooLargeError if there would be more than `most_files`, or if all written files
        together exceed `most_bytes`.
        """
        target = self.directory / path
        self.written_bytes += len(data)
        if self.written_bytes > self.most_bytes:
            raise self._too_large(record, "max_bytes", format_size(self.most_bytes))
        if len(self.files) >= self.most_files:
            raise self._too_large(record, "max_files", f"{self.most_files:,}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(data)
        except (FileExistsError, NotADirectoryError):
            self._warn_taken(path, record)
            return
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        self.files[path] = replace(
            record, hash=hash_content(data), size=len(data), fetched_at=self.now
        )

    def check_size(self) -> None:
        """Raise TopicTooLargeError if new and kept files together exceed `most_bytes`."""
        largest = max(self.files.values(), key=lambda record: record.size, default=None)
        if largest and total_size(self.files.values()) > self.most_bytes:
            raise self._too_large(largest, "max_bytes", format_size(self.most_bytes))

    def _too_large(self, record: FileRecord, limit: str, most: str) -> TopicTooLargeError:
        reason = f"with it the topic is over {limit} ({most}); narrow it by paths, or fetch less"
        return TopicTooLargeError(record.url, reason)

    def read(self, path: str) -> bytes:
        """Return the content of a staged file."""
        return read_regular(self.directory / path)

    def rewrite(self, path: str, data: bytes) -> None:
        """Replace a staged file; if it is a link to the old topic's, that one is not changed."""
        target = self.directory / path
        with writing(target):
            target.unlink()
            target.write_bytes(data)
        self.files[path] = replace(self.files[path], hash=hash_content(data), size=len(data))

    def reuse(self, path: str) -> None:
        """Use the old topic's file if it is the same, since that is indexed already."""
        record, before = self.files[path], self.old.files.get(path)
        if before and before.hash == record.hash and self.old.has({path: before}):
            (self.directory / path).unlink()
            self.keep(path, record)

    def fail_source(self, index: int) -> None:
        """Replace the files of a source fetched so far by those of the old topic."""
        self.failed.add(index)
        for path in [path for path, record in self.files.items() if record.source == index]:
            self._remove(path)
        for path, record in self.old.of_source(index).items():
            self.keep_as_it_is(path, record)

    def keep_as_it_is(self, path: str, record: FileRecord) -> None:
        """Keep the old topic's file, edited or not, since it cannot be fetched now."""
        if not self.keep(path, record, verify=False) and (self.directory / path).exists():
            self._warn_taken(path, record)

    def keep(self, path: str, record: FileRecord, *, verify: bool = True) -> bool:
        """Keep the old topic's file if it is still as recorded there.

        A hard link keeps its modification time, so that it is not indexed again.
        """
        origin, target = self.old.directory / path, self.directory / path
        try:
            if not stat.S_ISREG(origin.lstat().st_mode) or target.exists():
                return False
            if verify and hash_content(read_regular(origin)) != record.hash:
                return False
        except OSError:
            return False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(origin, target)
        except (FileExistsError, NotADirectoryError, FileNotFoundError):
            return False
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        self.files[path] = record
        return True

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
                _link(self.old.directory / path, target)
            except OSError as error:
                reason = f"{error.strerror}; {path!r} was added by hand and would be lost"
                raise WriteError(target, reason) from error
            kept.append(name)
        self.own = tuple(kept)

    def _remove(self, path: str) -> None:
        """Remove a staged file, and the directories that were made only for it."""
        del self.files[path]
        target = self.directory / path
        target.unlink()
        for parent in target.relative_to(self.directory).parents[:-1]:
            with suppress(OSError):  # there is more in it
                (self.directory / parent).rmdir()

    def _warn_taken(self, path: str, record: FileRecord) -> None:
        # Names that differ in case alone, on a disk that cannot tell them apart.
        self.warnings.append(f"{record.url}: {path!r} left out, its name is already taken")


def _link(origin: Path, target: Path) -> None:
    try:
        os.link(origin, target, follow_symlinks=False)
    except (FileExistsError, NotADirectoryError, FileNotFoundError):
        raise
    except OSError:  # a file system without links
        shutil.copy2(origin, target, follow_symlinks=False)
