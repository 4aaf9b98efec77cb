"""Listing and reading the files of archives: `.zip`, `.whl`, `.tar` and compressed `.tar`.

Nothing is extracted to disk. A directory that holds all files, as in source
distributions, is left out of the paths.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeVar

from llm_kb.references.errors import HOSTILE, FetchError
from llm_kb.references.sources.git import GitFile

_T = TypeVar("_T")

MAX_MEMBERS = 200_000
MAX_UNPACKED = 2_000_000_000
"""Bytes that an archive may unpack to, unwanted files included."""

MAX_READS = 15 * MAX_MEMBERS
"""Reads from a tar archive, since its headers can lead back to its beginning for ever."""

PIECE = 1_000_000
"""Bytes that are read at once, and the longest name of an entry in a tar archive."""

ZIPS = (".zip", ".whl")
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".crate")

_BROKEN = (
    EOFError, lzma.LZMAError, NotImplementedError, OSError, RuntimeError, struct.error,
    tarfile.TarError, zipfile.BadZipFile, zlib.error, *HOSTILE,
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
                left, pieces = file.size or 0, []
                while left >= 0 and (piece := content.read(min(left + 1, PIECE))):
                    pieces.append(piece)
                    left -= len(piece)
                if left:
                    raise ValueError(f"{file.path} does not have the stated length")
                yield file.path[len(prefix) :], b"".join(pieces)


def _iter_files(path: Path, read: Collection[str]) -> Iterator[tuple[GitFile, IO[bytes] | None]]:
    """Yield the files of an archive, those whose names are in `read` with their content."""
    if path.name.lower().endswith(ZIPS):
        with zipfile.ZipFile(path) as archive:
            for info in _bounded(archive.infolist()):
                if not info.filename:
                    raise ValueError("an entry has no name")
                if info.is_dir():
                    continue
                if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                    # For other methods Python unpacks without a bound.
                    raise ValueError(f"{info.filename} is not compressed by deflate")
                mode = "120000" if stat.S_ISLNK(info.external_attr >> 16) else "100644"
                file = GitFile(path=info.filename, size=info.file_size, mode=mode)
                if info.filename in read and mode == "100644":
                    with archive.open(info) as content:
                        yield file, content
                else:
                    yield file, None
        return
    with _open_tar(path) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r:") as tar:
        for entry in _bounded(tar):
            if entry.isdir():
                continue
            if entry.size < 0:
                raise ValueError(f"{entry.name} has a negative size")
            name = entry.name.removeprefix("./")
            mode = "100644" if entry.isreg() else "120000" if entry.issym() else "special"
            is_wanted = name in read and entry.isreg()
            file = GitFile(path=name, size=entry.size, mode=mode)
            yield file, tar.extractfile(entry) if is_wanted else None


def _open_tar(path: Path) -> IO[bytes]:
    """Open a tar archive and its compression, which the first bytes of the file tell."""
    with path.open("rb") as file:
        start = file.read(6)
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if start.startswith(magic):
            unpacked: IO[bytes] = module.open(path)
            return unpacked
    return path.open("rb")


class _Bounded(io.BufferedIOBase):
    """A tar archive with bounds for `tarfile`, which trusts the sizes in an archive."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; raise ValueError over the bounds."""
        self._reads += 1
        if size is None or not 0 <= size <= PIECE + tarfile.BLOCKSIZE or self._reads > MAX_READS:
            raise ValueError("its headers are too long")
        return self._stream.read(size)

    def seek(self, offset: int, _whence: int = 0, /) -> int:
        """Go to a place; raise ValueError over the bounds."""
        if offset > MAX_UNPACKED:
            raise ValueError(f"it unpacks to over {MAX_UNPACKED:,} bytes")
        return self._stream.seek(offset)

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._stream.tell()


def _bounded(members: Iterable[_T]) -> Iterator[_T]:
    for number, member in enumerate(members):
        if number == MAX_MEMBERS:
            raise ValueError(f"it has more than {MAX_MEMBERS:,} entries")
        yield member


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
