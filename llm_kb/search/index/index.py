"""The index of a set of documents, which is rebuilt from them as needed.

A database that is damaged or of another version is replaced, and changed files are indexed
again, so a lost index costs only time. Several processes may read and update it at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from llm_kb.search.hits import Hit
from llm_kb.search.index.database import (
    DamageError,
    DocumentsGoneError,
    connect,
    discard,
    transaction,
    translated,
)
from llm_kb.search.index.documents import (
    MAX_BYTES,
    Documents,
    File,
    LeftOut,
    ReadDocument,
    bound_files,
)
from llm_kb.search.index.documents_table import DocumentTable, Known, Prepared, prepare
from llm_kb.search.index.vector_table import VectorTable
from llm_kb.search.roles import Role, Scope

if TYPE_CHECKING:
    from sqlite3 import Connection

WEIGHTS = (2.0, 1.0, 1.0, 0.5)
"""Weights of a match in a chunk's heading, path and title, text, and parts of identifiers.
Tuned together with the features of `ranking`."""

MEMORY_BYTES = 20_000_000
"""Bytes that are indexed for a single search if no index can be written."""

SPELLINGS = 50
"""Maximum number of texts with a word's stem that are searched for its spelling."""

BATCH_CHUNKS = 20_000
"""Chunks per transaction; an interruption loses at most these."""

_ALLOWED = "SELECT id FROM chunks WHERE document IN temp.allowed"

Result = TypeVar("Result")

Progress = Callable[[int, int], None]
"""Called with the number of documents indexed so far and the number to index."""


class IndexReport(NamedTuple):
    """The result of an update: the numbers of documents and chunks, and of changes."""

    documents: int
    chunks: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    left_out: tuple[LeftOut, ...] = ()
    """The documents that no search reads."""


class WordCount(NamedTuple):
    """The number of chunks with any form of a word, and the common start of its forms."""

    frequency: int
    stem: str


NO_WORD = WordCount(0, "")


@contextmanager
def open_index(documents: Documents, *, in_memory: bool = False) -> Iterator[Index]:
    """Open the index of some documents, and close it after the block.

    The database is created, or replaced when it is damaged. It is not brought
    up to date: call `update`. Raises IndexUnusableError.
    """
    database = None if in_memory else documents.database
    try:
        connection = connect(database)
    except DamageError:
        discard(database)
        connection = connect(database)
    try:
        with translated(database):
            yield Index(documents, connection, MEMORY_BYTES if in_memory else MAX_BYTES)
    finally:
        connection.close()


def update_index(documents: Documents, *, progress: Progress | None = None) -> IndexReport:
    """Bring the index of some documents up to date with them."""
    return with_index(documents, lambda _, report: report, progress=progress)


def with_index(
    documents: Documents,
    work: Callable[[Index, IndexReport], Result],
    *,
    progress: Progress | None = None,
    max_age: float = 0.0,
    in_memory: bool = False,
) -> Result:
    """Bring the index of some documents up to date and return the result of `work` on it.

    If the index turns out to be damaged, it is rebuilt and `work` runs again. The files
    are not looked at where this process did so less than `max_age` seconds ago. An index
    `in_memory` is made for this one call, of the first `MEMORY_BYTES`. Raises
    IndexUnusableError, DocumentsGoneError being one.
    """
    database = None if in_memory else documents.database
    recent = _recent(database, max_age)
    # Listed first, so that no index is created for a topic that has been deleted.
    listed = None if database and database.exists() else _list(documents)

    def run() -> Result:
        with open_index(documents, in_memory=in_memory) as index:
            report = recent or index.check() or index.update(progress, listed)
            if database and not recent:
                _checked[database] = (time.monotonic(), report)
            return work(index, report)

    try:
        return run()
    except DamageError:
        discard(database)
    recent = None
    return run()


_checked: dict[Path, tuple[float, IndexReport]] = {}
"""The time of this process's last comparison of each index with its files, and the report."""


def _recent(database: Path | None, max_age: float) -> IndexReport | None:
    """Return the last report on an index if it is at most `max_age` seconds old."""
    checked = _checked.get(database) if database and max_age else None
    return checked[1] if checked and time.monotonic() - checked[0] < max_age else None


class _Listed(NamedTuple):
    """A list of documents, and the note on the state it depends on."""

    files: Sequence[File]
    note: str


