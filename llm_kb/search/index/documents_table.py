"""The documents of an index and their chunks: prepared from files, written in bulk."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, NamedTuple

from llm_kb.search.chunking.documents import Chunk, split_identifiers
from llm_kb.search.index.database import note_change, undone_on_error
from llm_kb.search.index.files import read_file

if TYPE_CHECKING:
    from llm_kb.search.index.database import Connection


class Known(NamedTuple):
    """What an index knows of the file of a document."""

    size: int
    mtime_ns: int
    racy: int
    hash: bytes


class Prepared(NamedTuple):
    """A file as it was read, ready to be written to the index."""

    path: str
    stat: Known | None
    """None where there is no longer a file."""
    chunks: Sequence[tuple[bytes, Chunk]] | None
    """With their hashes. None where the content is what was indexed already."""


_Row = tuple[int | None, bytes, str, str, str, int, int]
"""A chunk to be inserted: its document, its hash and its fields."""


def prepare(directory: Path, path: str, indexed: bytes | None = None) -> Prepared:
    """Read a file, and cut it into chunks unless its hash is the one that was indexed."""
    reading = read_file(directory, path)
    if reading is None:
        return Prepared(path, None, None)
    stat = Known(reading.size, reading.mtime_ns, reading.racy, reading.hash)
    if reading.hash == indexed:
        return Prepared(path, stat, None)
    # Late: its patterns take longer to compile than a search takes.
    from llm_kb.search.chunking.chunk import chunk_document  # noqa: PLC0415

    chunks = chunk_document(path, reading.text) if reading.text else []
    return Prepared(path, stat, [(chunk.hash, chunk) for chunk in chunks])


class DocumentTable:
    """The documents of one open index.

    What is new is inserted table by table at the end of a transaction: between
    other statements, SQLite would write out time and again what full-text search
    has gathered.
    """

    def __init__(self, directory: Path, connection: Connection) -> None:
        self._directory = directory
        self._connection = connection

    def read_known(self) -> dict[str, Known]:
        """Return what is known of the file of each document, by path."""
        rows = self._connection.execute("SELECT path, size, mtime_ns, racy, hash FROM documents")
        return {path: Known(*stat) for path, *stat in rows}

    def remove(self, paths: Sequence[str]) -> None:
        """Remove the documents whose files are gone."""
        if paths:
            self.store([Prepared(path, None, None) for path in paths])

    def store(self, documents: Sequence[Prepared]) -> list[bool]:
        """Write documents: chunks that are new, the new lines of moved ones, no others.

        Returns, for each whose content differs from what was indexed, whether it is new.
        """
        outcomes = self.begin(documents)
        self.finish()
        return outcomes

    def begin(self, documents: Sequence[Prepared]) -> list[bool]:
        """Begin to store documents, with all that `finish` does not do."""
        with undone_on_error(self._connection):
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes: list[bool] = []
            removed = False
            new: list[_Row] = []
            for document in documents:
                row = self._connection.execute(
                    "SELECT id, hash FROM documents WHERE path = ?", (document.path,)
                ).fetchone()
                document = self._settle(document, row)
                if document.stat is None:
                    removed |= self._remove(document.path, row)
                    continue
                id_ = self._write_stat(document.path, document.stat, row)
                if document.chunks is not None and (row is None or row[1] != document.stat.hash):
                    outcomes.append(row is None)
                    chunks = document.chunks if row is None else self._replace(document, id_)
                    new += [(id_, hash_, *chunk) for hash_, chunk in chunks]
            self._insert(new)
            if outcomes or removed:
                note_change(self._connection)
        return outcomes

    def finish(self) -> None:
        """Give what was begun to full-text search, in one statement, and commit it."""
        with self._connection.in_use, undone_on_error(self._connection):
            self._connection.execute(
                "INSERT INTO chunks_fts (rowid, heading, context, text, parts)"
                " SELECT new.id, heading || ' ' || heading_parts, path || ' ' || title, text, parts"
                " FROM temp.new CROSS JOIN chunks ON chunks.id = new.id"
                " CROSS JOIN documents ON documents.id = document ORDER BY new.id"
            )
            self._connection.execute("DELETE FROM temp.new")
            self._connection.execute("COMMIT")

    def interrupt(self) -> None:
        """Make `finish`, running in another thread, undo what was begun; nothing if none runs."""
        self._connection.interrupt()

    def _settle(self, document: Prepared, row: tuple[int, bytes] | None) -> Prepared:
        """Prepare a document again where another process has indexed another content since."""
        if document.stat is None or document.chunks is not None:
            return document
        is_indexed = row is not None and row[1] == document.stat.hash
        return document if is_indexed else prepare(self._directory, document.path)

    def _write_stat(self, path: str, stat: Known, row: tuple[int, bytes] | None) -> int | None:
        """Write what is known of a file, and return the id of its document."""
        if row is None:
            return self._connection.execute(
                "INSERT INTO documents (path, size, mtime_ns, racy, hash) VALUES (?, ?, ?, ?, ?)",
                (path, *stat),
            ).lastrowid
        self._connection.execute(
            "UPDATE documents SET size = ?, mtime_ns = ?, racy = ?, hash = ? WHERE id = ?",
            (*stat, row[0]),
        )
        return row[0]

    def _replace(self, document: Prepared, id_: int | None) -> list[tuple[bytes, Chunk]]:
        """Move the chunks that have moved and delete those that are gone; return the new ones."""
        execute = self._connection.execute
        old: dict[bytes, list[tuple[int, int]]] = {}
        for chunk_id, hash_, first_line in execute(
            "SELECT id, hash, first_line FROM chunks WHERE document = ?", (id_,)
        ):
            old.setdefault(hash_, []).append((chunk_id, first_line))
        new: list[tuple[bytes, Chunk]] = []
        for hash_, chunk in document.chunks or ():
            if not (same := old.get(hash_)):
                new.append((hash_, chunk))
                continue
            chunk_id, first_line = same.pop(0)
            if first_line != chunk.first_line:
                execute(
                    "UPDATE chunks SET first_line = ?, last_line = ? WHERE id = ?",
                    (chunk.first_line, chunk.last_line, chunk_id),
                )
        self._delete(document.path, [chunk_id for same in old.values() for chunk_id, _ in same])
        return new

    def _remove(self, path: str, row: tuple[int, bytes] | None) -> bool:
        """Remove a document and its chunks; return whether it was there."""
        if row is None:
            return False
        execute = self._connection.execute
        ids = execute("SELECT id FROM chunks WHERE document = ?", row[:1]).fetchall()
        self._delete(path, [id_ for (id_,) in ids])
        execute("DELETE FROM documents WHERE id = ?", row[:1])
        return True

    def _delete(self, path: str, ids: Iterable[int]) -> None:
        """Delete chunks; the full-text index has to be told what they held."""
        for id_ in ids:
            held = self._connection.execute(
                "SELECT title, heading, text FROM chunks WHERE id = ?", (id_,)
            ).fetchone()
            self._connection.execute(
                "INSERT INTO chunks_fts (chunks_fts, rowid, heading, context, text, parts)"
                " VALUES ('delete', ?, ?, ?, ?, ?)",
                (id_, *_indexed_fields(path, *held)),
            )
            self._connection.execute("DELETE FROM chunks WHERE id = ?", (id_,))

    def _insert(self, new: Sequence[_Row]) -> None:
        """Insert chunks, in this order, and leave a note of each for `finish`."""
        execute, executemany = self._connection.execute, self._connection.executemany
        # SQLite numbers them itself: each with the highest id so far and one.
        first = execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()[0]
        executemany(
            "INSERT INTO chunks (document, hash, title, heading, text, first_line, last_line)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            new,
        )
        executemany(
            "INSERT INTO temp.new VALUES (?, ?, ?)",
            (
                (id_, split_identifiers(heading), split_identifiers(text))
                for id_, (_, _, _, heading, text, _, _) in enumerate(new, first)
            ),
        )


def _indexed_fields(path: str, title: str, heading: str, text: str) -> tuple[str, str, str, str]:
    """Return what the full-text index holds of a chunk, column by column, as `finish` puts it."""
    return (
        f"{heading} {split_identifiers(heading)}",
        f"{path} {title}",
        text,
        split_identifiers(text),
    )


def write_batches(
    table: DocumentTable, batches: Iterable[Sequence[Prepared]]
) -> Generator[tuple[int, list[bool]], None, None]:
    """Store batches of documents; yield of each how many they are, and what `store` returns.

    What takes longest is one SQL statement, and SQLite runs it without Python's
    lock. So it is left to another thread while the next batch is read and cut
    into chunks. No thread is left when this ends or is closed. An interruption
    keeps what was begun; one more while that is finished gives it up.
    """
    finishing: _Finishing | None = None
    try:
        for documents in batches:
            if finishing:
                finishing.wait()
            outcomes = table.begin(documents)
            finishing = _Finishing(table)
            # Where no thread is to be had, `wait` does the work.
            with suppress(RuntimeError):
                finishing.start()
            yield len(documents), outcomes
        if finishing:
            finishing.wait()
    finally:
        if finishing:
            finishing.settle()


class _Finishing(Thread):
    """A thread that finishes what a table has begun; the table is its own until then.

    Whether it is done is not asked of the thread: before Python 3.13, one whose
    `join` was interrupted counts as dead while it still runs.
    """

    def __init__(self, table: DocumentTable) -> None:
        super().__init__(name="llm-kb index")
        self._table = table
        self._taken: dict[str, int] = {}
        self._is_done = False
        self._done = Lock()
        self._done.acquire()
        self._error: Exception | None = None

    def run(self) -> None:
        """Finish it, unless another thread does already."""
        if self._taken.setdefault("by", get_ident()) != get_ident():
            return
        try:
            self._table.finish()
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error
        finally:
            self._is_done = True
            self._done.release()

    def wait(self) -> None:
        """Wait until it is done, or do it if no thread has begun. Raises what it raised."""
        self._wait()
        if self._error:
            raise self._error

    def settle(self) -> None:
        """See to it that it is over, whatever it raised; an interruption only hastens that."""
        interruption: KeyboardInterrupt | None = None
        while not self._is_done:
            try:
                self._wait()
            except KeyboardInterrupt as error:
                interruption = error
                self._table.interrupt()
        if interruption:
            raise interruption

    def _wait(self) -> None:
        if not self._is_done:
            self.run()
        while not self._is_done:
            self._done.acquire()
        if self.is_alive():
            self.join()
