"""Listing and reading the files of archives: `.zip`, `.whl`, `.tar` and compressed `.tar`.

Nothing is extracted to disk. A directory that holds all files, as in source
distributions, is left out of the paths.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from llm_kb.references.errors import HOSTILE, FetchError
from llm_kb.references.sources.git import GitFile

MAX_MEMBERS = 200_000
MAX_UNPACKED = 2_000_000_000
"""Bytes that an archive may unpack to, unwanted files included."""

MAX_HEADER = 64_000
"""Bytes of an entry's extended header in a tar archive, such as a long name."""

PIECE = 1_000_000
"""Bytes that are read at once."""

_BLOCK = 512

ZIPS = (".zip", ".whl")
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".crate")

_BROKEN = (
    EOFError, lzma.LZMAError, NotImplementedError, OSError, RuntimeError, struct.error,
    zipfile.BadZipFile, zlib.error, *HOSTILE,
)  # fmt: skip
"""The errors raised for damaged, encrypted or unusual archives."""


def is_archive(path: Path) -> bool:
    """Tell whether a file is an archive, by its name."""
    return path.name.lower().endswith((*ZIPS, *TARS))


def list_archive(path: Path) -> list[GitFile]:
    """Return the files of an archive with their modes and sizes; raise FetchError."""
    with _refusing(path):
        files = [file for file, _ in _iter_files(path, read=())]
    prefix = _find_prefix([file.path for file in files])
    return [replace(file, path=file.path[len(prefix) :]) for file in files]


