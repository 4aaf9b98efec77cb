"""The SQLite database of an index: its schema, opening it, and its errors."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from llm_kb.errors import KbError

VERSION = 37
"""Version of the schema and of how files become rows; other versions are rebuilt."""

BUSY_SECONDS = 20
"""Seconds to wait for the transaction of another process."""

MOST_COPIED = 250_000_000
"""Maximum number of bytes of an index that is copied into memory where it cannot be written."""

ROOM_BYTES = 1_000_000
"""A disk with less free space counts as full: SQLite cannot even open an index to read it."""

_SCHEMA = """
CREATE TABLE topics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    root TEXT NOT NULL,
    used INTEGER NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    beyond TEXT NOT NULL DEFAULT '',
    UNIQUE (name, root)
);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL REFERENCES topics,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    wishes TEXT NOT NULL,
    hash BLOB NOT NULL,
    problem TEXT NOT NULL,
    role TEXT NOT NULL,
    UNIQUE (topic, path)
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    hash BLOB NOT NULL,
    title TEXT NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX chunks_document ON chunks (document);
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    heading, context, text, parts, content = '',
    tokenize = "porter unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 33554432);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('automerge', 8);
CREATE TABLE vectors (
    model TEXT NOT NULL,
    hash BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, hash)
) WITHOUT ROWID;
"""

_TEMPORARY = """
CREATE VIRTUAL TABLE temp.frequencies USING fts5vocab (main, chunks_fts, row);
CREATE VIRTUAL TABLE temp.words USING fts5 (
    word, content = '',
    tokenize = "porter unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE temp.stems USING fts5vocab (temp, words, instance);
CREATE TEMP TABLE listed (document INTEGER PRIMARY KEY);
"""


class IndexUnusableError(KbError):
    """An index that can neither be used nor rebuilt here."""

    def __init__(self, database: Path | None, reason: str) -> None:
        self.database = database
        self.reason = reason
        place = repr(str(database)) if database else "in memory"
        super().__init__(f"cannot use the index {place}: {reason}")


class DamageError(IndexUnusableError):
    """A database that is damaged or of another version; it can be discarded and rebuilt."""


class ReadOnlyError(IndexUnusableError):
    """An index in a place that cannot be written, as in the sandbox of an agent."""


class DocumentsGoneError(KbError):
    """Documents that are missing, as after their topic was deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the files of {name!r} are not there")


def connect(database: Path | None) -> sqlite3.Connection:
    """Open a database with this schema, created if needed; without a path, one in memory.

    One that cannot be written is copied into memory. Raises DamageError if it is something else,
    IndexUnusableError if it can be neither opened nor created.
    """
    try:
        return _open(database)
    except ReadOnlyError:
        if database and (copy := _copy(database)):
            return copy
        raise


def _copy(database: Path) -> sqlite3.Connection | None:
    """Return a copy in memory of a database that is only read; None if it cannot be copied."""
    log = database.with_name(f"{database.name}-wal")
    with suppress(OSError, sqlite3.Error, IndexUnusableError):
        # Pages in a log may belong to a transaction that another process is about to write.
        is_whole = not log.exists() or not log.stat().st_size
        if not is_whole or database.stat().st_size > MOST_COPIED:
            return None
        place = f"{database.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(place, uri=True)) as source:
            return _prepare(sqlite3.connect(":memory:", isolation_level=None), database, source)
    return None


def _open(database: Path | None) -> sqlite3.Connection:
    with translated(database):
        if database:
            # Only readable by its owner, since it has the content of the files.
            database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(
            database or ":memory:", isolation_level=None, timeout=BUSY_SECONDS
        )
        return _prepare(connection, database)


def _prepare(
    connection: sqlite3.Connection,
    database: Path | None,
    source: sqlite3.Connection | None = None,
) -> sqlite3.Connection:
    """Return a connection with this schema, filled from a source if there is one."""
    try:
        # For new databases: with SQLite's default of 4,096, most pages would hold only three
        # chunks.
        connection.execute("PRAGMA page_size = 16384")
        if source:
            source.backup(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # 16 MB: with SQLite's default of 2 MB, large transactions write pages repeatedly.
        connection.execute("PRAGMA cache_size = -16000")
        _ensure_schema(connection, database)
        _execute_all(connection, _TEMPORARY)
    except BaseException:
        connection.close()
        raise
    return connection


def discard(database: Path | None) -> None:
    """Delete a database, which can be rebuilt."""
    if database is None:
        return
    with translated(database):
        for suffix in ("-wal", "-shm", ""):
            database.with_name(database.name + suffix).unlink(missing_ok=True)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the changes made in the block, or roll them back if it fails."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(database: Path | None) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into those of the index."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _translate(database, str(error)) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter of SQLite's message
        raise DamageError(database, str(error)) from error
    except OSError as error:
        raise _explain_disk(database) or IndexUnusableError(database, str(error)) from error


def _translate(database: Path | None, reason: str) -> Exception:
    """Return the error for the user that an error of SQLite means."""
    if "no such module: fts5" in reason:
        reason = "this Python's SQLite was built without FTS5; use another build of Python"
    elif "locked" in reason or "busy" in reason:
        reason = "another process holds it; try again when it is done"
    elif "malformed" in reason or "no such" in reason or "already exists" in reason:
        return DamageError(database, reason)
    elif explained := _explain_disk(database):
        return explained
    return IndexUnusableError(database, reason)


def _explain_disk(database: Path | None) -> IndexUnusableError | None:
    """Return the error for a disk that cannot be written; None if the disk is not the cause."""
    if database is None:
        return None
    directory = next((path for path in database.parents if path.is_dir()), database.parent)
    for path in (directory, database):
        if path.exists() and not _is_writable(path):
            why = f"{str(path)!r} is read-only, and even a search writes to it; make it writable"
            return ReadOnlyError(database, why)
    usage = shutil.disk_usage(directory)
    if usage.free < ROOM_BYTES and usage.total:  # a file system without room has no disk
        why = "the disk is full, and even a search writes to it; make room on it"
        return IndexUnusableError(database, why)
    return None


def _is_writable(path: Path) -> bool:
    """Tell whether a file or directory can be written; a sandbox may forbid what modes allow."""
    if not os.access(path, os.W_OK):
        return False
    try:
        if path.is_dir():
            tempfile.TemporaryFile(dir=path).close()
        else:
            os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        return error.errno not in {errno.EROFS, errno.EACCES, errno.EPERM}
    return True


def _ensure_schema(connection: sqlite3.Connection, database: Path | None) -> None:
    """Create the schema in a new database; raise DamageError if there is another schema."""
    if _version(connection) == VERSION:
        return
    with transaction(connection):
        # Another process may have made it while this one waited for the lock.
        version = _version(connection)
        if version not in (0, VERSION):
            raise DamageError(database, f"version {version}, not {VERSION}")
        if version == 0:
            _execute_all(connection, _SCHEMA)
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    """Return the version of a database; 0 for a new one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _execute_all(connection: sqlite3.Connection, script: str) -> None:
    """Run statements one by one: `executescript` would commit first."""
    for statement in script.strip().split(";\n"):
        connection.execute(statement)
