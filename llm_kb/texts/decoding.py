"""Turns bytes into text: the one place that knows encodings. Pure.

A byte order mark comes before the rule that a NUL byte makes a file binary. What is not UTF-8 is
read by the charset that it declares; otherwise undecodable bytes are replaced. No charset is
guessed. What cannot be read is a value with a reason.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Any, NamedTuple

MOST_BYTES = 20_000_000
"""The bytes of the largest text that is read: whoever reads a text has at most so many."""

START = 8_192
"""The first bytes, or characters, by which a text is judged."""

BINARY, TOO_LARGE = "binary file", f"larger than {MOST_BYTES // 1_000_000} MB"

_MARKS = (  # those of UTF-32 first: one of them begins as one of UTF-16 does
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)
ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
"""A byte that is not valid in UTF-8, as `surrogateescape` decodes it."""

_DECLARATION = re.compile(
    rb"<meta[^<>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w:.-]{1,40})"
    rb"|\A\s{0,99}<\?xml[^<>]{0,200}?encoding[ \t]{0,9}=[ \t]{0,9}[\"']([\w:.-]{1,40})"
    rb"|\A(?:[^\n]{0,200}\n)?[ \t]{0,9}(?:#|//|;|%|\.\. |<!--)[^\n]{0,80}?coding[:=][ \t]{0,9}"
    rb"([\w.-]{1,40})",
    re.IGNORECASE,
)
"""What a page, XML or source code says of its charset in its first lines."""


class Text(NamedTuple):
    """The text of some bytes; line ends of old Macs are line feeds."""

    text: str = ""
    charset: str = ""
    """The charset, if it is not UTF-8, as `iconv` knows it."""
    invalid: int = 0
    """The number of bytes that are not valid in UTF-8, if no other charset is known: in the text
    they are half surrogates, which `surrogateescape` encodes again."""
    problem: str = ""
    """Why there is no text; empty if there is."""


def decode(data: bytes, *, whole: bool = True) -> Text:
    """Return the text of a file's bytes, or of its first bytes if they are not the `whole` file.

    A byte order mark is removed, and so is an incomplete character at the end of first bytes.
    """
    if charset := _find_wide(data[:START]):
        return Text(_end_lines(_decode_as(data, charset, whole=whole)), charset)
    if data.find(0, 0, START) >= 0:
        return Text(problem=BINARY)
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return Text(_end_lines(codecs.utf_8_decode(data, "strict", whole)[0]))
    except UnicodeDecodeError:
        return _decode_legacy(data, whole=whole)


def is_binary(data: bytes) -> bool:
    """Tell by its first bytes whether a file is not text."""
    return data.find(0, 0, START) >= 0 and not _find_wide(data[:START])


def open_text(data: bytes, *, whole: bool = True) -> Text:
    """Return the text of a file's bytes as each reader has it: the one door for text.

    Behind it, a text is of at most MOST_BYTES, has no NUL and no undecodable byte, and a
    placeholder for each file embedded in it. Every reader is linear in its length.
    """
    if len(data) > MOST_BYTES:
        return Text(problem=TOO_LARGE)
    found = decode(data, whole=whole)
    text = ESCAPED_BYTE.sub("\ufffd", found.text) if found.invalid else found.text
    return found._replace(text=hide_embedded(text.replace("\0", ""))[0])


def to_utf_8(data: bytes, *, whole: bool = True) -> tuple[bytes, str]:
    """Return a file's bytes as UTF-8, and a note on the charset that they had.

    They come back unchanged, with an empty note, if they are UTF-8, binary or of an unknown
    charset; line ends of old Macs become line feeds in any case.
    """
    is_plain = (data.isascii() and b"\0" not in data) or is_binary(data)
    found = Text() if is_plain else decode(data, whole=whole)
    if not found.charset:
        return _end_lines_of(data), ""
    return found.text.encode("utf-8", "surrogatepass"), f"read as {found.charset}"


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


def _find_wide(sample: bytes) -> str:
    """Return the charset of UTF-16 or UTF-32, by its byte order mark; empty without one."""
    for mark, charset in _MARKS:
        if sample.startswith(mark):
            with suppress(UnicodeDecodeError):  # else it is a mark by chance
                codecs.getincrementaldecoder(charset)().decode(sample)
                return charset
    return ""


def _decode_as(data: bytes, charset: str, *, whole: bool) -> str:
    text = codecs.getincrementaldecoder(charset)("replace").decode(data, final=whole)
    return text.removeprefix("\ufeff").replace("\0", "")


def _decode_legacy(data: bytes, *, whole: bool) -> Text:
    """Return text that is not UTF-8: by what it declares, else as UTF-8."""
    text, _ = codecs.utf_8_decode(data, "surrogateescape", whole)
    invalid = len(ESCAPED_BYTE.findall(text))
    beyond = len(data) - len(re.sub(rb"[\x80-\xff]+", b"", data))
    if 2 * invalid < beyond:  # most of it is UTF-8
        return Text(_end_lines(text), invalid=invalid)
    declared = _find_declaration(data)
    if declared is not None and declared.name != "utf-8":
        decoder = declared.codec_info.incrementaldecoder()
        with suppress(UnicodeDecodeError):  # else it says what it is not
            return Text(_end_lines(decoder.decode(data, whole)), declared.name)
    return Text(_end_lines(text), invalid=invalid)


def _find_declaration(data: bytes) -> Any:
    """Return the charset that a text declares in its first bytes; None if none is known."""
    found = _DECLARATION.search(data[:START])
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


_EMBEDDED = re.compile(
    r"(data:(?:image|audio|video|font|application)/[\w.+-]{1,60}(?:;[\w=.-]{1,60}){0,5},)"
    r"[^\s\"'()<>\[\]{}\\]{200,}",
)
"""The address of a picture or another file that is itself in the text."""


def hide_embedded(text: str) -> tuple[str, int]:
    """Return a text with a placeholder for each file embedded in it, and their number.

    Lines stay what they are.
    """
    return _EMBEDDED.subn(r"\1…", text) if "data:" in text else (text, 0)
