"""Bytes as text: byte order marks, zeros, declared charsets, old line ends."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.texts.decoding import (
    BINARY,
    MOST_BYTES,
    START,
    Text,
    decode,
    decode_page,
    explain_conversion,
    is_binary,
    open_text,
    to_utf_8,
)

PROSE = "# Größe\n\nDer Fluß ist 100 km lang.\n"


@pytest.mark.parametrize(
    ("mark", "charset"),
    [
        (codecs.BOM_UTF16_LE, "UTF-16LE"),
        (codecs.BOM_UTF16_BE, "UTF-16BE"),
        (codecs.BOM_UTF32_LE, "UTF-32LE"),
        (codecs.BOM_UTF32_BE, "UTF-32BE"),
    ],
)
def test_wide_text_is_read_with_a_byte_order_mark(mark: bytes, charset: str) -> None:
    data = PROSE.encode(charset)
    assert decode(mark + data) == Text(PROSE, charset)
    assert not is_binary(mark + data)
    assert decode(data) == Text(problem=BINARY)
    assert to_utf_8(mark + data) == (PROSE.encode(), f"read as {charset}")
    # Cut anywhere, as a listing reads it.
    assert PROSE.startswith(decode((mark + data)[:41], whole=False).text)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"a\0b\0\0\0\1\2" * 50, id="zeros anywhere"),
        pytest.param(b"\x7fELF\2\1\1\0\0\0\0\0\3\0\x3e\0", id="a program"),
        pytest.param(b"text with one \0 zero", id="one zero"),
        pytest.param(codecs.BOM_UTF16_LE + bytes(range(256)) * 8, id="a mark by chance"),
        pytest.param(bytes(100), id="zeros alone"),
    ],
)
def test_all_else_with_a_zero_is_binary(data: bytes) -> None:
    assert decode(data) == Text(problem=BINARY)
    assert is_binary(data)
    assert open_text(data) == Text(problem=BINARY)
    assert to_utf_8(data) == (data, "")
    assert explain_conversion(data) == ""


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("windows-1252", "Le déploiement prépare la fenêtre, puis crée à côté une sauvegarde.\n"),
        ("koi8-r", "Развертывание требует двух подтверждений, иначе сервер останется прежним.\n"),
        ("shift_jis", "デプロイには二人の承認が必要です。設定ファイルを編集してください。\n"),
    ],
)
def test_no_charset_is_guessed(charset: str, text: str) -> None:
    data = (text * 40).encode(charset)
    found = decode(data)
    assert (found.text, found.charset) == (data.decode("utf-8", "surrogateescape"), "")
    assert found.invalid == sum("\udc80" <= each <= "\udcff" for each in found.text) > 0
    assert open_text(data).text == data.decode("utf-8", "surrogateescape").translate(
        dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
    )
    assert to_utf_8(data) == (data, "")
    assert explain_conversion(data) == "it is not UTF-8; to convert it: iconv -f CHARSET -t UTF-8"


def test_a_few_bad_bytes_make_no_other_charset() -> None:
    data = ("é" * 300).encode() + b"\xff"
    assert decode(data) == Text("é" * 300 + "\udcff", invalid=1)


@given(st.binary(max_size=2_000).map(lambda data: data * 3))
def test_no_bytes_are_an_error(data: bytes) -> None:
    found = decode(data)
    assert bool(found.problem) == is_binary(data)
    decode(data, whole=False)
    decode_page(data)
    to_utf_8(data)[0].decode("utf-8", "surrogateescape")


@given(st.text())
def test_what_is_utf_8_stays_as_it_is(text: str) -> None:
    text = text.replace("\0", "").removeprefix("\ufeff")
    data = text.encode("utf-8", "ignore")
    if "\r" not in text or "\n" in text:
        assert to_utf_8(data) == (data, "")
        assert open_text(data).text == data.decode()


@pytest.mark.parametrize(
    "first", ["# -*- coding: latin-1 -*-\n", "<?xml version='1.0' encoding='iso-8859-1'?>\n"]
)
def test_a_declared_charset_counts(first: str) -> None:
    text = f"{first}é\n"
    assert decode(text.encode("latin-1")) == Text(text, "windows-1252")


def test_line_ends_of_old_macs_are_lines() -> None:
    assert decode(b"# A\r\rB\r").text == "# A\n\nB\n"
    assert to_utf_8(b"# A\r\rB\r") == (b"# A\n\nB\n", "")
    assert to_utf_8(b"# A\r\nB\rC\n") == (b"# A\r\nB\rC\n", "")


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        pytest.param(b"caf\xe9", "", "café", id="windows-1252 if UTF-8 fails"),
        pytest.param("café".encode(), "", "café", id="UTF-8"),
        pytest.param(b"caf\xe9", "utf-8", "caf\ufffd", id="as the server says"),
        pytest.param("<meta charset=utf-16>é".encode(), "", "<meta charset=utf-16>é", id="not so"),
        pytest.param(
            b'<?xml version="1.0" encoding="iso-8859-2"?>\xb1',
            "",
            '<?xml version="1.0" encoding="iso-8859-2"?>ą',
            id="XML",
        ),
        pytest.param(b"<meta charset=koi8-r>\xc1", "", "<meta charset=koi8-r>а", id="meta"),
        pytest.param(codecs.BOM_UTF8 + "é".encode(), "latin1", "é", id="a mark comes first"),
        pytest.param(b"\xe9", "none", "é", id="an unknown name"),
    ],
)
def test_pages_are_read_as_browsers_read_them(data: bytes, declared: str, text: str) -> None:
    assert decode_page(data, declared) == text


def test_one_door_has_every_bound_of_a_text() -> None:
    assert open_text(b"a\xff b" + b"\n" * START + b"\0c") == Text(
        f"a\ufffd b{chr(10) * START}c", invalid=1
    )
    assert open_text(b"x" * (MOST_BYTES + 1)) == Text(problem="larger than 20 MB")
    picture = f"![](data:image/png;base64,{'A' * 1_000})"
    assert open_text(picture.encode()).text == "![](data:image/png;base64,…)"
