"""Turns bytes into text: the one place that knows encodings. Pure.

A byte order mark, or the pattern of zeros of UTF-16 and UTF-32, comes before the rule that a NUL
byte makes a file binary. What is not UTF-8 is read by the charset that it declares; otherwise
undecodable bytes are replaced. No charset is guessed. What cannot be read is a value with a reason.
"""

from __future__ import annotations

import re
from codecs import (
    BOM_UTF8,
    BOM_UTF16_BE,
    BOM_UTF16_LE,
    BOM_UTF32_BE,
    BOM_UTF32_LE,
    getincrementaldecoder,
    utf_8_decode,
)
from typing import Any, NamedTuple

SNIFFED_BYTES = 8192
"""The number of first bytes by which a file is judged."""

BINARY = "binary file"

_MARKS = (  # those of UTF-32 first: one of them begins as one of UTF-16 does
    (BOM_UTF32_LE, "UTF-32LE"),
    (BOM_UTF32_BE, "UTF-32BE"),
    (BOM_UTF16_LE, "UTF-16LE"),
    (BOM_UTF16_BE, "UTF-16BE"),
)
_UNITS = {"UTF-32LE": 4, "UTF-32BE": 4, "UTF-16LE": 2, "UTF-16BE": 2}

_FEWEST_BYTES = 8
"""Fewer bytes show no pattern."""

_FEWEST_ZEROS = 100
"""Of so many characters in UTF-16 one at least is a line end, a space or another of ASCII."""

_MOST_ODD = 0.02
"""The share of a text's characters that may be unassigned, private or controls."""

ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
"""A byte that is not valid in UTF-8, as `surrogateescape` decodes it."""

_ASCII = re.compile(rb"[\0\t\n\r -~]+")

_DECLARATION = re.compile(
    rb"<meta[^<>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w:.-]{1,40})"
    rb"|\A\s{0,99}<\?xml[^<>]{0,200}?encoding[ \t]{0,9}=[ \t]{0,9}[\"']([\w:.-]{1,40})"
    rb"|\A(?:[^\n]{0,200}\n)?[ \t]{0,9}(?:#|//|;|%|\.\. |<!--)[^\n]{0,80}?coding[:=][ \t]{0,9}"
    rb"([\w.-]{1,40})",
    re.IGNORECASE,
)
"""What a page, XML or source code says of its charset in its first lines."""

_DECLARING_BYTES = 4096


class Text(NamedTuple):
    """The text of some bytes; line ends of old Macs are line feeds."""

    text: str = ""
    charset: str = ""
    """The charset, if it is not UTF-8, as `iconv` knows it."""
    how: str = ""
    """How it is known: `byte order mark`, `zeros` or `declared`."""
    invalid: int = 0
    """The number of bytes that are not valid in UTF-8, if no other charset is known: in the text
    they are half surrogates, which `surrogateescape` encodes again."""
    problem: str = ""
    """Why there is no text; empty if there is."""


def decode(data: bytes, *, whole: bool = True) -> Text:
    """Return the text of a file's bytes, or of its first bytes if they are not the `whole` file.

    A byte order mark is removed, and so is an incomplete character at the end of first bytes.
    """
    if wide := _find_wide(data[:SNIFFED_BYTES]):
        charset, how, start = wide
        return Text(_end_lines(_decode_as(data[start:], charset, whole=whole)), charset, how)
    if data.find(0, 0, SNIFFED_BYTES) >= 0:
        return Text(problem=BINARY)
    data = data.removeprefix(BOM_UTF8)
    try:
        return Text(_end_lines(utf_8_decode(data, "strict", whole)[0]))
    except UnicodeDecodeError:
        return _decode_legacy(data, whole=whole)


def is_binary(data: bytes) -> bool:
    """Tell by its first bytes whether a file is not text."""
    return data.find(0, 0, SNIFFED_BYTES) >= 0 and _find_wide(data[:SNIFFED_BYTES]) is None


def decode_text(data: bytes, *, whole: bool = True) -> str | None:
    """Return the text of a file to be searched; None if it is binary.

    Undecodable bytes are replaced, and NULs are removed.
    """
    found = decode(data, whole=whole)
    if found.problem:
        return None
    text = ESCAPED_BYTE.sub("\ufffd", found.text) if found.invalid else found.text
    return text.replace("\0", "")


def to_utf_8(data: bytes, *, whole: bool = True) -> tuple[bytes, str]:
    """Return a file's bytes as UTF-8, and a note on the charset that they had.

    They come back unchanged, with an empty note, if they are UTF-8, binary or of an unknown
    charset; line ends of old Macs become line feeds in any case.
    """
    if (data.isascii() and b"\0" not in data) or is_binary(data):
        return _end_lines_of(data), ""
    found = decode(data, whole=whole)
    if not found.charset:
        return _end_lines_of(data), ""
    by = ", as it says" if found.how == "declared" else ""
    return found.text.encode("utf-8", "surrogatepass"), f"read as {found.charset}{by}"


