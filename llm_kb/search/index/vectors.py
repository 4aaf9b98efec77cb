"""Dense vectors of one index and one model: embedding, and the nearest chunks.

The vectors are in the index's own table, and packed for search.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from struct import Struct, iter_unpack

from llm_kb.errors import KbError
from llm_kb.search.index.index import Index, Progress
from llm_kb.search.index.packed_vectors import CAN_MAP_DIRECTLY, Packed, open_packed, sign_bits

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]
"""Turns texts into vectors, all of one length, in order."""

BATCH = 64
"""Texts embedded and stored at a time: what an interruption can cost."""

CANDIDATES = 400
"""How many vectors the sign bits choose to be ranked exactly."""

NUMPY_FROM = 64_000_000
"""Numbers in a packed file from which numpy is imported to rank them all exactly.

With fewer, a cold process takes much longer to import it than to rank without it.
"""


class EmbeddingError(KbError):
    """An embedding model that returned what cannot be used."""

    def __init__(self, model: str, reason: str) -> None:
        self.model = model
        self.reason = reason
        super().__init__(f"embedding model {model!r} {reason}")


# Embedding


def update_vectors(
    index: Index,
    model: str,
    embed: Embed,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed the chunks that have no vector of this model yet; return how many still lack one.

    Every batch is stored at once, so an interrupted run goes on where it was. At
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
    """Return the unit vector as little-endian floats; empty when it has no direction."""
    numbers = [float(number) for number in vector]
    length = math.sqrt(sum(number * number for number in numbers))
    if not length or not math.isfinite(length):
        return b""
    packed = array("f", [number / length for number in numbers])
    if not CAN_MAP_DIRECTLY:
        packed.byteswap()
    return packed.tobytes()


def _check_dimensions(model: str, vectors: Sequence[bytes], known: int | None) -> None:
    """Raise EmbeddingError when vectors of one model differ in length."""
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
    packed = open_packed(index, model)
    if not packed.rows:
        return {}
    rank = _rank_with_numpy if _use_numpy(packed) else _rank
    return rank(packed, query, limit)


def _use_numpy(packed: Packed) -> bool:
    """Whether numpy is there and worth its import."""
    if "numpy" in sys.modules:
        return True
    return packed.rows * packed.dimensions >= NUMPY_FROM and find_spec("numpy") is not None


def _rank(packed: Packed, query: bytes, limit: int) -> dict[int, float]:
    """Choose candidates by the sign bits that differ, and rank them by the exact cosine."""
    signs = int.from_bytes(sign_bits(query, packed.width), "big")
    read = int.from_bytes
    distances = [
        (read(bits, "big") ^ signs).bit_count()
        for (bits,) in iter_unpack(f"{packed.width}s", packed.bits)
    ]
    furthest = _find_furthest(distances, max(CANDIDATES, limit))
    rows = [row for row, distance in enumerate(distances) if distance <= furthest]
    # Between unit vectors the distance ranks as the cosine does, and it is one call in C.
    # Without a byte order, Struct copies; with one, it puts each number together.
    read_row = Struct(f"{'' if CAN_MAP_DIRECTLY else '<'}{packed.dimensions}f").unpack_from
    wanted = read_row(query)
    start, size, ids = packed.numbers_start, 4 * packed.dimensions, packed.ids
    scored = [
        (math.dist(read_row(packed.data, start + size * row), wanted), ids[row]) for row in rows
    ]
    return {id_: 1 - distance * distance / 2 for distance, id_ in sorted(scored)[:limit]}


def _find_furthest(distances: Sequence[int], wanted: int) -> int:
    """Return the distance within which as many as are wanted lie, or all."""
    counts = Counter(distances)
    furthest = 0
    for furthest in sorted(counts):
        wanted -= counts[furthest]
        if wanted <= 0:
            break
    return furthest


def _rank_with_numpy(packed: Packed, query: bytes, limit: int) -> dict[int, float]:
    """Rank all vectors by their exact cosine."""
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - an extra, and slow

    wanted = np.frombuffer(query, dtype="<f4")
    matrix = np.frombuffer(packed.data, dtype="<f4", offset=packed.numbers_start).reshape(
        packed.rows, packed.dimensions
    )
    cosines = matrix @ wanted
    best = np.argsort(-cosines, kind="stable")[:limit]
    ids = packed.ids
    return {ids[int(row)]: float(cosines[row]) for row in best}


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """An embedding model: its id, and what turns texts into vectors."""

    model: str
    embed: Embed
