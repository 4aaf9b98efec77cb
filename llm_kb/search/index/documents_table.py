"""The documents of an index and their chunks: prepared from files, written in bulk."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from llm_kb.errors import UnreadableError
from llm_kb.search.chunking.notebook import read_notebook
from llm_kb.search.chunking.words import decode_document, find_more_words
from llm_kb.search.index.database import transaction
from llm_kb.search.index.documents import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    File,
    LeftOut,
    ReadDocument,
    tick,
)
from llm_kb.search.roles import find_role, is_machine_made
from llm_kb.subjects.editions import find_translations

if TYPE_CHECKING:
    from sqlite3 import Connection

    from llm_kb.search.chunking.chunk import Chunk


class Known(NamedTuple):
    """The recorded state of a document's file."""

    size: int
    mtime_ns: int
    racy: int
    """Whether the file could change, or become readable, while size and time stay the same."""
    hash: bytes
    problem: str = ""
    """The reason why it is not indexed; empty if it is."""
    given_role: str = ""
    """The role given by its owner."""
    made: int = 0
    """0 if not machine-made, 1 if left out as machine-made, 2 if machine-made but indexed."""

    def is_of(self, file: File) -> bool:
        """Tell whether a file is certainly unchanged since it was indexed as its owner wants it."""
        known = (self.size, self.mtime_ns, self.racy, self.given_role)
        return known == (*file.stamp(), 0, file.role) and self.suits(file)

    def suits(self, file: File) -> bool:
        """Tell whether a machine-made file was indexed, or left out, as its owner wants it now."""
        return self.made in (0, 2 if file.generated else 1)


_Document = tuple[int, bytes, int]
"""The id of a document that is indexed, its hash and `made`."""


class Prepared(NamedTuple):
    """A file as it was read, ready to be written to the index."""

    file: File
    known: Known
    chunks: Sequence[tuple[bytes, Chunk]] | None
    """The chunks with their hashes; None if this content is indexed already."""
    role: str | None = None
    """The role found by path and content; None if this content is indexed already."""

    def is_in(self, row: _Document | None) -> bool:
        """Tell whether a row of the index has exactly this content, and is wanted."""
        return row is not None and row[1:] == (self.known.hash, self.known.made)


_Row = tuple[str, int | None, bytes, str, str, str, int, int]
"""A chunk to be inserted: the path and id of its document, its hash and its fields."""


def prepare(
    file: File, read: ReadDocument, indexed: Known | None = None, place: str = ""
) -> Prepared:
    """Return a file with its chunks, or without them if its content is indexed already.

    Its role is found by its path below the workspace, where `place` is that of its topic.
    """
    size, mtime_ns = file.stamp()
    problem, racy, data = "", False, b""
    if size > MAX_FILE_BYTES:
        problem = TOO_LARGE
    else:
        racy = time.time_ns() - mtime_ns < tick(mtime_ns)
        try:
            data = read(file.path)
        except UnreadableError as error:
            problem, racy = error.reason, True
    digest = hashlib.blake2b(data, digest_size=16).digest()
    known = Known(size, mtime_ns, racy, digest, problem, file.role)
    if indexed and indexed.hash == digest and indexed.suits(file):
        return Prepared(file, known._replace(made=indexed.made), None)
    text = read_text(file.path, data) or ""
    role = find_role(f"{place}{file.path}", text).value
    if is_machine_made(file.path, text):
        known = known._replace(made=2 if file.generated else 1)
        text = text if file.generated else ""
    # Imported here, since its patterns take longer to compile than a search takes.
    from llm_kb.search.chunking.chunk import chunk_safely  # noqa: PLC0415

    chunks = chunk_safely(file.path, text) if text else []
    return Prepared(file, known, [(chunk.hash, chunk) for chunk in chunks], role)


def read_text(path: str, data: bytes) -> str | None:
    """Return the text of a file to be searched; a notebook is read as Markdown."""
    text = read_notebook(data) if path.lower().endswith(".ipynb") else None
    return decode_document(data if text is None else text.encode())


