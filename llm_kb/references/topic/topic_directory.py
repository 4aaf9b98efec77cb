"""One topic's directory: its `topic.md`, the record of its files, and the files themselves."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import writing
from llm_kb.files.containment import read_regular
from llm_kb.files.fields import Fields, describe
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import Source, read_string, source_table
from llm_kb.references.topic.topic_file import read_sources
from llm_kb.search.roles import Role, find_role

FILE_NAME = ".provenance.json"
VERSION = 1

MAX_BYTES, MAX_TABLES = 40_000_000, 250_000
"""The largest record that is read, and its most tables and lists; `max_files` needs half of it."""

# An open end is part of it: looking for the end again from each quotation mark takes too long.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_TIME = re.compile(r"[0-9TZ:+. -]{0,40}")
_OPTIONAL_TEXTS = ("revision", "commit", "blob", "etag", "last_modified")
MAX_URL = 4_000
_NO_NAMES = frozenset({"", ".", ".."})
_WHAT_TO_DO = "; delete it and refresh the topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """The provenance of one fetched file; `source` is the index of its source in the topic.

    `revision` is the requested revision, and `commit` the commit id fetched. A page has the
    server's `etag` and `last_modified` instead.
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

    @property
    def conditions(self) -> dict[str, str | None]:
        """The validators of a page: with them an unchanged page is not sent again."""
        return {"url": self.url, "etag": self.etag, "last_modified": self.last_modified}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The record of a topic's files, keyed by path, and the digest of the topic's request.

    `sources` are those that were fetched, as they were then; `topic.md` may list others by now.
    Anybody may have written a record, so it approves nothing.
    """

    request: str = ""
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()


def hash_content(data: bytes) -> str:
    """Return the hash of a file's content, with the name of its algorithm."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def compare(
    recorded: Mapping[str, FileRecord], found: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """Return how the files found on disk differ from the record, by kind of difference.

    `found` has the hash of each file, None if it cannot be read. The path of a directory that
    cannot be read ends in `/`; the topic's own is `./`.
    """
    read = {path: hash_ for path, hash_ in found.items() if hash_ is not None}
    unreadable = sorted(found.keys() - read.keys())
    shut = tuple(path.removeprefix("./") for path in unreadable if path.endswith("/"))
    return {
        "modified": sorted(p for p in read.keys() & recorded.keys() if recorded[p].hash != read[p]),
        "missing": sorted(p for p in recorded.keys() - found.keys() if not p.startswith(shut)),
        "unknown": sorted(read.keys() - recorded.keys()),
        "unreadable": unreadable,
    }


def render_provenance(provenance: Provenance) -> bytes:
    """Return the record as JSON, without empty fields."""
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
    """Return the record that JSON holds; raise TopicFileError if it is invalid."""
    if len(data) > MAX_BYTES or _has_many_tables(data):
        raise _no_record(where, f"it has over {MAX_BYTES:,} bytes, or far too many tables")
    try:
        table = json.loads(data)
        fields = Fields(table)
        if fields.count("version") != VERSION and not fields.problems:
            version = describe(table["version"])
            raise TopicFileError(where, f"its version is {version}, not {VERSION}{_WHAT_TO_DO}")
        sources = read_sources(fields)
        request = fields.text("request", "" if fields.has("request") else None, read_string)
        fields.raise_problems(lambda problems: ValueError("; ".join(problems)))
        files = {path: FileRecord(**record) for path, record in table["files"].items()}
        for path, file in files.items():
            _check_file(path, file)
        if b"\\u" in data:  # which can name half surrogate pairs
            json.dumps(table, ensure_ascii=False).encode()
    except KeyError as error:
        raise _no_record(where, f"{error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _no_record(where, str(error)) from error
    return Provenance(request=request, files=files, sources=sources)


def _has_many_tables(data: bytes) -> bool:
    """Tell whether JSON has too many tables and lists; names of files may have brackets, too."""
    found = data.count(b"{") + data.count(b"[")
    if found > MAX_TABLES:
        found = sum(_STRING.sub(b"", data).count(sign) for sign in (b"{", b"["))
    return found > MAX_TABLES


def _no_record(where: str, reason: str) -> TopicFileError:
    return TopicFileError(where, f"it is not a record of files: {reason}{_WHAT_TO_DO}")


def _check_file(path: str, record: FileRecord) -> None:
    """Raise TypeError or ValueError if a record is invalid."""
    # Not `is_safe_path`, since a folder may have any name that its source has.
    names = path.split("/")
    if not _NO_NAMES.isdisjoint(names) or "\\" in path or "\0" in path or path[1:2] == ":":
        raise ValueError(f"{describe(path)} is not a path inside the topic")
    optional = (getattr(record, name) for name in _OPTIONAL_TEXTS)
    texts = [record.url, record.hash, record.fetched_at, *(t for t in optional if t is not None)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"a text of {describe(path)} is not a string")
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in (record.source, record.size)):
        raise TypeError(f"a number of {describe(path)} is not one from 0")
    # These three are shown above the file, as what it is and where it came from.
    if not _is_place(record.url) or not _TIME.fullmatch(record.fetched_at):
        raise ValueError(f"the url or the time of {describe(path)} is not one")
    if record.commit is not None and not _COMMIT.fullmatch(record.commit):
        raise ValueError(f"the commit of {describe(path)} is not one")


def _is_place(url: str) -> bool:
    """Tell whether a text is an address, or a path of this machine, and nothing besides."""
    if not url.isprintable() or len(url) > MAX_URL:
        return False
    return url.startswith("/") or url[1:3] == ":/" or (":" in url and " " not in url)


TOPIC_FILE = "topic.md"
RESERVED = frozenset({TOPIC_FILE, FILE_NAME})
"""Names at a topic's root that fetched files may not have."""


def find_roles(directory: Path, sources: Sequence[Source]) -> Callable[[str], str]:
    """Return a function that returns a file's role by its source; empty if unknown."""
    if len({(each.role, each.is_tree) for each in sources}) == 1:
        return lambda path: _find_role(sources[0], path)
    files: Mapping[str, FileRecord] = {}
    with suppress(KbError):  # `verify` reports it
        files = read_provenance(directory).files

    def find(path: str) -> str:
        number = files[path].source if path in files else len(sources)
        return _find_role(sources[number], path) if number < len(sources) else ""

    return find


def _find_role(source: Source, path: str) -> str:
    """Return the role of a source's file; pages are documentation unless they list changes."""
    role = source.role
    if role is None and not source.is_tree:
        role = Role.CHANGES if find_role(path) is Role.CHANGES else Role.DOCS
    return role.value if role else ""


def write_staged(directory: Path, name: str, data: bytes) -> None:
    """Write a file of a staged topic in place of whatever has its name; no link is followed."""
    path = directory / name
    with writing(path):
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(data)


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


def hash_fetched(directory: Path) -> dict[str, str | None]:
    """Return the hashes of a topic's fetched files, keyed by path; no link is followed.

    The value of what cannot be read, or is not a file, is None.
    """
    hashes: dict[str, str | None] = {}
    for path, entry in iter_files(directory):
        if path not in RESERVED:
            hashes[path] = None
            with suppress(OSError):
                if not isinstance(entry, OSError):
                    hashes[path] = hash_content(read_regular(directory / path))
    return hashes
