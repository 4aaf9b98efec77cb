"""Where each fetched file came from, and what it was then: records and their JSON. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from llm_kb.references.errors import SourceError, TopicFileError
from llm_kb.references.sources import (
    OPTIONAL_GIT_PROTOCOLS,
    Source,
    parse_source,
    source_table,
)

FILE_NAME = ".provenance.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One fetched file: by `source` (its place among the topic's), from `url`, as it was.

    `revision` is the requested revision, `commit` the commit id it was; for a page
    `etag` and `last_modified` are what its server said instead.
    """

    source: int
    url: str
    hash: str = ""
    size: int = 0
    fetched_at: str = ""
    revision: str | None = None
    commit: str | None = None
    blob: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The record of a topic's files, by path, and the digest of the request that made it.

    `sources` are those that were asked, as they were then: `topic.md` may name others
    meanwhile. Earlier versions did not record them.
    """

    request: str = ""
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def of_source(self, index: int) -> dict[str, FileRecord]:
        """Return the files that one source gave."""
        return {path: record for path, record in self.files.items() if record.source == index}


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the files on disk differ from their record."""

    modified: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.modified or self.missing or self.unknown)


def hash_content(data: bytes) -> str:
    """Return the hash of a file's content, with the name of its algorithm."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def compare(recorded: Mapping[str, FileRecord], found: Mapping[str, str]) -> Differences:
    """Compare the record with the hashes of what is on disk."""
    return Differences(
        modified=tuple(
            sorted(p for p, h in found.items() if p in recorded and recorded[p].hash != h)
        ),
        missing=tuple(sorted(recorded.keys() - found.keys())),
        unknown=tuple(sorted(found.keys() - recorded.keys())),
    )


def render_provenance(provenance: Provenance) -> bytes:
    """Write the record as JSON; what a file has not is left out."""
    files = {
        path: {key: value for key, value in asdict(record).items() if value is not None}
        for path, record in sorted(provenance.files.items())
    }
    table = {
        "version": VERSION,
        "request": provenance.request,
        "sources": [source_table(source) for source in provenance.sources],
        "files": files,
    }
    return json.dumps(table, indent=1, ensure_ascii=False).encode() + b"\n"


def parse_provenance(data: bytes, where: str) -> Provenance:
    """Read the record; raise TopicFileError when it is not one."""
    try:
        table: dict[str, Any] = json.loads(data)
        if table["version"] != VERSION:
            raise TopicFileError(where, f"version {table['version']!r} is not known here")
        files = {path: FileRecord(**record) for path, record in table["files"].items()}
        sources = tuple(_parse_source(item, where) for item in table.get("sources", []))
        return Provenance(request=table["request"], files=files, sources=sources)
    except (ValueError, KeyError, TypeError, AttributeError, SourceError) as error:
        raise TopicFileError(where, f"it is no record of files: {error!r}") from error


def _parse_source(table: Mapping[str, Any], where: str) -> Source:
    # What may be fetched is decided when it is.
    return parse_source(
        table, where, allow_local=True, protocols=OPTIONAL_GIT_PROTOCOLS, lenient=True
    )


def total_size(records: Iterable[FileRecord]) -> int:
    """Return how many bytes these files had."""
    return sum(record.size for record in records)
