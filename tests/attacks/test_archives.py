"""Hostile archives as sources."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from llm_kb.references.errors import FetchError
from llm_kb.references.sources import archive
from llm_kb.references.sources.archive import list_archive, read_archive
from tests.cost import peak_of
from tests.references.conftest import clock, library, site  # noqa: F401 - fixtures


def header(name: str, size: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return an entry's header with any size field, and the checksum it needs."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    block[124:136], block[156:157], block[148:156] = size, kind, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


EMPTY = b"0" * 11 + b"\0"
END = b"\0" * 1024
LONG = 50 << 20


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_long_header_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """A few kilobytes unpack to as much as their writer likes, and `tarfile` reads it at once."""
    path = tmp_path / "x.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(header("x", b"%011o\0" % LONG, kind))
        file.write(b"a" * LONG)
        file.write(header("a.md", EMPTY) + END)

    def read() -> None:
        with pytest.raises(FetchError, match="its headers are too long"):
            list_archive(path)

    assert peak_of(read) < 20_000_000


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(b"\xff" * 11 + b"\0", id="below zero"),
        pytest.param(b"\xff" * 10 + b"\xfc\0", id="back to an entry"),
        pytest.param(b"\xff" * 10 + b"\xf8\0", id="back before the beginning"),
        pytest.param(b"\x80" + b"\x7f" * 11, id="without end"),
    ],
)
@pytest.mark.parametrize("kind", [b"0", b"x", b"g", b"L", b"K", b"S", b"1", b"7"])
def test_sizes_that_lie_are_refused_or_read_to_their_end(
    tmp_path: Path, size: bytes, kind: bytes
) -> None:
    """Some of them lead `tarfile` back to an earlier entry, again and again."""
    path = tmp_path / "x.tar"
    path.write_bytes(header("a", EMPTY) + header("b", size, kind) + header("c", EMPTY) + END)
    try:
        found = list_archive(path)
    except FetchError:
        return
    assert all((file.size or 0) >= 0 for file in found)


def test_what_unpacks_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 1_000_000)
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("a.md", "b.md"):
            entry = tarfile.TarInfo(name)
            entry.size = 2_000_000
            tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    with pytest.raises(FetchError, match="it unpacks to over 1,000,000 bytes"):
        list_archive(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_bound_are_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", method) as packed:
        packed.writestr("a.md", b"x" * 1000)
    with pytest.raises(FetchError, match=r"a\.md is not compressed by deflate"):
        list(read_archive(path, ["a.md"]))


def test_an_entry_without_a_name_is_refused(tmp_path: Path) -> None:
    """Python asks for the last letter of its name."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a", b"x")
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")  # in the directory: the name becomes a comment
    data[entry + 28], data[entry + 32] = 0, 1
    path.write_bytes(data)
    with pytest.raises(FetchError, match="it is not an archive that can be read"):
        list_archive(path)


def test_links_and_devices_are_not_files(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind in (("a", tarfile.LNKTYPE), ("b", tarfile.SYMTYPE), ("c", tarfile.CHRTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    assert [file.mode for file in list_archive(path)] == ["special", "120000", "special"]
    assert list(read_archive(path, ["a", "b", "c"])) == []
