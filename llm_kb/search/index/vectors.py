"""Dense vectors of one index and one model: embedding, and the nearest chunks."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from struct import Struct
from typing import TYPE_CHECKING

from llm_kb.errors import KbError
from llm_kb.search.index.database import transaction

if TYPE_CHECKING:
    from llm_kb.search.index.index import Index
    from llm_kb.search.index.update import Progress

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]
"""Returns the vectors of texts, in order and all of one length."""

BATCH = 64
"""Texts embedded and stored at a time; an interruption loses at most these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """An embedding model: its id, and the function that embeds texts."""

    model: str
    embed: Embed


class EmbeddingError(KbError):
    """An embedding model that returned unusable vectors."""

    def __init__(self, model: str, reason: str) -> None:
        self.model = model
        self.reason = reason
        super().__init__(f"embedding model {model!r} {reason}")


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
    missing = find_missing(index, model)
    wanted = missing[:limit]
    for start in range(0, len(wanted), BATCH):
        texts = _read_texts(index, wanted[start : start + BATCH])
        vectors = [_encode(vector) for vector in embed(list(texts.values()))]
        if len(vectors) != len(texts):
            raise EmbeddingError(model, f"returned {len(vectors)} vectors for {len(texts)} texts")
        _check_dimensions(model, vectors, _find_size(index, model))
        _store(index, model, dict(zip(texts, vectors, strict=True)))
        if progress:
            progress(min(start + BATCH, len(wanted)), len(wanted))
    if wanted:
        with transaction(index.connection):
            # Of chunks that no longer exist.
            index.connection.execute(
                "DELETE FROM vectors WHERE model = ? AND hash NOT IN (SELECT hash FROM chunks)",
                (model,),
            )
    return len(missing) - len(wanted)


def find_missing(index: Index, model: str) -> list[int]:
    """Return the ids of chunks without a vector of a model; of equal chunks, one."""
    rows = index.connection.execute(
        "SELECT min(id) FROM chunks WHERE hash NOT IN"
        " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1",
        (model,),
    )
    return [id_ for (id_,) in rows]


def _read_texts(index: Index, ids: Sequence[int]) -> dict[bytes, str]:
    """Return the texts to embed, title and text of each chunk, keyed by hash."""
    rows = index.connection.execute(
        "SELECT hash, title, text FROM chunks"  # noqa: S608 - our numbers
        f" WHERE id IN ({', '.join(map(str, ids))}) ORDER BY id"
    )
    return {hash_: f"{title}\n\n{text}" for hash_, title, text in rows}


def _find_size(index: Index, model: str) -> int | None:
    """Return the size of a model's vectors in bytes; None if there are none."""
    row = index.connection.execute(
        "SELECT length(vector) FROM vectors WHERE model = ? AND vector != x'' LIMIT 1", (model,)
    ).fetchone()
    return row[0] if row else None


def _store(index: Index, model: str, vectors: Mapping[bytes, bytes]) -> None:
    """Store vectors by the hash of their chunk; an empty one marks a chunk without a vector."""
    with transaction(index.connection):
        index.connection.execute("CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash)")
        index.connection.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
            ((model, hash_, vector) for hash_, vector in vectors.items()),
        )


def _encode(vector: Sequence[float]) -> bytes:
    """Return the unit vector as 32-bit floats; empty if it has no direction."""
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    if not length or not math.isfinite(length):
        return b""
    return array("f", [number / length for number in numbers]).tobytes()


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


def rank_by_vector(
    index: Index, model: str, vector: Sequence[float], limit: int
) -> dict[int, float]:
    """Return the chunks nearest to a vector and their cosines, nearest first."""
    query = _encode(vector)
    known = _find_size(index, model)
    if not query or known is None:
        return {}
    _check_dimensions(model, [query], known)
    read = Struct(f"{len(query) // 4}f").unpack
    wanted = read(query)
    narrow = " AND document IN temp.allowed" if index.is_narrow else ""
    # Equal chunks share a vector.
    rows = index.connection.execute(
        "SELECT vector, chunks.id FROM vectors JOIN chunks USING (hash)"  # noqa: S608 - our own
        f" WHERE model = ? AND vector != x''{narrow}",
        (model,),
    )
    # For unit vectors distance and cosine rank alike, and the distance is one call in C.
    near = nsmallest(limit, ((math.dist(read(stored), wanted), id_) for stored, id_ in rows))
    return {id_: 1 - distance * distance / 2 for distance, id_ in near}