def read_archive(path: Path, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of files of an archive, in its order; raise FetchError."""
    with _refusing(path):
        prefix = _find_prefix([file.path for file, _ in _iter_files(path, read=())])
        for file, content in _iter_files(path, read={prefix + name for name in paths}):
            if content is not None:
                yield file.path[len(prefix) :], content


_Found = Iterator[tuple[GitFile | None, bytes | None]]
"""The entries of an archive, wanted ones with content; None for directories and headers."""


def _iter_files(path: Path, read: Collection[str]) -> Iterator[tuple[GitFile, bytes | None]]:
    """Yield the files of an archive, those whose names are in `read` with their content."""
    is_zip = path.name.lower().endswith(ZIPS)
    for number, (file, content) in enumerate((_iter_zip if is_zip else _iter_tar)(path, read)):
        if number == MAX_MEMBERS:
            raise ValueError(f"it has more than {MAX_MEMBERS:,} entries")
        if file is not None:
            yield file, content


def _iter_zip(path: Path, read: Collection[str]) -> _Found:
    left = MAX_UNPACKED
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename:
                raise ValueError("an entry has no name")
            if info.is_dir():
                yield None, None
                continue
            if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                # For other methods Python unpacks without a bound.
                raise ValueError(f"{info.filename} is not compressed by deflate")
            mode = "120000" if stat.S_ISLNK(info.external_attr >> 16) else "100644"
            content = None
            if info.filename in read and mode == "100644":
                left -= info.file_size
                with archive.open(info) as file:
                    content = b"".join(_read_pieces(file, info.file_size, left))
            yield GitFile(path=info.filename, size=info.file_size, mode=mode), content


def _iter_tar(path: Path, read: Collection[str]) -> _Found:
    """Yield the entries of a tar archive.

    Not by `tarfile`, whose time and memory depend on what the headers say: here each byte is
    read once, and nothing of an entry is kept.
    """
    left = MAX_UNPACKED
    extended: dict[str, bytes] = {}
    with _open_tar(path) as file:
        while (block := file.read(_BLOCK)).strip(b"\0"):
            size, kind = _check_header(block), block[156:157]
            if kind in _HEADERS:  # what the next entry, or the archive, is about
                if size > MAX_HEADER:
                    raise ValueError("its headers are too long")
                left -= _pad(size)
                extended |= _read_records(
                    kind, b"".join(_read_pieces(file, _pad(size), left))[:size]
                )
                yield None, None
                continue
            if kind == b"S" or any(key.startswith("GNU.sparse") for key in extended):
                raise ValueError("it has a sparse file")
            name = extended.get("path") or _read_name(block)
            size = _bound(int(extended.get("size", size)))
            extended = {}
            length = 0 if kind in _EMPTY else _pad(size)
            left -= length + _BLOCK
            path_ = name.decode("utf-8", "surrogateescape").removeprefix("./")
            is_file = kind in _FILES and not path_.endswith("/")
            pieces, content = _read_pieces(file, length, left), None
            if is_file and path_ in read:
                content = b"".join(pieces)[:size]
            else:
                deque(pieces, maxlen=0)
            if kind == b"5" or path_.endswith("/"):
                yield None, None
                continue
            mode = "100644" if is_file else "120000" if kind == b"2" else "special"
            yield GitFile(path=path_, size=size if is_file else 0, mode=mode), content
    if left == MAX_UNPACKED:
        raise ValueError("it is empty")


# The types of a tar archive's entries.
_HEADERS = frozenset({b"x", b"g", b"L", b"K"})
_FILES = frozenset({b"0", b"\0", b"7"})
_EMPTY = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
"""Links, devices, directories and FIFOs, which have no content whatever size they state."""


def _read_pieces(file: IO[bytes], size: int, left: int) -> Iterator[bytes]:
    """Yield exactly so many bytes; raise ValueError if fewer than none are `left` after them."""
    if left < 0:
        raise ValueError(f"it unpacks to over {MAX_UNPACKED:,} bytes")
    while size > 0:
        piece = file.read(min(size, PIECE))
        if not piece:
            raise ValueError("a file does not have the stated length")
        size -= len(piece)
        yield piece


def _pad(size: int) -> int:
    return size + -size % _BLOCK


def _bound(size: int) -> int:
    if not 0 <= size <= MAX_UNPACKED:
        raise ValueError(f"it unpacks to over {MAX_UNPACKED:,} bytes, or has a negative size")
    return size


def _check_header(block: bytes) -> int:
    """Return the size that a header states; raise ValueError for a damaged or negative one."""
    blank = block[:148] + b" " * 8 + block[156:]
    if len(block) < _BLOCK or sum(blank) != _read_number(block[148:156]):
        raise ValueError("it is damaged")
    return _read_number(block[124:136])


def _read_number(field: bytes) -> int:
    if field[:1] == b"\x80":  # binary, for large numbers
        return _bound(int.from_bytes(field[1:], "big"))
    return _bound(int(field.strip(b" \0") or b"0", 8))


def _read_name(block: bytes) -> bytes:
    name, prefix = (block[start:end].partition(b"\0")[0] for start, end in ((0, 100), (345, 500)))
    return b"/".join([prefix, name]) if prefix and block[257:262] == b"ustar" else name


def _read_records(kind: bytes, data: bytes) -> dict[str, bytes]:
    """Return what a header says of the next entry: `<length> <key>=<value>` a line, or a name."""
    if kind != b"x":
        return {"path": data.rstrip(b"\0")} if kind == b"L" else {}
    records, position = {}, 0
    while position < len(data):
        blank = data.index(b" ", position, position + 8)
        end = position + int(data[position:blank])
        if end <= blank:
            raise ValueError("a record of its headers has no length")
        key, _, value = data[blank + 1 : end - 1].partition(b"=")
        records[key.decode("utf-8", "replace")] = value
        position = end
    return records


def _open_tar(path: Path) -> IO[bytes]:
    """Open a tar archive and its compression, which the first bytes of the file tell."""
    with path.open("rb") as file:
        start = file.read(6)
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if start.startswith(magic):
            unpacked: IO[bytes] = module.open(path)
            return unpacked
    return path.open("rb")


def _find_prefix(names: Collection[str]) -> str:
    """Return the directory that holds all files, with its `/`; empty if there is none."""
    tops = {name.partition("/")[0] for name in names}
    is_one = len(tops) == 1 and all("/" in name for name in names)
    return f"{tops.pop()}/" if is_one else ""


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise FetchError(str(path), f"it is not an archive that can be read: {error}") from error
