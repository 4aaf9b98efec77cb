"""Bringing a topic's part of an index up to date with its documents."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple

from llm_kb.errors import UnreadableError
from llm_kb.search.chunks import Chunk, chunk_safely
from llm_kb.search.index.database import DocumentsGoneError, transaction
from llm_kb.search.index.documents import (
    Documents,
    File,
    bound_files,
    tick,
)
from llm_kb.search.question import space, split_identifiers
from llm_kb.search.roles import ONE_LINE, explain_unsearched, find_role
from llm_kb.texts.decoding import MOST_BYTES, TOO_LARGE, open_text
from llm_kb.texts.folding import compose, fold_composed
from llm_kb.texts.markup import drop_unsaid

UNUSED_DAYS = 30
"""Days after which an index, or a topic in one, that no search has used is deleted."""

BATCH_CHUNKS = 20_000
"""Chunks per transaction; an interruption loses at most these."""

_DAY = 86_400

_UNCERTAIN = -1
"""The recorded time of a file that could change, or become readable, with its time unchanged."""

Progress = Callable[[int, int], None]
"""Called with the number of documents indexed so far and the number to index."""

_Known = tuple[int, int, int, str, bytes]
"""The recorded state of a file: its size, times and owner's wishes, and the hash of its content."""


class _Prepared(NamedTuple):
    """A file as it was read, ready to be written to the index."""

    file: File
    mtime_ns: int
    hash: bytes
    """Of its content and its owner's wishes."""
    problem: str
    """Why it is not indexed; empty if it is."""
    role: str = ""
    chunks: Sequence[Chunk] | None = None
    """None if this content is indexed already."""


def update_topic(
    connection: Connection, topic: Documents, most: int, progress: Progress | None = None
) -> list[str]:
    """Index the documents of a topic that have changed; return notices on those not searched.

    A file is unchanged if its size and times are; else its content is compared, also if it was
    changed too shortly before it was read for the times to be reliable. At most `most` bytes are
    indexed. Raises DocumentsGoneError if the directory of the topic is missing.
    """
    id_, note, beyond = _open_topic(connection, topic)
    absent: Sequence[str] = ()
    known = _read_known(connection, id_)
    if not (note and topic.holds(note, ((path, *state[:3]) for path, state in known.items()))):
        # The note comes first, so that it shows changes made while listing.
        note = topic.note()
        try:
            files, left_out = bound_files(sorted(topic.list()), most)
        except OSError as error:
            raise DocumentsGoneError(topic.name) from error
        _write_changes(connection, id_, topic, files, known, progress=progress)
        beyond, absent = "\n".join(left_out), topic.absent
        with transaction(connection):
            connection.execute(
                "UPDATE topics SET note = ?, beyond = ? WHERE id = ?", (note, beyond, id_)
            )
    problems = connection.execute(
        "SELECT path, problem FROM documents WHERE topic = ? AND problem != '' ORDER BY path",
        (id_,),
    )
    return [
        *(f"not searched: {topic.name}/{path} ({problem})" for path, problem in problems),
        *(f"not searched: {topic.name}: {each}" for each in (*beyond.splitlines(), *absent)),
    ]


def remove_topic(connection: Connection, id_: int) -> None:
    """Delete a topic, its documents and their chunks."""
    _remove(connection, id_, list(_read_known(connection, id_)))
    with transaction(connection):
        connection.execute("DELETE FROM topics WHERE id = ?", (id_,))


