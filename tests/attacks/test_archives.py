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


def pax(records: dict[str, str]) -> bytes:
    """Return an extended header for the next entry."""
    data = b""
    for key, value in records.items():
        record = f" {key}={value}\n".encode()
        length = next(
            n for n in range(len(record), len(record) + 9) if n - len(str(n)) == len(record)
        )
        data += str(length).encode() + record
    return header("x", b"%011o\0" % len(data), b"x") + data + b"\0" * (-len(data) % 512)


def test_a_sparse_file_is_refused_before_its_map_is_read(tmp_path: Path) -> None:
    """A map of 3 MB in the archive took minutes of processor time and gigabytes."""
    path = tmp_path / "x.tar.gz"
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.md"}
    number = 3_000_000
    with gzip.open(path, "wb", 1) as file:
        file.write(pax({**sparse, "GNU.sparse.realsize": "10"}))
        file.write(header("a.md", b"%011o\0" % 1024) + f"{number}\n".encode())
        file.write(b"1\n" * number * 2)

    def read() -> None:
        with pytest.raises(FetchError, match="it has a sparse file"):
            list_archive(path)

    assert peak_of(read) < 5_000_000


def test_headers_are_not_kept(tmp_path: Path) -> None:
    """`tarfile` keeps what every entry says of itself until the archive is closed."""
    path = tmp_path / "x.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        for number in range(400):
            file.write(pax({"comment": "x" * 50_000}) + header(f"{number}.md", EMPTY))
        file.write(END)
    assert peak_of(lambda: list_archive(path)) < 5_000_000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"9" * 60_000, id="a length without end"),
        pytest.param(b"0 a=b\n", id="a record without length"),
        pytest.param(b"-5 a=b\n", id="a negative length"),
        pytest.param(b"1" * 30_000 + b" hdrcharset=" + b"1" * 30_000, id="a character set"),
    ],
)
def test_a_broken_header_is_refused_in_time(tmp_path: Path, data: bytes) -> None:
    """`tarfile` of older Pythons looks for its end from each digit on."""
    path = tmp_path / "x.tar"
    extended = header("x", b"%011o\0" % len(data), b"x") + data + b"\0" * (-len(data) % 512)
    path.write_bytes(extended + header("a.md", EMPTY) + END)
    with pytest.raises(FetchError, match="it is not an archive that can be read"):
        list_archive(path)


def test_what_archives_say_is_read_as_their_makers_mean_it(tmp_path: Path) -> None:
    """Names of every form, as the standard library writes them, and what is not a file."""
    names = ["a.md", "d/" + "n" * 120 + ".md", "p/" * 60 + "q.md", "\u00e4/\u65e5.md", "l" * 300]
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = tmp_path / f"{form}.tar.gz"
        kept = [name for name in names if form != tarfile.USTAR_FORMAT or len(name) < 100]
        with tarfile.open(path, "w:gz", format=form) as tar:
            for name in kept:
                entry = tarfile.TarInfo(f"top/{name}")
                entry.size, entry.mtime = 3, 1.5
                tar.addfile(entry, io.BytesIO(b"abc"))
            folder = tarfile.TarInfo("top/d")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
        assert [file.path for file in list_archive(path)] == kept
        assert dict(read_archive(path, kept)) == dict.fromkeys(kept, b"abc")
