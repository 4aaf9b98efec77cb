"""Outlines and chunks of documents, and the words they are indexed by. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from llm_kb.subjects.topics import is_binary

MAX_TITLE = 200
"""Longest label or title, in characters; longer ones are shortened."""

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z]{2})(?=[a-z]))[a-z0-9]*")
"""A hump in the midst of a word: `Default` of `getDefault`, `Server` of `HTTPServer`."""

_LAST_WORD = re.compile(r"[^\W_]+\Z")
_FIRST_WORD = re.compile(r"[^\W_]+")
_LONGEST_HUMP = 40
_LONGEST_KEPT = 60


class Mark(NamedTuple):
    """The start of a section of a document: a heading or a definition.

    A mark of the same or a smaller depth ends the section. A mark without a
    label ends sections and begins none.
    """

    offset: int
    depth: int
    label: str


class Outline(NamedTuple):
    """The structure of a text: its marks, and disjoint spans not to be cut, both in order."""

    marks: Sequence[Mark] = ()
    wholes: Sequence[tuple[int, int]] = ()
    """Offsets of spans, such as fenced code, that stay whole if they fit."""
    separator: str = " > "
    """Separator between the labels of nested sections in a title."""
    start: int = 0
    end: int | None = None
    """Where the text of its own begins and ends, without what surrounds it on an HTML page."""

    @property
    def is_code(self) -> bool:
        """Tell whether the marks are definitions."""
        return self.separator == "."


class Chunk(NamedTuple):
    """A span of a document: the unit of indexing and of results.

    The title names the section with those around it. The heading names only sections that begin
    in this chunk; it is empty if the chunk continues an earlier one. Lines count from 1, both
    inclusive. The hash depends on the content and not on the position.
    """

    title: str
    heading: str
    text: str
    first_line: int
    last_line: int

    @property
    def hash(self) -> bytes:
        """Return 16 bytes that identify title, heading and text."""
        joined = f"{self.title}\0{self.heading}\0{self.text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(joined, digest_size=16).digest()


def shorten_label(text: str) -> str:
    """Return a heading or a name on one line, shortened if it is too long."""
    label = " ".join(text[: 4 * MAX_TITLE].split())
    return label if len(label) <= MAX_TITLE else f"{label[: MAX_TITLE - 1]}…"


def decode_document(data: bytes) -> str | None:
    """Return the text of a file; None if it is binary.

    Undecodable bytes are replaced, and NULs after the sniffed part and a byte order mark are
    removed.
    """
    if is_binary(data):
        return None
    text = data.decode("utf-8-sig", "replace")
    return text.replace("\0", "") if b"\0" in data else text


_UNSPACED = re.compile(
    # Han, Kana and Hangul: written without spaces between words, or with few.
    "[\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def find_more_words(text: str) -> str:
    """Return additional words to index a text by: parts of identifiers, pairs of characters."""
    pairs = [] if text.isascii() else split_unspaced(text)
    return " ".join([split_identifiers(text), *pairs])


def split_unspaced(text: str) -> list[str]:
    """Return the pairs of neighbouring characters of scripts without spaces, each once.

    Words right before or after them are included: `Django設定` gives both.
    """
    parts: dict[str, None] = {}
    for match in _UNSPACED.finditer(text):
        start, end = match.span()
        run = match[0]
        parts |= dict.fromkeys(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        before = _LAST_WORD.search(text, max(0, start - _LONGEST_KEPT), start)
        after = _FIRST_WORD.match(text, end, end + _LONGEST_KEPT)
        parts |= dict.fromkeys(found[0] for found in (before, after) if found)
    return list(parts)


def split_identifiers(text: str) -> str:
    """Return the parts of every camel-case identifier of a text, each once.

    `HTTPServer` gives `HTTP Server`. Other identifiers are left to the index,
    whose tokenizer splits them at underscores and dots.
    """
    parts: dict[str, None] = {}
    for match in _HUMP.finditer(text):
        start = match.start()
        parts[text[_hump_before(text, start) : start]] = None
        parts[match[0]] = None
    return " ".join(parts)


def _hump_before(text: str, end: int) -> int:
    """Return the start of the hump that ends at an offset, in any alphabet."""
    start = end - 1
    last = max(0, end - _LONGEST_HUMP)
    if text[start].isupper():
        while start > last and text[start - 1].isupper():
            start -= 1
        return start
    # A loop, since a regular expression is slow at searching backwards.
    while start > last and (text[start - 1].islower() or text[start - 1].isdigit()):
        start -= 1
    return start - 1 if start > last and text[start - 1].isupper() else start
