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
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

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


class _Member(NamedTuple):
    """One entry of an archive that is not a directory."""

    mode: str
    name: str
    size: int
    file: IO[bytes] | None


def is_archive(path: Path) -> bool:
    """Tell whether a file is an archive, by its name."""
    return path.name.lower().endswith((*ZIPS, *TARS))


def list_archive(path: Path) -> list[tuple[str, GitFile]]:
    """Return the files of an archive with their modes and sizes; raise FetchError."""
    with _refusing(path):
        members = [(m.mode, m.name, m.size) for m in _iter_members(path, read=())]
    prefix = _find_prefix([name for _, name, _ in members])
    return [(mode, GitFile(path=name[len(prefix) :], size=size)) for mode, name, size in members]


def read_archive(path: Path, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of files of an archive, in its order; raise FetchError."""
    with _refusing(path):
        prefix = _find_prefix([member.name for member in _iter_members(path, read=())])
        for member in _iter_members(path, read={prefix + name for name in paths}):
            if member.file is not None:
                left, pieces = member.size, []
                while left >= 0 and (piece := member.file.read(min(left + 1, PIECE))):
                    pieces.append(piece)
                    left -= len(piece)
                if left:
                    raise ValueError(f"{member.name} does not have the stated length")
                yield member.name[len(prefix) :], b"".join(pieces)


def _iter_members(path: Path, read: Collection[str]) -> Iterator[_Member]:
    """Yield the members of an archive, those whose names are in `read` with their content."""
    if path.name.lower().endswith(ZIPS):
        with zipfile.ZipFile(path) as archive:
            for info in _bounded(archive.infolist()):
                if info.is_dir():
                    continue
                if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                    # For other methods Python unpacks without a bound.
                    raise ValueError(f"{info.filename} is not compressed by deflate")
                kind = "120000" if stat.S_ISLNK(info.external_attr >> 16) else "100644"
                if info.filename in read and kind == "100644":
                    with archive.open(info) as file:
                        yield _Member(kind, info.filename, info.file_size, file)
                else:
                    yield _Member(kind, info.filename, info.file_size, None)
        return
    with _open_tar(path) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r:") as tar:
        for entry in _bounded(tar):
            if entry.isdir():
                continue
            if entry.size < 0:
                raise ValueError(f"{entry.name} has a negative size")
            name = entry.name.removeprefix("./")
            kind = "100644" if entry.isreg() else "120000" if entry.issym() else "special"
            content = tar.extractfile(entry) if name in read and entry.isreg() else None
            yield _Member(kind, name, entry.size, content)


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
