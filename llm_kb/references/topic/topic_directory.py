"""One topic's directory: its `topic.md`, the record of its files, and the files themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.files.containment import read_regular
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import (
    FILE_NAME,
    MAX_BYTES,
    FileRecord,
    Provenance,
    hash_content,
    parse_provenance,
    render_provenance,
)
from llm_kb.references.topic.topic_file import TopicFile, change_topic_file, parse_topic_file
from llm_kb.search.roles import Role, find_role

TOPIC_FILE = "topic.md"
RESERVED = frozenset({TOPIC_FILE, FILE_NAME})
"""Names at a topic's root that fetched files may not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopic:
    """A topic as it was read: its directory, and its `topic.md` as text and as a record."""

    directory: Path
    text: str
    file: TopicFile

    @classmethod
    def parse(cls, directory: Path, text: str) -> StoredTopic:
        """Return the topic of a directory; raise TopicFileError for an invalid `topic.md`."""
        where = str(directory / TOPIC_FILE)
        file = parse_topic_file(text, where)
        if file.id != directory.name:
            raise TopicFileError(where, f"its id {file.id!r} is not the name of its directory")
        return cls(directory=directory, text=text, file=file)

    def read_provenance(self) -> Provenance:
        """Return the record of the topic's files."""
        return read_provenance(self.directory)

    def find_roles(self) -> Callable[[str], str]:
        """Return a function that returns a file's role by its source; empty if unknown."""
        sources = self.file.sources
        if len({(each.role, each.is_tree) for each in sources}) == 1:
            return lambda path: _find_role(sources[0], path)
        files: Mapping[str, FileRecord] = {}
        with suppress(KbError):  # `verify` reports it
            files = self.read_provenance().files

        def find(path: str) -> str:
            number = files[path].source if path in files else len(sources)
            return _find_role(sources[number], path) if number < len(sources) else ""

        return find

    def change(self, changes: dict[str, Any], body: str | None = None) -> StoredTopic:
        """Return the topic with changed keys and description; nothing is written."""
        where = str(self.directory / TOPIC_FILE)
        return self.parse(self.directory, change_topic_file(self.text, where, changes, body))

    def write(self) -> None:
        """Write `topic.md`, whole or not at all."""
        write_topic_text(self.directory, self.text)


def _find_role(source: Source, path: str) -> str:
    """Return the role of a source's file; pages are documentation unless they list changes."""
    role = source.role
    if role is None and not source.is_tree:
        role = Role.CHANGES if find_role(path) is Role.CHANGES else Role.DOCS
    return role.value if role else ""


def write_topic_text(directory: Path, text: str) -> None:
    """Replace a topic's `topic.md`, whole or not at all."""
    replace_file(directory / TOPIC_FILE, text.encode())


def read_provenance(directory: Path) -> Provenance:
    """Return the record of a topic's files; an empty one if it is missing."""
    path = directory / FILE_NAME
    try:
        data = read_regular(path, follow_link=True, most=MAX_BYTES + 1)
    except FileNotFoundError:
        return Provenance()
    except OSError as error:
        reason = f"{error.strerror}; make it readable, or delete it and refresh the topic"
        raise TopicFileError(str(path), reason) from error
    return parse_provenance(data, str(path))


def write_provenance(directory: Path, provenance: Provenance) -> None:
    """Replace the record of a topic's files, whole or not at all."""
    replace_file(directory / FILE_NAME, render_provenance(provenance))


def hash_fetched(directory: Path) -> dict[str, str | None]:
    """Return the hashes of a topic's fetched files, keyed by path; no link is followed.

    Links and devices have their kind in place of a hash, so that they differ from every file.
    The value of an unreadable file or directory is None.
    """
    hashes: dict[str, str | None] = {}
    for path, entry in iter_files(directory):
        if path not in RESERVED:
            with suppress(FileNotFoundError):
                hashes[path] = None if isinstance(entry, OSError) else _hash(entry)
    return hashes


def _hash(entry: os.DirEntry[str]) -> str | None:
    if entry.is_symlink():
        return "link"
    if not entry.is_file(follow_symlinks=False):
        return "no file"
    try:
        return hash_content(read_regular(Path(entry.path)))
    except FileNotFoundError:
        raise
    except OSError:
        return None
