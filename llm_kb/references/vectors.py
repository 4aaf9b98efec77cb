"""Dense vectors of one index and one model: embedding, packing, nearest chunks.

The vectors are in the index's own table. For search they are packed into a file
that is mapped into memory, so that a cold process reads what it needs and no
more: a sign bit of every number to choose candidates by, and the numbers to rank
these exactly. The file says which state of the index it was made from and is
made anew when that is not the present one.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from struct import Struct, iter_unpack
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.references.index import Index, Progress

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

_MAGIC = b"llm-kb vectors 1"
_HEADER = Struct("<16s16s16sqqq")
_CAN_MAP_DIRECTLY = sys.byteorder == "little"


class EmbeddingError(KbError):
    """An embedding model that returned what cannot be used."""

    def __init__(self, model: str, reason: str) -> None:
        self.model = model
        self.reason = reason
        super().__init__(f"embedding model {model!r} {reason}")


class _Packed(NamedTuple):
    """A mapped file: a row for every chunk that has a vector."""

    data: memoryview
    rows: int
    dimensions: int

    @property
    def width(self) -> int:
        """Return how many bytes the sign bits of a row take."""
        return _width(self.dimensions)

    @property
    def ids(self) -> memoryview[int]:
        """Return the chunk ids, row by row."""
        return self.data[_HEADER.size : _HEADER.size + 8 * self.rows].cast("q")

    @property
    def bits(self) -> bytes:
        """Return the sign bits, `width` bytes a row."""
        start = _HEADER.size + 8 * self.rows
        return bytes(self.data[start : start + self.width * self.rows])

    @property
    def numbers_start(self) -> int:
        """Return the offset of the unit vectors, which stand one after the other."""
        return _HEADER.size + (8 + self.width) * self.rows


def _width(dimensions: int) -> int:
    """Return how many bytes hold a bit for every dimension, in steps that keep alignment."""
    return -(-dimensions // 64) * 8


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
    if not _CAN_MAP_DIRECTLY:
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


def rank_by_vector(index: Index, model: str, vector: Sequence[float], limit: int) -> list[int]:
    """Return the ids of the chunks nearest to a vector by cosine, best first."""
    query = _encode(vector)
    known = index.vectors.find_size(model)
    if not query or known is None:
        return []
    _check_dimensions(model, [query], known)
    numbers = array("f", query)
    if not _CAN_MAP_DIRECTLY:
        numbers.byteswap()
    packed = _open_packed(index, model)
    if not packed.rows:
        return []
    rank = _rank_with_numpy if _use_numpy(packed) else _rank
    return rank(packed, numbers, limit)


def _use_numpy(packed: _Packed) -> bool:
    """Whether numpy is there and worth its import."""
    if "numpy" in sys.modules:
        return True
    return packed.rows * packed.dimensions >= NUMPY_FROM and find_spec("numpy") is not None


def _rank(packed: _Packed, query: array[float], limit: int) -> list[int]:
    """Choose candidates by the sign bits that differ, and rank them by the exact cosine."""
    signs = int.from_bytes(_sign_bits(query.tobytes(), packed.width), "big")
    read = int.from_bytes
    distances = [
        (read(bits, "big") ^ signs).bit_count()
        for (bits,) in iter_unpack(f"{packed.width}s", packed.bits)
    ]
    furthest = find_furthest(distances, max(CANDIDATES, limit))
    rows = [row for row, distance in enumerate(distances) if distance <= furthest]
    # Between unit vectors the distance ranks as the cosine does, and it is one call in C.
    wanted = tuple(query)
    # Without a byte order, Struct copies; with one, it puts each number together.
    read_row = Struct(f"{'' if _CAN_MAP_DIRECTLY else '<'}{packed.dimensions}f").unpack_from
    start, size, ids = packed.numbers_start, 4 * packed.dimensions, packed.ids
    scored = [
        (math.dist(read_row(packed.data, start + size * row), wanted), ids[row]) for row in rows
    ]
    return [id_ for _, id_ in sorted(scored)[:limit]]


def find_furthest(distances: Sequence[int], wanted: int) -> int:
    """Return the distance within which as many as are wanted lie, or all."""
    counts = Counter(distances)
    furthest = 0
    for furthest in sorted(counts):
        wanted -= counts[furthest]
        if wanted <= 0:
            break
    return furthest


def _rank_with_numpy(packed: _Packed, query: array[float], limit: int) -> list[int]:
    """Rank all vectors by their exact cosine."""
    import numpy as np  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - an extra, and slow

    wanted = np.frombuffer(query, dtype="<f4")
    matrix = np.frombuffer(packed.data, dtype="<f4", offset=packed.numbers_start).reshape(
        packed.rows, packed.dimensions
    )
    scores = matrix @ wanted
    best = np.argsort(-scores, kind="stable")[:limit]
    ids = packed.ids
    return [ids[int(row)] for row in best]


# The packed file


def _open_packed(index: Index, model: str) -> _Packed:
    """Map the packed file of a model, making it anew when the index has changed since."""
    path = packed_path(index.database, model)
    state = index.vectors.state()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        file = None
    if file is None or not _is_current(file.read(_HEADER.size), model, state):
        if file:
            file.close()
        _pack(index, model, path)
        file = path.open("rb")
    with file:
        # Unmapped when the last view of it is gone, which may be in a traceback.
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return _Packed(data, *_HEADER.unpack(data[: _HEADER.size])[4:])


def packed_path(database: Path, model: str) -> Path:
    """Return where the packed vectors of a model are: beside the database."""
    return database.with_name(f"{database.stem}.{_digest(model).hex()[:12]}.vectors")


def _digest(model: str) -> bytes:
    return hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_current(header: bytes, model: str, state: tuple[bytes, int]) -> bool:
    """Whether a packed file is of this model and of this state of the index."""
    if len(header) != _HEADER.size:
        return False
    return _HEADER.unpack(header)[:4] == (_MAGIC, _digest(model), *state)


def _pack(index: Index, model: str, path: Path) -> None:
    """Write the packed file beside its place and move it there whole."""
    size = index.vectors.find_size(model) or 0
    width = _width(size // 4)
    # Not with `tempfile`, whose import takes longer than the rest of a search.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        with temporary.open("xb") as file:
            with index.vectors.reading(model) as (state, count, rows):
                file.truncate(_HEADER.size + (8 + width + size) * count)
                ids, bits = array("q"), bytearray()
                file.seek(_HEADER.size + (8 + width) * count)
                for id_, vector in rows:
                    ids.append(id_)
                    bits += _sign_bits(vector, width)
                    file.write(vector)
            file.seek(0)
            file.write(_HEADER.pack(_MAGIC, _digest(model), *state, count, size // 4))
            file.write(ids.tobytes())
            file.write(bits)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


_SIGN = bytes(48 + (byte >> 7) for byte in range(256))


def _sign_bits(vector: bytes, width: int) -> bytes:
    """Return the signs of little-endian floats, a bit each, in `width` bytes."""
    # The sign is the top bit of every fourth byte; as a string of 0 and 1 it is
    # read as one number, all without a loop in Python.
    return int(vector[3::4].translate(_SIGN) or b"0", 2).to_bytes(width, "big")