def _open_topic(connection: Connection, topic: Documents) -> tuple[int, str, str]:
    """Return the id of a topic, made if needed and marked as used, its note and what is beyond."""
    today = int(time.time() // _DAY)
    key = (topic.name, topic.root, today)
    query = "SELECT id, note, beyond FROM topics WHERE name = ? AND root = ? AND used = ?"
    row = connection.execute(query, key).fetchone()
    if row is None:
        with transaction(connection):
            connection.execute(
                "INSERT INTO topics (name, root, used) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET used = excluded.used",
                key,
            )
        _remove_unused(connection, today)
        row = connection.execute(query, key).fetchone()
    id_, note, beyond = row
    return id_, note, beyond


def _remove_unused(connection: Connection, today: int) -> None:
    """Delete topics not used today whose directory is missing, or which were not used for long."""
    rows = connection.execute("SELECT id, root, used FROM topics WHERE used < ?", (today,))
    for id_, root, used in rows.fetchall():
        if used < today - UNUSED_DAYS or (root and not Path(root).exists()):
            remove_topic(connection, id_)


def _read_known(connection: Connection, topic: int) -> dict[str, _Known]:
    """Return the recorded state of each document, by its path."""
    query = "SELECT path, size, mtime_ns, ctime_ns, wishes, hash FROM documents WHERE topic = ?"
    return {path: tuple(rest) for path, *rest in connection.execute(query, (topic,))}


def _write_changes(  # noqa: PLR0913 - each is another thing
    connection: Connection,
    id_: int,
    topic: Documents,
    files: Sequence[File],
    known: Mapping[str, _Known],
    *,
    progress: Progress | None,
) -> None:
    """Delete the documents that are gone, and write those that are new or have changed."""
    gone = known.keys() - {file.path for file in files}
    changed = [file for file in files if known.get(file.path, ())[:4] != file.stamp()]
    _remove(connection, id_, sorted(gone))
    for batch in _prepare_all(changed, known, topic, progress):
        _store(connection, id_, topic, batch)


# Reading


def _prepare_all(
    files: Sequence[File], known: Mapping[str, _Known], topic: Documents, progress: Progress | None
) -> Iterator[list[_Prepared]]:
    """Yield prepared files in batches of about `BATCH_CHUNKS` chunks."""
    batch: list[_Prepared] = []
    chunks = 0
    for done, file in enumerate(files, start=1):
        document = _prepare(file, topic, known[file.path][4] if file.path in known else b"")
        batch.append(document)
        chunks += len(document.chunks or ()) + 1
        if chunks >= BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
        if progress:
            progress(done, len(files))
    if batch:
        yield batch


def _prepare(file: File, topic: Documents, indexed: bytes = b"") -> _Prepared:
    """Return a file with its chunks, or without them if it is the one with the `indexed` hash."""
    size, mtime_ns, ctime_ns, wishes = file.stamp()
    problem, data = "", b""
    if size > MOST_BYTES:
        problem = TOO_LARGE
    else:
        now = time.time_ns()
        if any(now - each < tick(each) for each in (mtime_ns, ctime_ns)):
            mtime_ns = _UNCERTAIN
        try:
            data = topic.read(file.path)
        except UnreadableError as error:
            problem, mtime_ns = error.reason, _UNCERTAIN
    digest = hashlib.blake2b(data, digest_size=16, key=wishes.encode()).digest()
    text = open_text(data).text
    reason = explain_unsearched(file.path, text)
    problem = problem or (reason if reason == ONE_LINE else "")
    document = _Prepared(file, mtime_ns, digest, problem)
    if digest == indexed:
        return document
    role = file.role or find_role(f"{topic.place}{file.path}", text).value
    chunks = chunk_safely(file.path, text) if text and not reason else []
    return document._replace(role=role, chunks=chunks)


# Writing


def _store(
    connection: Connection, id_: int, topic: Documents, documents: Sequence[_Prepared]
) -> None:
    """Write documents and their chunks.

    Chunks are inserted table by table: between other statements, SQLite would write out
    time and again what full-text search has gathered.
    """
    new: list[tuple[str, int | None, Chunk]] = []
    with transaction(connection):
        for document in documents:
            path = document.file.path
            row = connection.execute(
                "SELECT hash, id, role FROM documents WHERE topic = ? AND path = ?",
                (id_, path),
            ).fetchone()
            indexed, known, role = row or (b"", None, "")
            if indexed != document.hash:
                if document.chunks is None:
                    # Another process has indexed another version since the comparison.
                    document = _prepare(document.file, topic)
                role = document.role
                _delete_chunks(connection, path, known)
            size, _, ctime_ns, wishes = document.file.stamp()
            stamp = (size, document.mtime_ns, ctime_ns, wishes, document.hash, document.problem)
            number = connection.execute(
                "REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (known, id_, path, *stamp, role),
            ).lastrowid
            if indexed != document.hash:
                new += [(path, number, chunk) for chunk in document.chunks or ()]
        _insert(connection, new)


def _remove(connection: Connection, topic: int, paths: Sequence[str]) -> None:
    """Delete documents with their chunks, and the note on what a topic has."""
    if not paths:
        return
    with transaction(connection):
        connection.execute("UPDATE topics SET note = '' WHERE id = ?", (topic,))
        for path in paths:
            row = connection.execute(
                "SELECT id FROM documents WHERE topic = ? AND path = ?", (topic, path)
            ).fetchone()
            if row:
                _delete_chunks(connection, path, row[0])
                connection.execute("DELETE FROM documents WHERE id = ?", row)


def _delete_chunks(connection: Connection, path: str, document: int | None) -> None:
    """Delete the chunks of a document; full-text search needs their content for that."""
    chunks = connection.execute(
        "SELECT id, title, heading, text FROM chunks WHERE document = ?", (document,)
    ).fetchall()
    connection.executemany(
        "INSERT INTO chunks_fts (chunks_fts, rowid, heading, context, text, parts)"
        " VALUES ('delete', ?, ?, ?, ?, ?)",
        ((id_, *list_columns(path, *held)) for id_, *held in chunks),
    )
    connection.execute("DELETE FROM chunks WHERE document = ?", (document,))


def _insert(connection: Connection, new: Sequence[tuple[str, int | None, Chunk]]) -> None:
    """Insert chunks, in this order, into their table and into full-text search."""
    # SQLite assigns the ids: each is the highest so far plus one.
    (first,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()
    connection.executemany(
        "INSERT INTO chunks (document, hash, title, heading, text, first_line, last_line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((document, chunk.hash, *chunk) for _, document, chunk in new),
    )
    connection.executemany(
        "INSERT INTO chunks_fts (rowid, heading, context, text, parts) VALUES (?, ?, ?, ?, ?)",
        (
            (id_, *list_columns(path, chunk.title, chunk.heading, chunk.text))
            for id_, (path, _, chunk) in enumerate(new, first)
        ),
    )


def list_columns(path: str, title: str, heading: str, text: str) -> tuple[str, ...]:
    """Return the columns of a chunk in the full-text index, in its letters."""
    heading, text = compose(heading), compose(drop_unsaid(text))
    columns = (
        f"{heading} {split_identifiers(heading)}",
        compose(f"{path} {title}"),
        text,
        split_identifiers(text),
    )
    return tuple(space(fold_composed(column)) for column in columns)
