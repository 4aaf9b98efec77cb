"""The vectors in an index, by model and hash of the chunk."""

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
        """Return the ids of chunks without a vector of a model; of equal chunks, one."""
        rows = self._connection.execute(
            "SELECT min(id) FROM chunks WHERE hash NOT IN"
            " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1",
            (model,),
        ).fetchall()
        return [id_ for (id_,) in rows]

    def read_texts(self, ids: Sequence[int]) -> dict[bytes, str]:
        """Return the texts to embed, title and text of each chunk, keyed by hash."""
        texts = {}
        for id_ in ids:
            row = self._connection.execute(
                "SELECT hash, title, text FROM chunks WHERE id = ?", (id_,)
            ).fetchone()
            if row:
                texts[row[0]] = f"{row[1]}\n\n{row[2]}"
        return texts

    def find_size(self, model: str) -> int | None:
        """Return the size of a model's vectors in bytes; None if there are none."""
        row = self._connection.execute(
            "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1",
            (model,),
        ).fetchone()
        return row[0] if row else None

    def store(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors by the hash of their chunk; an empty one marks a chunk without a vector."""
        with transaction(self._connection):
            self._connection.execute("CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash)")
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((model, hash_, vector) for hash_, vector in vectors.items()),
            )

    def prune(self, model: str) -> None:
        """Delete the vectors of chunks that no longer exist."""
        with transaction(self._connection):
            self._connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )

    def read_all(self, model: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield all hashes and vectors of a model, including those of deleted chunks."""
        yield from self._connection.execute(
            "SELECT hash, vector FROM vectors WHERE model = ? AND vector != x''", (model,)
        )

    def find_chunks(self, hash_: bytes) -> list[int]:
        """Return the ids of the chunks with a hash, in order; none if they were deleted."""
        rows = self._connection.execute(
            "SELECT id FROM chunks WHERE hash = ? ORDER BY id", (hash_,)
        ).fetchall()
        return [id_ for (id_,) in rows]
