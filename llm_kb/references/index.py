"""The index of one topic: rebuilt from the files whenever it is not what they say.

The files are the truth. Whatever is wrong with the database (another version,
damage, files that have changed since) is put right by `Index.update`; only time
is lost with it. Several processes may read and update an index at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from llm_kb.references.documents import Chunk, split_identifiers
from llm_kb.references.index_database import DamageError, connect, discard, transaction, translated
from llm_kb.references.index_files import File, read_file, walk_files

if TYPE_CHECKING:
    from sqlite3 import Connection

WEIGHTS = (2.0, 1.0, 1.0, 0.5)
"""What a match counts in a chunk's heading, its path and title, its text, and the
parts of its identifiers. Tuned together with the reranking."""

BATCH_CHUNKS = 5000
"""A transaction ends after this many chunks: what an interruption can cost."""

Result = TypeVar("Result")

Progress = Callable[[int, int], None]
"""Called with the number of documents indexed so far and the number to index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What an update found and did: how many documents, and how many chunks in all."""

    documents: int
    chunks: int
    added: int = 0
    changed: int = 0
    removed: int = 0


class StoredChunk(NamedTuple):
    """A chunk as indexed, with the path of its document."""

    path: str
    first_line: int
    last_line: int
    title: str
    heading: str
    text: str


def index_path(directory: Path) -> Path:
    """Return where the index of a topic's directory is kept: beside it, out of its way."""
    return directory.parent / ".index" / f"{directory.name}.sqlite3"


@contextmanager
def open_index(directory: Path, database: Path | None = None) -> Iterator[Index]:
    """Open the index of a topic's directory, and close it after the block.

    The database is created, or replaced when it is damaged. It is not brought
    up to date: call `update`. Raises IndexUnusableError.
    """
    database = database or index_path(directory)
    try:
        connection = connect(database)
    except DamageError:
        discard(database)
        connection = connect(database)
    index = Index(directory, database, connection)
    try:
        yield index
    finally:
        index.close()


def update_index(
    directory: Path, database: Path | None = None, *, progress: Progress | None = None
) -> IndexReport:
    """Bring the index of a topic's directory up to date with its files."""
    with open_index(directory, database) as index:
        return index.update(progress)


def with_index(directory: Path, work: Callable[[Index, IndexReport], Result]) -> Result:
    """Bring the index of a topic's directory up to date and return what `work` makes of it.

    Damage that only shows then has the index rebuilt and `work` done again.
    """
    try:
        with open_index(directory) as index:
            return work(index, index.update())
    except DamageError:
        discard_index(directory)
    with open_index(directory) as index:
        return work(index, index.update())


def discard_index(directory: Path) -> None:
    """Delete the index of a topic's directory, as when the topic is deleted."""
    discard(index_path(directory))


