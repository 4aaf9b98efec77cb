"""The vectors of one model, packed into a file that is mapped into memory.

A cold process so reads what it needs and no more: a sign bit of every number to
choose candidates by, and the numbers to rank these exactly. The file says which
state of the index it was made from and is made anew when that is not the present
one, or when it is damaged.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from llm_kb.search.index.database import IndexUnusableError, discard, translated
from llm_kb.search.index.index import Index, index_path

_MAGIC = b"llm-kb vectors 2"
_HEADER = Struct("<16s16s16sqqqq")

_ABANDONED_SECONDS = 600
"""How old a file is that whoever was making it will not finish any more."""

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
    def checksum(self) -> int:
        """Return the checksum of what candidates are chosen by: ids and sign bits."""
        return crc32(self.data[_HEADER.size : self.numbers_start])

    @property
    def size(self) -> int:
        """Return how many bytes the whole file takes."""
        return self.numbers_start + 4 * self.dimensions * self.rows

    @property
    def numbers_start(self) -> int:
        """Return the offset of the unit vectors, which stand one after the other."""
        return _HEADER.size + (8 + self.width) * self.rows


def _width(dimensions: int) -> int:
    """Return how many bytes hold a bit for every dimension, in steps that keep alignment."""
    return -(-dimensions // 64) * 8


def open_packed(index: Index, model: str) -> Packed:
    """Map the packed file of a model, making it anew when the index has changed since.

    Raises IndexUnusableError when it can be neither read nor made.
    """
    path = packed_path(index.database, model)
    with translated(path):
        packed = _map(path, model, index.vectors.state())
        if packed is None:
            _pack(index, model, path)
            packed = _map(path, model)
    if packed is None:
        raise IndexUnusableError(path, "what was written to it is not what can be read of it")
    return packed


def _map(path: Path, model: str, state: tuple[bytes, int] | None = None) -> Packed | None:
    """Map a file; None where there is none, or another one, or a damaged one."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        if os.fstat(file.fileno()).st_size < _HEADER.size:
            return None
        # Unmapped when the last view of it is gone, which may be in a traceback.
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    magic, digest, *made_of, rows, dimensions, checksum = _HEADER.unpack(data[: _HEADER.size])
    packed = Packed(data, rows, dimensions)
    if (magic, digest) != (_MAGIC, _digest(model)) or (state and tuple(made_of) != state):
        return None
    is_whole = min(rows, dimensions) >= 0 and packed.size == len(data)
    return packed if is_whole and packed.checksum == checksum else None


def discard_index(directory: Path) -> None:
    """Delete the index of a topic's directory and what was made of it, as when the topic goes."""
    database = index_path(directory)
    discard(database)
    discard_packed(database)


def discard_packed(database: Path) -> None:
    """Delete the packed files of an index, of whatever model, finished or not."""
    for path in _find_packed(database):
        path.unlink(missing_ok=True)


def _find_packed(database: Path) -> Iterator[Path]:
    # Not with a pattern of `glob`, which the name of a topic could be one of.
    with suppress(FileNotFoundError):
        for path in database.parent.iterdir():
            start, _, rest = path.name.rpartition(".vectors")
            if start[:-12] == f"{database.stem}." and not rest.strip(".0123456789"):
                yield path


def packed_path(database: Path, model: str) -> Path:
    """Return where the packed vectors of a model are: beside the database."""
    return database.with_name(f"{database.stem}.{_digest(model).hex()[:12]}.vectors")


def _digest(model: str) -> bytes:
    return hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _pack(index: Index, model: str, path: Path) -> None:
    """Write the packed file beside its place and move it there whole."""
    _remove_abandoned(index.database)
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
            chosen_by = ids.tobytes() + bits
            file.seek(0)
            head = (_MAGIC, _digest(model), *state, count, size // 4, crc32(chosen_by))
            file.write(_HEADER.pack(*head) + chosen_by)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(database: Path) -> None:
    """Delete what processes that were killed were making."""
    last = time.time() - _ABANDONED_SECONDS
    for path in _find_packed(database):
        with suppress(FileNotFoundError):
            if path.suffix != ".vectors" and path.stat().st_mtime < last:
                path.unlink()


_SIGN = bytes(48 + (byte >> 7) for byte in range(256))


def sign_bits(vector: bytes, width: int) -> bytes:
    """Return the signs of little-endian floats, a bit each, in `width` bytes."""
    # The sign is the top bit of every fourth byte; as a string of 0 and 1 it is
    # read as one number, all without a loop in Python.
    return int(vector[3::4].translate(_SIGN) or b"0", 2).to_bytes(width, "big")
