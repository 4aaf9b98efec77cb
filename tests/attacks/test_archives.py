"""Hostile archives, as sources or to import a topic from."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.references.errors import FetchError
from llm_kb.references.fetch.create import create_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.fetch.share import (
    MAX_TOPIC_FILE,
    export_topic,
    fetch_archive,
    import_topic,
)
from llm_kb.references.library import Library
from llm_kb.references.sources import archive
from llm_kb.references.sources.archive import list_archive, read_archive
from llm_kb.references.sources.records import WebSource
from llm_kb.references.topic.provenance import hash_content
from tests.conftest import RunLlm
from tests.cost import peak_of
from tests.references.conftest import clock, library, site  # noqa: F401 - fixtures
from tests.references.requests import PAGE, files_of, request, yes
from tests.references.sites import Site


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


# Topics

Files = dict[str, bytes]
NAME = "topic-frob"


@pytest.fixture
def packed(library: Library, site: Site, tmp_path: Path) -> Path:  # noqa: F811
    """An exported topic of one page."""
    create_topic(library, request(WebSource(url=site.put("/a", PAGE))), yes)
    path = tmp_path / "frob.tar.gz"
    export_topic(library, NAME, path)
    return path


@pytest.fixture
def other(library: Library, tmp_path: Path) -> Library:  # noqa: F811
    """The library of somebody else."""
    return replace(library, root=tmp_path / "other")


def repack(
    path: Path, change: Callable[[Files], object], again: tuple[str, bytes] | None = None
) -> None:
    """Change what an archive holds; with `again` a second entry has a name of the first."""
    with tarfile.open(path) as tar:
        files = {e.name.partition("/")[2]: (tar.extractfile(e) or io.BytesIO()).read() for e in tar}
    change(files)
    with tarfile.open(path, "w:gz") as tar:
        for name, data in (*files.items(), *([again] if again else ())):
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def record_also(name: str, data: bytes) -> Callable[[Files], None]:
    """Return a change that puts a file into an archive, and into its record."""

    def change(files: Files) -> None:
        record = json.loads(files[".provenance.json"])
        (known, *_) = record["files"].values()
        record["files"][name] = {**known, "hash": hash_content(data), "size": len(data)}
        files[".provenance.json"] = json.dumps(record).encode()
        files.setdefault(name, data)

    return change


def set_key(key: str, value: str) -> Callable[[Files], None]:
    """Return a change that writes a key into the front matter of `topic.md`."""

    def change(files: Files) -> None:
        lines = files["topic.md"].decode().splitlines()
        lines = [line for line in lines if not line.startswith(f"{key} ")]
        files["topic.md"] = "\n".join([lines[0], f"{key} = {value}", *lines[1:]]).encode()

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(record_also("../up.md", b"x"), id="a way out"),
        pytest.param(record_also("/tmp/abs.md", b"x"), id="an absolute name"),
        pytest.param(record_also("a/.git/config", b"x"), id="a repository's configuration"),
        pytest.param(record_also("a\x1b[2J.md", b"x"), id="an escape code"),
        pytest.param(record_also("C:evil.md", b"x"), id="a drive"),
        pytest.param(record_also("con", b"x"), id="a device of Windows"),
        pytest.param(lambda files: record_also("topic.md", files["topic.md"])(files), id="ours"),
        pytest.param(set_key("x", f"'{'x' * MAX_TOPIC_FILE}'"), id="a long topic.md"),
        pytest.param(set_key("id", "'topic-../../x'"), id="an id that leads out"),
        pytest.param(set_key("title", "'\u202e'"), id="a title that shows nothing"),
    ],
)
def test_a_hostile_topic_is_refused_whole(
    packed: Path, other: Library, change: Callable[[Files], object]
) -> None:
    repack(packed, change)
    with pytest.raises(KbError):
        import_topic(other, packed)
    assert other.store.ids() == []
    assert not (other.root.parent / "up.md").exists()


def test_a_second_entry_of_a_name_is_verified_too(packed: Path, other: Library) -> None:
    name = "evil.md"
    repack(packed, record_also(name, b"good"), (name, b"evil"))
    with pytest.raises(KbError, match="is not the file that its record names"):
        import_topic(other, packed)
    assert other.store.ids() == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(set_key("max_age_days", "9000000000000000000"), id="days without end"),
        pytest.param(set_key("fetched_at", "0001-01-01T00:00:00+14:00"), id="before time"),
        pytest.param(set_key("fetched_at", "9999-12-31T23:59:59-14:00"), id="after time"),
        pytest.param(set_key("trust_score", "9000000000000000000"), id="trusted without end"),
        pytest.param(set_key("tags", '["\\u001b[2J", "\\u202e", "</knowledge>"]'), id="tags"),
        pytest.param(set_key("created_by", '{ghost = "\\u001b[2J"}'), id="its author"),
    ],
)
def test_whatever_a_topic_says_of_itself_commands_go_on(
    packed: Path, run_llm: RunLlm, change: Callable[[Files], object]
) -> None:
    repack(packed, change)
    run_llm(["kb", "references", "import", str(packed)])
    for command in (
        ["references", "list"],
        ["references", "show", NAME],
        ["references", "search", "hooks"],
        ["references", "refresh", "--stale"],
        ["list"],
        ["prompt", "-k", f"{NAME}/**"],
    ):
        result = run_llm(["kb", *command])
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        assert "Traceback" not in result.stderr


def test_an_address_is_shown_as_it_is_asked(library: Library) -> None:  # noqa: F811
    shown: list[str] = []

    def approve(host: str) -> bool:
        shown.append(host)
        return False

    with pytest.raises(KbError, match="you said no"):
        fetch_archive(library, "https://fa\u00df.invalid/x.tar.gz", None, approve)
    assert shown == ["xn--fa-hia.invalid"]


def test_what_is_new_of_an_imported_topic_is_asked_about_once(
    packed: Path,
    other: Library,
    site: Site,  # noqa: F811
) -> None:
    """Who packed it chose its hosts."""
    import_topic(other, packed)
    reasons: list[str] = []

    def approve(_: object, reason: str) -> bool:
        reasons.append(reason)
        return True

    for text in ("<p>second", "<p>third"):
        site.put("/a", text)
        refresh_topic(other, NAME, approve)
    host = site.url.removeprefix("http://")
    assert reasons == [f"no approval of its hosts is recorded here: {host}"]
    assert list(files_of(other).values()) == ["third\n"]