class DocumentTable:
    """The documents of one topic in an open index."""

    def __init__(self, connection: Connection, topic: int, place: str = "") -> None:
        self._connection = connection
        self._topic = topic
        self._place = place

    def read_known(self) -> dict[str, Known]:
        """Return the recorded state of each document's file, keyed by path."""
        rows = self._connection.execute(
            "SELECT path, size, mtime_ns, racy, hash, problem, given_role, made FROM documents"
            " WHERE topic = ?",
            (self._topic,),
        )
        return {path: Known(*stat) for path, *stat in rows}

    def read_left_out(self) -> list[LeftOut]:
        """Return the documents that are not indexed, sorted by path."""
        rows = self._connection.execute(
            "SELECT path, problem FROM documents WHERE topic = ? AND problem != '' ORDER BY path",
            (self._topic,),
        )
        return [LeftOut(*row) for row in rows]

    def remove(self, paths: Sequence[str]) -> None:
        """Delete documents with their chunks."""
        execute = self._connection.execute
        with transaction(self._connection):
            for path in paths:
                row = execute(
                    "SELECT id FROM documents WHERE topic = ? AND path = ?", (self._topic, path)
                ).fetchone()
                if row:
                    self._delete_chunks(path, row[0])
                    execute("DELETE FROM documents WHERE id = ?", row)

    def store(self, documents: Sequence[Prepared], read: ReadDocument) -> list[bool]:
        """Write documents; return, for each whose content was not indexed yet, whether it is new.

        Chunks are inserted table by table: between other statements, SQLite would write out
        time and again what full-text search has gathered.
        """
        outcomes: list[bool] = []
        new: list[_Row] = []
        with transaction(self._connection):
            for document in documents:
                path = document.file.path
                row = self._connection.execute(
                    "SELECT id, hash, made FROM documents WHERE topic = ? AND path = ?",
                    (self._topic, path),
                ).fetchone()
                if document.chunks is None and not document.is_in(row):
                    # Another process has indexed another version since the comparison.
                    document = prepare(document.file, read, place=self._place)
                id_ = self._write_known(document, row)
                if document.chunks is not None and not document.is_in(row):
                    outcomes.append(row is None)
                    if row is not None:
                        self._delete_chunks(path, row[0])
                    new += [(path, id_, hash_, *chunk) for hash_, chunk in document.chunks]
            self._insert(new)
        return outcomes

    def _write_known(self, document: Prepared, row: _Document | None) -> int | None:
        """Write the state of a file, and return the id of its document."""
        known, role = document.known, document.role
        if row is None:
            return self._connection.execute(
                "INSERT INTO documents"
                " (topic, path, size, mtime_ns, racy, hash, problem, given_role, made, role)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self._topic, document.file.path, *known, role),
            ).lastrowid
        self._connection.execute(
            "UPDATE documents SET size = ?, mtime_ns = ?, racy = ?, hash = ?, problem = ?,"
            " given_role = ?, made = ?, role = coalesce(?, role) WHERE id = ?",
            (*known, role, row[0]),
        )
        return row[0]

    def write_languages(self) -> None:
        """Record the language of every translated page, after the list of documents changed."""
        execute = self._connection.execute
        paths = [f"{self._place}{path}" for path in self.read_known()]
        found = find_translations(paths)
        with transaction(self._connection):
            execute("UPDATE documents SET language = '' WHERE topic = ?", (self._topic,))
            for directory in found:
                execute(
                    "UPDATE documents SET language = ? WHERE topic = ?"
                    " AND substr(? || path, 1, ?) = ?",
                    (
                        directory.split("/")[-2].lower(),
                        *(self._topic, self._place, len(directory), directory),
                    ),
                )

    def _delete_chunks(self, path: str, document: int) -> None:
        """Delete the chunks of a document; full-text search needs their content for that."""
        chunks = self._connection.execute(
            "SELECT id, title, heading, text FROM chunks WHERE document = ?", (document,)
        ).fetchall()
        self._connection.executemany(
            "INSERT INTO chunks_fts (chunks_fts, rowid, heading, context, text, parts)"
            " VALUES ('delete', ?, ?, ?, ?, ?)",
            ((id_, *_indexed_fields(path, *held)) for id_, *held in chunks),
        )
        self._connection.execute("DELETE FROM chunks WHERE document = ?", (document,))

    def _insert(self, new: Sequence[_Row]) -> None:
        """Insert chunks, in this order, into their table and into full-text search."""
        # SQLite assigns the ids: each is the highest so far plus one.
        first = self._connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()[
            0
        ]
        self._connection.executemany(
            "INSERT INTO chunks (document, hash, title, heading, text, first_line, last_line)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row[1:] for row in new),
        )
        self._connection.executemany(
            "INSERT INTO chunks_fts (rowid, heading, context, text, parts) VALUES (?, ?, ?, ?, ?)",
            (
                (id_, *_indexed_fields(path, title, heading, text))
                for id_, (path, _, _, title, heading, text, _, _) in enumerate(new, first)
            ),
        )


def _indexed_fields(path: str, title: str, heading: str, text: str) -> tuple[str, str, str, str]:
    """Return the columns of a chunk in the full-text index."""
    return (
        f"{heading} {find_more_words(heading)}",
        f"{path} {title}",
        text,
        find_more_words(text),
    )
