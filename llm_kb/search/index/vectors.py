"""Dense vectors of one index and one model: embedding, and the nearest chunks."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from struct import Struct
from typing import TYPE_CHECKING

from llm_kb.errors import KbError
from llm_kb.search.index.database import transaction

if TYPE_CHECKING:
    from sqlite3 import Connection

    from llm_kb.search.index.index import Index
    from llm_kb.search.index.update import Progress

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]
"""Returns the vectors of texts, in order and all of one length."""

BATCH = 64
"""Texts embedded and stored at a time; an interruption loses at most these."""


class EmbeddingError(KbError):
    """An embedding model that returned unusable vectors."""

    def __init__(self, model: str, reason: str) -> None:
        self.model = model
        self.reason = reason
        super().__init__(f"embedding model {model!r} {reason}")


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

    def read_all(self, model: str) -> Iterable[tuple[bytes, int]]:
        """Return the vectors of a model with the ids of their chunks; equal chunks share one."""
        return self._connection.execute(
            "SELECT vector, chunks.id FROM vectors JOIN chunks USING (hash)"
            " WHERE model = ? AND vector != x''",
            (model,),
        )


# Embedding


def update_vectors(
    index: Index,
    model: str,
    embed: Embed,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed chunks without a vector of this model; return how many still lack one.

    Every batch is stored at once, so an interrupted run continues where it was. At
    most `limit` chunks are embedded. Raises EmbeddingError.
    """
    missing = index.vectors.find_missing(model)
    wanted = missing if limit is None else missing[:limit]
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        texts = index.vectors.read_texts(batch)
        vectors = [_encode(vector) for vector in embed(list(texts.values()))]
        if len(vectors) != len(texts):
            raise EmbeddingError(model, f"returned {len(vectors)} vectors for {len(texts)} texts")
        _check_dimensions(model, vectors, index.vectors.find_size(model))
        index.vectors.store(model, dict(zip(texts, vectors, strict=True)))
        if progress:
            progress(min(start + BATCH, len(wanted)), len(wanted))
    if not missing:
        index.vectors.prune(model)
    return len(missing) - len(wanted)


def _encode(vector: Sequence[float]) -> bytes:
    """Return the unit vector as little-endian floats; empty if it has no direction."""
    numbers = [float(number) for number in vector]
    length = math.sqrt(sum(number * number for number in numbers))
    if not length or not math.isfinite(length):
        return b""
    packed = array("f", [number / length for number in numbers])
    if sys.byteorder != "little":
        packed.byteswap()
    return packed.tobytes()


def _check_dimensions(model: str, vectors: Sequence[bytes], known: int | None) -> None:
    """Raise EmbeddingError if vectors of one model differ in length."""
    for size in (len(vector) for vector in vectors if vector):
        known = known or size
        if size != known:
            raise EmbeddingError(
                model,
                f"returned {size // 4} numbers where it returned {known // 4} before; "
                "if the model behind this name has changed, delete the index to embed anew",
            )


# Ranking


def rank_by_vector(
    index: Index, model: str, vector: Sequence[float], limit: int
) -> dict[int, float]:
    """Return the chunks nearest to a vector and their cosines, nearest first."""
    query = _encode(vector)
    known = index.vectors.find_size(model)
    if not query or known is None:
        return {}
    _check_dimensions(model, [query], known)
    read = Struct(f"<{len(query) // 4}f").unpack
    wanted = read(query)
    allowed = index.find_allowed()
    # For unit vectors distance and cosine rank alike, and the distance is one call in C.
    near = nsmallest(
        limit,
        (
            (math.dist(read(vector), wanted), id_)
            for vector, id_ in index.vectors.read_all(model)
            if allowed is None or id_ in allowed
        ),
    )
    return {id_: 1 - distance * distance / 2 for distance, id_ in near}


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """An embedding model: its id, and the function that embeds texts."""

    model: str
    embed: Embed