def explain_conversion(data: bytes, *, whole: bool = True) -> str:
    """Return why a text is not UTF-8, and how to convert it; empty if it is UTF-8 or binary."""
    if is_binary(data):
        return ""
    found = decode(data, whole=whole)
    if not (found.charset or found.invalid):
        return ""
    named = f"{found.charset}, not" if found.charset else "not"
    return f"it is {named} UTF-8; to convert it: iconv -f {found.charset or 'CHARSET'} -t UTF-8"


def decode_page(data: bytes, declared: str = "", *, is_html: bool = True) -> str:
    """Return the text of a page as browsers read it.

    A byte order mark comes first, then the charset `declared` by the server, then what the page
    says. Without any it is UTF-8, but HTML that is not valid in that is windows-1252. Charsets are
    those of browsers (WHATWG): Python knows more, but some of its codecs take quadratic time.
    """
    import webencodings  # noqa: PLC0415 - only pages and what is not UTF-8 need it

    found = _lookup(declared)
    if found is None and (said := _find_declaration(data)):
        # A page whose declaration can be read as ASCII is not UTF-16, whatever it says.
        found = webencodings.UTF8 if said.name.startswith("utf-16") else said
    if found is None:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            found = webencodings.lookup("windows-1252" if is_html else "utf-8")
    text: str = webencodings.decode(data, found)[0]
    return text


def _find_wide(sample: bytes) -> tuple[str, str, int] | None:
    """Return the charset of UTF-16 or UTF-32, how it is known, and where the text begins."""
    for mark, charset in _MARKS:
        if sample.startswith(mark) and _is_prose(sample[len(mark) :], charset):
            return charset, "byte order mark", len(mark)
    if b"\0" not in sample or len(sample) < _FEWEST_BYTES:
        return None
    for charset in _UNITS:
        if _has_zeros_of(sample, charset) and _is_prose(sample, charset):
            return charset, "zeros", 0
    return None


def _has_zeros_of(sample: bytes, charset: str) -> bool:
    """Tell whether the zeros of a sample are where a charset has those of its ASCII characters."""
    unit = _UNITS[charset]
    order = 1 if charset.endswith("BE") else -1
    # From the highest byte of a character to the lowest.
    planes = [sample[: len(sample) // unit * unit][place::unit] for place in range(unit)][::order]
    if unit == 4:
        return not planes[0].strip(b"\0") and max(planes[1], default=0xFF) <= 0x10
    zeros = planes[0].count(0)
    if 0 in planes[1] or zeros * _FEWEST_ZEROS < len(planes[0]):
        return False
    # Few zeros in ASCII text are no other charset: that has many bytes beyond it.
    return 2 * zeros > len(planes[0]) or 5 * len(_ASCII.sub(b"", sample)) >= len(sample)


def _is_prose(sample: bytes, charset: str) -> bool:
    """Tell whether a sample is valid in a charset, and nearly all of its characters are of text."""
    try:
        text = getincrementaldecoder(charset)().decode(sample)
    except UnicodeDecodeError:
        return False
    odd = sum(not (c.isprintable() or c.isspace() or c in "\u200b\ufeff") for c in text)
    return odd <= len(text) * _MOST_ODD


def _decode_as(data: bytes, charset: str, *, whole: bool) -> str:
    return getincrementaldecoder(charset)("replace").decode(data, final=whole).replace("\0", "")


def _decode_legacy(data: bytes, *, whole: bool) -> Text:
    """Return text that is not UTF-8: by what it declares, else as UTF-8."""
    text, _ = utf_8_decode(data, "surrogateescape", whole)
    invalid = len(ESCAPED_BYTE.findall(text))
    beyond = len(data) - len(re.sub(rb"[\x80-\xff]+", b"", data))
    if 2 * invalid < beyond:  # most of it is UTF-8
        return Text(_end_lines(text), invalid=invalid)
    declared = _find_declaration(data)
    if declared is not None and declared.name != "utf-8":
        decoder = declared.codec_info.incrementaldecoder()
        try:
            found: str = decoder.decode(data, whole)
            return Text(_end_lines(found), declared.name, "declared")
        except UnicodeDecodeError:
            pass  # it says what it is not
    return Text(_end_lines(text), invalid=invalid)


def _find_declaration(data: bytes) -> Any:
    """Return the charset that a text declares in its first bytes; None if none is known."""
    found = _DECLARATION.search(data[:_DECLARING_BYTES])
    return _lookup(found[found.lastindex or 0].decode("latin-1")) if found else None


def _lookup(name: str) -> Any:
    """Return a charset as `webencodings` has it; None for an unknown one."""
    import webencodings  # noqa: PLC0415 - only pages and what is not UTF-8 need it

    # Servers write `latin-1` as Python does; browsers know `latin1`.
    found = webencodings.lookup(name) or webencodings.lookup(name.replace("-", ""))
    return None if found is None or found.name in {"replacement", "x-user-defined"} else found


def _end_lines(text: str) -> str:
    """Return a text with line feeds at its lines' ends if they have a carriage return alone."""
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def _end_lines_of(data: bytes) -> bytes:
    return data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data
