"""The vectors an index keeps: by model and by the hash of the chunk they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from llm_kb.search.index.database import transaction

if TYPE_CHECKING:
    from sqlite3 import Connection


class VectorTable:
    """The vectors of one open index."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find_missing(self, model: str) -> list[int]:
        """Return the ids of chunks a model has yet to embed; of equal ones, one."""
        rows = self._connection.execute(
            "SELECT min(id) FROM chunks WHERE hash NOT IN"
            " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1",
            (model,),
        ).fetchall()
        return [id_ for (id_,) in rows]

    def read_texts(self, ids: Sequence[int]) -> dict[bytes, str]:
        """Return, by hash, what is embedded of chunks: title and text."""
        texts = {}
        for id_ in ids:
            row = self._connection.execute(
                "SELECT hash, title, text FROM chunks WHERE id = ?", (id_,)
            ).fetchone()
            if row:
                texts[row[0]] = f"{row[1]}\n\n{row[2]}"
        return texts

    def find_size(self, model: str) -> int | None:
        """Return how many bytes a vector of a model takes; None when there is none."""
        row = self._connection.execute(
            "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1",
            (model,),
        ).fetchone()
        return row[0] if row else None

    def store(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors by the hash of their chunk; an empty one says it has none."""
        with transaction(self._connection):
            self._connection.execute("CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash)")
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((model, hash_, vector) for hash_, vector in vectors.items()),
            )

    def prune(self, model: str) -> None:
        """Delete the vectors of chunks that are gone."""
        with transaction(self._connection):
            self._connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )

    def read_all(self, model: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the vectors of a model with the hashes of their chunks, gone ones included."""
        yield from self._connection.execute(
            "SELECT hash, vector FROM vectors WHERE model = ? AND vector != x''", (model,)
        )

    def find_chunks(self, hash_: bytes) -> list[int]:
        """Return the ids of the chunks of a hash, in order; none where they are gone."""
        rows = self._connection.execute(
            "SELECT id FROM chunks WHERE hash = ? ORDER BY id", (hash_,)
        ).fetchall()
        return [id_ for (id_,) in rows]