class Index:
    """An open index; made by `open_index`."""

    def __init__(self, directory: Path, database: Path, connection: Connection) -> None:
        self.directory = directory
        self.database = database
        self._connection = connection

    def close(self) -> None:
        """Close the database; the index cannot be used after that."""
        self._connection.close()

    # Keeping up with the files

    def update(self, progress: Progress | None = None) -> IndexReport:
        """Index what has changed since the last update, reading nothing else.

        A file is unchanged when its size and modification time are; where it was
        modified so shortly before it was read that these cannot tell, its
        content is compared.
        """
        try:
            return self._update(progress)
        except DamageError:
            self._connection.close()
            discard(self.database)
            self._connection = connect(self.database)
            return self._update(progress)

    def _update(self, progress: Progress | None) -> IndexReport:
        with translated(self.database):
            known = {
                path: stat
                for path, *stat in self._connection.execute(
                    "SELECT path, size, mtime_ns, racy FROM documents"
                )
            }
            paths = known.keys()
            files = list(walk_files(self.directory))
            gone = paths - {file.path for file in files}
            changed = [
                file for file in files if known.get(file.path) != [file.size, file.mtime_ns, 0]
            ]
            self._remove(sorted(gone))
            counts = self._store(changed, progress)
            chunks = self._connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        return IndexReport(
            documents=len(files),
            chunks=chunks,
            added=counts.count(True),
            changed=counts.count(False),
            removed=len(gone),
        )

    def _remove(self, paths: Sequence[str]) -> None:
        """Remove documents whose files are gone."""
        if paths:
            with transaction(self._connection):
                for path in paths:
                    self._remove_document(path)

    def _store(self, files: Sequence[File], progress: Progress | None) -> list[bool]:
        """Index files, some thousand chunks a transaction.

        Returns, for each whose content differs from what was indexed, whether it is new.
        """
        outcomes: list[bool] = []
        done = 0
        while done < len(files):
            with transaction(self._connection):
                written = 0
                while done < len(files) and written < BATCH_CHUNKS:
                    outcome, chunks = self._store_document(files[done].path)
                    if outcome is not None:
                        outcomes.append(outcome)
                    written += chunks + 1
                    done += 1
            if progress:
                progress(done, len(files))
        return outcomes

    def _store_document(self, path: str) -> tuple[bool | None, int]:
        """Index one file; whether it is new (None: same content), and its chunks."""
        reading = read_file(self.directory, path)
        if reading is None:
            self._remove_document(path)
            return None, 0
        execute = self._connection.execute
        row = execute("SELECT id, hash FROM documents WHERE path = ?", (path,)).fetchone()
        stat = (reading.size, reading.mtime_ns, reading.racy, reading.hash)
        if row is None:
            document = execute(
                "INSERT INTO documents (path, size, mtime_ns, racy, hash) VALUES (?, ?, ?, ?, ?)",
                (path, *stat),
            ).lastrowid
        else:
            document, known_hash = row
            execute(
                "UPDATE documents SET size = ?, mtime_ns = ?, racy = ?, hash = ? WHERE id = ?",
                (*stat, document),
            )
            if known_hash == reading.hash:
                return None, 0
        # Late: its patterns take longer to compile than a search takes.
        from llm_kb.references.chunking import chunk_document  # noqa: PLC0415

        chunks = chunk_document(path, reading.text) if reading.text else []
        self._replace_chunks(document, path, chunks)
        return row is None, len(chunks)

    def _replace_chunks(self, document: int | None, path: str, chunks: Sequence[Chunk]) -> None:
        """Write the chunks that are new, move those that have moved, delete the rest."""
        execute, executemany = self._connection.execute, self._connection.executemany
        old: dict[bytes, list[tuple[int, int]]] = {}
        for id_, hash_, first_line in execute(
            "SELECT id, hash, first_line FROM chunks WHERE document = ?", (document,)
        ):
            old.setdefault(hash_, []).append((id_, first_line))
        new: list[tuple[bytes, Chunk]] = []
        for chunk in chunks:
            hash_ = chunk.hash
            if same := old.get(hash_):
                id_, first_line = same.pop(0)
                if first_line != chunk.first_line:
                    execute(
                        "UPDATE chunks SET first_line = ?, last_line = ? WHERE id = ?",
                        (chunk.first_line, chunk.last_line, id_),
                    )
            else:
                new.append((hash_, chunk))
        self._delete_chunks(path, [id_ for same in old.values() for id_, _ in same])
        if not new:
            return
        self._note_change()
        first = execute("SELECT coalesce(max(id), 0) + 1 FROM chunks").fetchone()[0]
        executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    id_,
                    document,
                    chunk.first_line,
                    chunk.last_line,
                    hash_,
                    chunk.title,
                    chunk.heading,
                    chunk.text,
                )
                for id_, (hash_, chunk) in enumerate(new, first)
            ),
        )
        executemany(
            "INSERT INTO chunks_fts (rowid, heading, context, text, parts) VALUES (?, ?, ?, ?, ?)",
            (
                (id_, *_indexed_fields(path, chunk.title, chunk.heading, chunk.text))
                for id_, (_, chunk) in enumerate(new, first)
            ),
        )

    def _remove_document(self, path: str) -> None:
        """Remove a document and its chunks, if it is there."""
        execute = self._connection.execute
        row = execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
        if row:
            ids = execute("SELECT id FROM chunks WHERE document = ?", row).fetchall()
            self._delete_chunks(path, [id_ for (id_,) in ids])
            execute("DELETE FROM documents WHERE id = ?", row)

    def _delete_chunks(self, path: str, ids: Iterable[int]) -> None:
        """Delete chunks; the full-text index has to be told what they held."""
        self._note_change()
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

    def _note_change(self) -> None:
        """Make what was derived from the chunks and vectors out of date."""
        self._connection.execute("UPDATE state SET changes = changes + 1")

    # Vectors

    def state(self) -> tuple[bytes, int]:
        """Return what identifies the chunks and vectors there are now."""
        with translated(self.database):
            id_, changes = self._connection.execute("SELECT id, changes FROM state").fetchone()
        return id_, changes

    def chunks_without_vector(self, model: str) -> list[int]:
        """Return the ids of chunks a model has yet to embed; of equal ones, one."""
        with translated(self.database):
            rows = self._connection.execute(
                "SELECT min(id) FROM chunks WHERE hash NOT IN"
                " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1",
                (model,),
            ).fetchall()
        return [id_ for (id_,) in rows]

    def read_embedding_texts(self, ids: Sequence[int]) -> dict[bytes, str]:
        """Return, by hash, what is embedded of chunks: title and text."""
        texts = {}
        with translated(self.database):
            for id_ in ids:
                row = self._connection.execute(
                    "SELECT hash, title, text FROM chunks WHERE id = ?", (id_,)
                ).fetchone()
                if row:
                    texts[row[0]] = f"{row[1]}\n\n{row[2]}"
        return texts

    def vector_size(self, model: str) -> int | None:
        """Return how many bytes a vector of a model takes; None when there is none."""
        with translated(self.database):
            row = self._connection.execute(
                "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1",
                (model,),
            ).fetchone()
        return row[0] if row else None

    def store_vectors(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors by the hash of their chunk; an empty one says it has none."""
        with translated(self.database), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((model, hash_, vector) for hash_, vector in vectors.items()),
            )
            self._note_change()

    def prune_vectors(self, model: str) -> None:
        """Delete the vectors of chunks that are gone."""
        with translated(self.database), transaction(self._connection):
            self._connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )

    @contextmanager
    def reading_vectors(
        self, model: str
    ) -> Iterator[tuple[tuple[bytes, int], int, Iterator[tuple[int, bytes]]]]:
        """Give one consistent view: the state, how many chunks have a vector, and these."""
        execute = self._connection.execute
        having = "FROM chunks JOIN vectors USING (hash) WHERE model = ? AND vector != x''"
        with translated(self.database):
            execute("BEGIN")
            try:
                count = execute(f"SELECT count(*) {having}", (model,)).fetchone()[0]
                rows = execute(f"SELECT chunks.id, vector {having} ORDER BY chunks.id", (model,))
                yield self.state(), count, rows
            finally:
                execute("COMMIT")

    # Answering

    def count_chunks(self) -> int:
        """Return how many chunks there are."""
        with translated(self.database):
            count: int = self._connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        return count

    def count_frequencies(self, words: Iterable[str]) -> dict[str, int]:
        """Return in how many chunks each word occurs, in whatever form."""
        words = list(words)
        execute = self._connection.execute
        with translated(self.database):
            execute("INSERT INTO temp.words (words) VALUES ('delete-all')")
            self._connection.executemany(
                "INSERT INTO temp.words (rowid, word) VALUES (?, ?)", enumerate(words)
            )
            frequencies = dict.fromkeys(words, 0)
            for row, count in execute(
                "SELECT stems.doc, max(frequencies.doc) FROM temp.stems"
                " JOIN temp.frequencies USING (term) GROUP BY stems.doc"
            ):
                frequencies[words[row]] = count
        return frequencies

    def match(self, expression: str, limit: int) -> dict[int, float]:
        """Return the chunks that match an FTS5 expression and their scores, best first."""
        weights = ", ".join(map(str, WEIGHTS))
        with translated(self.database):
            # Ordered by the function and not by the `rank` column: so SQLite keeps
            # the best few, and does not sort everything that matches.
            rows = self._connection.execute(
                f"SELECT rowid, bm25(chunks_fts, {weights}) AS score"  # noqa: S608 - our numbers
                " FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY score, rowid LIMIT ?",
                (expression, limit),
            ).fetchall()
        return {id_: -score for id_, score in rows}

    def read_chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return chunks by id; those deleted meanwhile are missing."""
        with translated(self.database):
            found = {}
            for id_ in ids:
                row = self._connection.execute(
                    "SELECT path, first_line, last_line, title, heading, text FROM chunks"
                    " JOIN documents ON documents.id = document WHERE chunks.id = ?",
                    (id_,),
                ).fetchone()
                if row:
                    found[id_] = StoredChunk(*row)
        return found


def _indexed_fields(path: str, title: str, heading: str, text: str) -> tuple[str, str, str, str]:
    """Return what the full-text index holds of a chunk, column by column."""
    return (
        f"{heading} {split_identifiers(heading)}",
        f"{path} {title}",
        text,
        split_identifiers(text),
    )