def _list(documents: Documents) -> _Listed:
    """Return all documents, sorted. Raises DocumentsGoneError if their topic is gone."""
    # The note comes first, so that it shows changes made while listing.
    note = documents.watch.note() if documents.watch and documents.database else ""
    try:
        return _Listed(sorted(documents.list()), note)
    except OSError as error:
        raise DocumentsGoneError(documents.database, documents.name) from error


class Index:
    """An open index; made by `open_index`."""

    def __init__(self, documents: Documents, connection: Connection, most: int) -> None:
        self.documents = documents
        self.vectors = VectorTable(connection)
        self._connection = connection
        self._most = most
        self._is_narrow = False
        self._count = -1

    # Keeping up with the files

    def check(self) -> IndexReport | None:
        """Return the report of the last update if no document can have changed since."""
        row = self._connection.execute("SELECT note, documents, beyond FROM listing").fetchone()
        watch = self.documents.watch
        if row is None or watch is None:
            return None
        note, count, beyond = row
        files = self._connection.execute(
            "SELECT path, size, mtime_ns FROM documents WHERE NOT racy"
        ).fetchall()
        if len(files) != count or not watch.holds(note, files):
            return None
        left_out = DocumentTable(self._connection).read_left_out()
        left_out += [LeftOut("", reason) for reason in beyond.splitlines()]
        return IndexReport(count, self.count_chunks(), left_out=tuple(left_out))

    def update(
        self, progress: Progress | None = None, listed: _Listed | None = None
    ) -> IndexReport:
        """Index the documents that have changed since the last update, and read no others.

        A file is unchanged if its size and modification time are. If it was
        modified too shortly before it was read for these to be reliable, its
        content is compared. `listed` are the documents, if they were listed already.
        """
        every, note = listed or _list(self.documents)
        files, beyond = bound_files(every, self._most)
        table = DocumentTable(self._connection)
        known = table.read_known()
        gone = known.keys() - {file.path for file in files}
        changed = [file for file in files if not (of := known.get(file.path)) or not of.is_of(file)]
        if gone:
            table.remove(sorted(gone))
        outcomes: list[bool] = []
        done = 0
        if changed:
            for batch in _prepare(changed, known, self.documents.read):
                outcomes += table.store(batch, self.documents.read)
                done += len(batch)
                if progress:
                    progress(done, len(changed))
        self._write_note(note, len(files), [left.reason for left in beyond])
        self._count = -1
        chunks = self.count_chunks()
        left_out = (*table.read_left_out(), *beyond)
        return IndexReport(
            documents=len(files),
            chunks=chunks,
            added=outcomes.count(True),
            changed=outcomes.count(False),
            removed=len(gone),
            left_out=left_out,
        )

    def _write_note(self, note: str, count: int, beyond: Sequence[str]) -> None:
        """Record the present state of the documents for `check`.

        No note is written if another process may have removed documents this one listed.
        """
        execute = self._connection.execute
        if not note and execute("SELECT 1 FROM listing").fetchone() is None:
            return
        with transaction(self._connection):
            execute("DELETE FROM listing")
            if note:
                execute(
                    "INSERT INTO listing SELECT ?, ?, ? WHERE ? = (SELECT count(*) FROM documents)",
                    (note, count, "\n".join(beyond), count),
                )

    # Answering

    def count_chunks(self) -> int:
        """Return how many chunks there are."""
        if self._count < 0:
            # SQLite reads all chunks to count them, so only once per search.
            (self._count,) = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        return self._count

    def count_words(self, words: Iterable[str]) -> dict[str, WordCount]:
        """Return for each word the number of chunks with any of its forms, and its stem."""
        words = list(words)
        counts = {word: WordCount(0, word) for word in words}
        # The words are only there to be stemmed: FTS5 keeps them in memory until a commit.
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO temp.words (rowid, word) VALUES (?, ?)", enumerate(words)
        )
        rows = self._connection.execute(
            "SELECT stems.doc, term, max(coalesce(frequencies.doc, 0)) FROM temp.stems"
            " LEFT JOIN temp.frequencies USING (term) GROUP BY stems.doc"
        ).fetchall()
        self._connection.execute("ROLLBACK")
        for row, term, count in rows:
            counts[words[row]] = WordCount(count, _find_common_start(words[row], term))
        return counts

    def has_spelling(self, word: str) -> bool:
        """Tell whether a word occurs as it is spelled, in some of the chunks with its stem."""
        rows = self._connection.execute(
            "SELECT text FROM chunks WHERE id IN"
            " (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?)",
            (f'"{word}"', SPELLINGS),
        )
        spelled = re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE)
        return any(spelled.search(text) for (text,) in rows)

    def narrow(self, scope: Scope) -> bool:
        """Restrict further searches to the documents of a scope; tell whether there are any."""
        rows = self._connection.execute("SELECT id, path, role, given_role FROM documents")
        allowed = [
            (id_,)
            for id_, path, role, given in rows.fetchall()
            if scope.covers(self.documents.name, path, Role(given or role))
        ]
        self._connection.executemany("INSERT INTO temp.allowed VALUES (?)", allowed)
        self._is_narrow = True
        return bool(allowed)

    def match(self, expression: str, limit: int, wanted: Sequence[int] = ()) -> dict[int, float]:
        """Return the best chunks that match an FTS5 expression, and their scores.

        The `wanted` chunks that match come first, in addition to `limit` others.
        """
        weights = ", ".join(map(str, WEIGHTS))
        first = f"rowid IN ({', '.join('?' * len(wanted))}) DESC," if wanted else ""
        # The plus sign keeps SQLite from one full-text query per chunk.
        narrow = f" AND +rowid IN ({_ALLOWED})" if self._is_narrow else ""
        # Ordered by the function and not by the `rank` column, so that SQLite keeps
        # the best few and does not sort all matches.
        rows = self._connection.execute(
            f"SELECT rowid, bm25(chunks_fts, {weights}) AS score"  # noqa: S608 - our numbers
            f" FROM chunks_fts WHERE chunks_fts MATCH ?{narrow}"
            f" ORDER BY {first} score, rowid LIMIT ?",
            (expression, *wanted, limit + len(wanted)),
        ).fetchall()
        return {id_: -score for id_, score in rows}

    def find_with_role(self, ids: Iterable[int], role: Role) -> frozenset[int]:
        """Return those of some chunks whose documents have a role."""
        wanted = ", ".join(map(str, ids))
        rows = self._connection.execute(
            "SELECT chunks.id FROM chunks JOIN documents ON documents.id = document"  # noqa: S608 - our numbers
            f" WHERE chunks.id IN ({wanted}) AND coalesce(nullif(given_role, ''), role) = ?",
            (role.value,),
        ).fetchall()
        return frozenset(id_ for (id_,) in rows)

    def find_allowed(self) -> frozenset[int] | None:
        """Return the ids of the chunks that are searched; None if all are."""
        if not self._is_narrow:
            return None
        return frozenset(id_ for (id_,) in self._connection.execute(_ALLOWED))

    def read_hits(
        self, scores: Mapping[int, float], cosines: Mapping[int, float] | None = None
    ) -> list[Hit]:
        """Return the chunks with these ids as hits; chunks deleted meanwhile are missing."""
        cosines = cosines or {}
        ids = dict.fromkeys([*scores, *cosines])
        rows = self._connection.execute(
            "SELECT chunks.id, given_role, role, path, first_line, last_line, title, heading,"  # noqa: S608 - our numbers
            " text, chunks.hash FROM chunks JOIN documents ON documents.id = document"
            f" WHERE chunks.id IN ({', '.join(map(str, ids))})"
        )
        found = {}
        for id_, given, role, path, first_line, last_line, title, heading, text, digest in rows:
            found[id_] = Hit(
                topic=self.documents.name,
                path=path,
                first_line=first_line,
                last_line=last_line,
                title=title,
                heading=heading,
                text=text,
                hash=digest,
                bm25=scores.get(id_, 0.0),
                cosine=cosines.get(id_),
                role=Role(given or role),
            )
        return [found[id_] for id_ in ids if id_ in found]


def _prepare(
    files: Sequence[File], known: Mapping[str, Known], read: ReadDocument
) -> Iterator[list[Prepared]]:
    """Yield prepared files in batches of about `BATCH_CHUNKS` chunks."""
    batch: list[Prepared] = []
    chunks = 0
    for file in files:
        document = prepare(file, read, known.get(file.path))
        batch.append(document)
        chunks += len(document.chunks or ()) + 1
        if chunks >= BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _find_common_start(word: str, stem: str) -> str:
    """Return the common start of a word's forms; the stem itself (`queri`) need not be one."""
    length = next(
        (at for at, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b),
        min(len(word), len(stem)),
    )
    return word[:length] if length >= SHORTEST_STEM else word


SHORTEST_STEM = 3
"""Shortest common start, in characters; a word with a shorter one is matched as it is."""
