"""The vectors of one model, packed into a file that is mapped into memory.

A cold process so reads what it needs and no more: a sign bit of every number to
choose candidates by, and the numbers to rank these exactly. The file says which
state of the index it was made from and is made anew when that is not the present
one.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import time
from array import array
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from llm_kb.references.index import Index

_MAGIC = b"llm-kb vectors 1"
_HEADER = Struct("<16s16s16sqqq")
CAN_MAP_DIRECTLY = sys.byteorder == "little"
"""Whether numbers in the file are as this machine has them."""


class Packed(NamedTuple):
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


def open_packed(index: Index, model: str) -> Packed:
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
    return Packed(data, *_HEADER.unpack(data[: _HEADER.size])[4:])


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
                    bits += sign_bits(vector, width)
                    file.write(vector)
            file.seek(0)
            file.write(_HEADER.pack(_MAGIC, _digest(model), *state, count, size // 4))
            file.write(ids.tobytes())
            file.write(bits)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


_SIGN = bytes(48 + (byte >> 7) for byte in range(256))


def sign_bits(vector: bytes, width: int) -> bytes:
    """Return the signs of little-endian floats, a bit each, in `width` bytes."""
    # The sign is the top bit of every fourth byte; as a string of 0 and 1 it is
    # read as one number, all without a loop in Python.
    return int(vector[3::4].translate(_SIGN) or b"0", 2).to_bytes(width, "big")
