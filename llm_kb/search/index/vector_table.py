"""The vectors an index keeps: by model and by the hash of the chunk they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from llm_kb.search.index.database import note_change, transaction, translated

if TYPE_CHECKING:
    from sqlite3 import Connection


class VectorTable:
    """The vectors of one open index."""

    def __init__(self, database: Path, connection: Connection) -> None:
        self._database = database
        self._connection = connection

    def state(self) -> tuple[bytes, int]:
        """Return what identifies the chunks and vectors there are now."""
        with translated(self._database):
            id_, changes = self._connection.execute("SELECT id, changes FROM state").fetchone()
        return id_, changes

    def find_missing(self, model: str) -> list[int]:
        """Return the ids of chunks a model has yet to embed; of equal ones, one."""
        with translated(self._database):
            rows = self._connection.execute(
                "SELECT min(id) FROM chunks WHERE hash NOT IN"
                " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1",
                (model,),
            ).fetchall()
        return [id_ for (id_,) in rows]

    def read_texts(self, ids: Sequence[int]) -> dict[bytes, str]:
        """Return, by hash, what is embedded of chunks: title and text."""
        texts = {}
        with translated(self._database):
            for id_ in ids:
                row = self._connection.execute(
                    "SELECT hash, title, text FROM chunks WHERE id = ?", (id_,)
                ).fetchone()
                if row:
                    texts[row[0]] = f"{row[1]}\n\n{row[2]}"
        return texts

    def find_size(self, model: str) -> int | None:
        """Return how many bytes a vector of a model takes; None when there is none."""
        with translated(self._database):
            row = self._connection.execute(
                "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1",
                (model,),
            ).fetchone()
        return row[0] if row else None

    def store(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors by the hash of their chunk; an empty one says it has none."""
        with translated(self._database), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((model, hash_, vector) for hash_, vector in vectors.items()),
            )
            note_change(self._connection)

    def prune(self, model: str) -> None:
        """Delete the vectors of chunks that are gone."""
        with translated(self._database), transaction(self._connection):
            self._connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )

    @contextmanager
    def reading(
        self, model: str
    ) -> Iterator[tuple[tuple[bytes, int], int, Iterator[tuple[int, bytes]]]]:
        """Give one consistent view: the state, how many chunks have a vector, and these."""
        execute = self._connection.execute
        having = "FROM chunks JOIN vectors USING (hash) WHERE model = ? AND vector != x''"
        with translated(self._database):
            execute("BEGIN")
            try:
                count = execute(f"SELECT count(*) {having}", (model,)).fetchone()[0]
                rows = execute(f"SELECT chunks.id, vector {having} ORDER BY chunks.id", (model,))
                yield self.state(), count, rows
            finally:
                execute("COMMIT")
