"""The index of one topic: rebuilt from the files whenever it is not what they say.

The files are the truth. Whatever is wrong with the database (another version,
damage, files that have changed since) is put right by `Index.update`; only time
is lost with it. Several processes may read and update an index at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from llm_kb.search.index.database import DamageError, TopicGoneError, connect, discard, translated
from llm_kb.search.index.documents_table import (
    DocumentTable,
    Known,
    Prepared,
    prepare,
    write_batches,
)
from llm_kb.search.index.files import File, walk_files
from llm_kb.search.index.vector_table import VectorTable

if TYPE_CHECKING:
    from llm_kb.search.index.database import Connection

WEIGHTS = (2.0, 1.0, 1.0, 0.5)
"""What a match counts in a chunk's heading, its path and title, its text, and the
parts of its identifiers. Tuned together with the reranking."""

BATCH_CHUNKS = 20_000
"""A transaction ends after this many chunks: what an interruption can cost."""

Result = TypeVar("Result")

Progress = Callable[[int, int], None]
"""Called with the number of documents indexed so far and the number to index."""


# No dataclass here nor in what this module and `vectors` import: a cold search takes less time
# than the import of `dataclasses` (bench/dense.py).
class IndexReport(NamedTuple):
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
    up to date: call `update`. Raises IndexUnusableError, TopicGoneError being one.
    """
    database = database or index_path(directory)
    # First, so that none is made, and left behind, for a topic that has been deleted.
    if not directory.is_dir():
        raise TopicGoneError(database, directory)
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
        discard(index_path(directory))
    with open_index(directory) as index:
        return work(index, index.update())


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
            table = DocumentTable(self.directory, self._connection)
            known = table.read_known()
            files = self._list_files()
            gone = known.keys() - {file.path for file in files}
            changed = [
                file.path
                for file in files
                if known.get(file.path, ())[:3] != (file.size, file.mtime_ns, 0)
            ]
            table.remove(sorted(gone))
            outcomes: list[bool] = []
            done = 0
            with closing(write_batches(table, self._prepare(changed, known))) as written:
                for count, batch in written:
                    outcomes += batch
                    done += count
                    if progress:
                        progress(done, len(changed))
            chunks = self.count_chunks()
        return IndexReport(
            documents=len(files),
            chunks=chunks,
            added=outcomes.count(True),
            changed=outcomes.count(False),
            removed=len(gone),
        )

    def _list_files(self) -> list[File]:
        """Return the files there are. Raises TopicGoneError where there is no directory."""
        try:
            return list(walk_files(self.directory))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise TopicGoneError(self.database, self.directory) from error

    def _prepare(
        self, paths: Sequence[str], known: Mapping[str, Known]
    ) -> Iterator[list[Prepared]]:
        """Yield files ready to be written, as many at a time as have some thousand chunks."""
        batch: list[Prepared] = []
        chunks = 0
        for path in paths:
            document = prepare(self.directory, path, known[path].hash if path in known else None)
            batch.append(document)
            chunks += len(document.chunks or ()) + 1
            if chunks >= BATCH_CHUNKS:
                yield batch
                batch, chunks = [], 0
        if batch:
            yield batch

    @property
    def vectors(self) -> VectorTable:
        """Return the vectors that are kept of the chunks."""
        return VectorTable(self.database, self._connection)

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

    def match(self, expression: str, limit: int, wanted: Sequence[int] = ()) -> dict[int, float]:
        """Return the best chunks that match an FTS5 expression, and their scores.

        Those of the `wanted` ones that match come first, over the limit; then the best.
        """
        weights = ", ".join(map(str, WEIGHTS))
        first = f"rowid IN ({', '.join('?' * len(wanted))}) DESC," if wanted else ""
        with translated(self.database):
            # Ordered by the function and not by the `rank` column: so SQLite keeps
            # the best few, and does not sort everything that matches.
            rows = self._connection.execute(
                f"SELECT rowid, bm25(chunks_fts, {weights}) AS score"  # noqa: S608 - our numbers
                f" FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY {first} score, rowid LIMIT ?",
                (expression, *wanted, limit + len(wanted)),
            ).fetchall()
        return {id_: -score for id_, score in rows}

    def read_chunks(self, ids: Iterable[int]) -> dict[int, StoredChunk]:
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
