"""The text of a file, and the words that it is indexed by besides its own. Pure."""

from __future__ import annotations

import re

from llm_kb.subjects.topics import is_binary

_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z]{2})(?=[a-z]))[a-z0-9]*")
"""A hump in the midst of a word: `Default` of `getDefault`, `Server` of `HTTPServer`."""

_LAST_WORD = re.compile(r"(?<![^\W_])[^\W_]+\Z")
_FIRST_WORD = re.compile(r"[^\W_]+")
_LONGEST_HUMP = 40
_LONGEST_KEPT = 60


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
