"""The letters that an index and a question share. Pure.

Both are folded by the same function, so that words meet however they are written: in any case and
normal form, with ligatures, in full width, with soft hyphens or colours of a terminal; Latin and
Greek ones also without their accents, Cyrillic without the stress, Hebrew and Arabic without the
vowels that most texts leave out, and digits of all scripts. Other marks make other letters and
stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
"""The sequences by which a terminal shows colours, and the like."""

MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc"
    "\u09be-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a4d\u0a70\u0a71\u0a81-\u0a83\u0abc\u0abe-\u0acd"
    "\u0b01-\u0b03\u0b3c\u0b3e-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c\u0c3e-\u0c56"
    "\u0c81-\u0c83\u0cbc\u0cbe-\u0cd6\u0d00-\u0d03\u0d3b\u0d3c\u0d3e-\u0d4d\u0d57\u0d81-\u0d83"
    "\u0dca-\u0ddf\u0df2\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u0f71-\u0f84\u0f86\u0f87\u0f8d-\u0fbc\u102b-\u103e\u1056-\u1059\u135d-\u135f\u17b6-\u17d3"
    "\u1ab0-\u1ace\u1b34-\u1b44\u1dc0-\u1dff\u20d0-\u20dc\u3099\u309a\ufe20-\ufe2f"
)
"""Marks that belong to the letter before them, as between the brackets of a class."""

UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Letters of scripts with no spaces between words, or with few: Thai, Lao, Burmese, Khmer, Han,
kana and Hangul, likewise."""

WORD = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}])*")
"""A word of a folded text, as the index has it."""

_UNSEEN = re.compile("[\u00ad\u034f\u061c\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+")
"""Soft hyphens, joiners, variants and marks of direction: nobody types them in a question."""

_MOST_MARKS = 30
"""Marks that a letter keeps (UAX 15, 13): to order more takes the square of their number."""

_SIGNS_IN_A_ROW = re.compile(rf"[^\w\x00-\x7f]{{{_MOST_MARKS + 1},}}")
"""What may be as many marks."""

_ACCENTS = re.compile(
    "(?<=[a-z\u00df-\u024f\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+"
    "|(?<=[аеиоуыэюяіє])\u0301+"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0655\u0670]+"
)
"""What many texts leave out: accents, Cyrillic stress, points of Hebrew, vowels of Arabic."""

NAMED = {"c++": "cplusplus", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
"""Names that are words only with their signs, and the words that stand for them."""

_SPACED = rf"(?![{UNSPACED}])\w"
_NAMED = re.compile(
    rf"(?<!{_SPACED})(?:(?<![+#.])(?:c\+\+|[cf]#)(?![a-z_+#])|(?<!\.)\.net(?!{_SPACED}))"
)


_ALIKE = {
    **dict(zip("ıłøđё", "ilodе", strict=True)),  # noqa: RUF001 - those are the letters
    **dict(zip("ٱیىکةە", "اييكهه", strict=True)),
    "œ": "oe",
    "æ": "ae",
}
"""Letters that people type for others: on another keyboard, or since most texts leave dots out."""

_SIGNS = {word: name for name, word in NAMED.items()}


def unfold(word: str) -> str:
    """Return a word of a folded text as people write it."""
    return _SIGNS.get(word, word)


class _Letters(dict[int, str]):
    """The letters that stand for others in lower case: compatible ones, Latin without accents."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        # Not signs: `Java™` must not become `javatm`, nor `x²` a number.
        if unicodedata.category(letter) in {"Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl"}:
            letter = unicodedata.normalize("NFKC", letter).casefold()
        if letter.isdecimal():
            letter = str(int(letter))
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", letter))
        bare = unicodedata.normalize("NFC", bare)
        self[code] = _ALIKE.get(bare, bare)
        return self[code]


_letters = _Letters()


def compose(text: str) -> str:
    """Return a text as its letters are seen: composed, without what is not seen; case stays."""
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    if text.isascii():
        return text
    text = _SIGNS_IN_A_ROW.sub(_drop_surplus, _UNSEEN.sub("", text))
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _drop_surplus(match: re.Match[str]) -> str:
    """Return signs in a row without the marks that are beyond those of any letter."""
    kept, marks = list[str](), 0
    for sign in match[0]:
        marks = marks + 1 if unicodedata.combining(sign) else 0
        if marks <= _MOST_MARKS:
            kept.append(sign)
    return "".join(kept)


def fold(text: str) -> str:
    """Return a text with the letters of the index, in lower case."""
    return fold_composed(compose(text))


def fold_composed(text: str) -> str:
    """Return what `fold` returns of a text that is composed already."""
    text = text.lower()
    if not text.isascii():
        # Most texts have a few such characters, and some hardly any others.
        beyond = len(text.encode("utf-8", "replace")) - len(text)
        is_dense = _DENSE * beyond > len(text)
        text = _fold_letters(text) if is_dense else _RUN.sub(_fold_run, text)
    if any(name in text for name in NAMED):
        text = _NAMED.sub(_name, text)
    return text


_DENSE = 50
"""With a byte beyond ASCII in so many, a text is folded as a whole, which takes less time."""

_RUN = re.compile("[\x00-\x7f]?[^\x00-\x7f]+")
"""Characters beyond ASCII, with the one before them that their marks may belong to."""


def _fold_run(match: re.Match[str]) -> str:
    return _fold_letters(match[0])


def _fold_letters(run: str) -> str:
    folded = _ACCENTS.sub("", run.translate(_letters))
    return (
        folded if unicodedata.is_normalized("NFC", folded) else unicodedata.normalize("NFC", folded)
    )


def _name(match: re.Match[str]) -> str:
    after = match.string[match.end() : match.end() + 1]
    return NAMED[match[0]] + (" " if after.isalnum() else "")


_PIECE = re.compile(
    rf"{ESCAPES.pattern}|[\x00-\x7f]?[^\x00-\x7f]+"
    rf"|(?i:(?<!{_SPACED})(?:(?<![+#.])(?:c\+\+|[cf]#)|(?<!\.)\.net))"
)
"""Pieces of a text whose length may change by folding."""


def is_aligned(text: str, folded: str) -> bool:
    """Tell whether each character of a folded text stands where its own stood before."""
    # What composing takes away must not be made up for by a letter that becomes two.
    return len(folded) == len(text) == len(compose(text))


def find_sources(text: str, folded: str) -> Sequence[int]:
    """Return the offset in a text from which each character of it, folded, comes.

    Within a run of characters beyond ASCII that folding shortens or lengthens it is near.
    """
    if is_aligned(text, folded):
        return range(len(text))
    sources: list[int] = []
    done = 0
    for piece in _PIECE.finditer(text):
        sources += range(done, piece.start())
        done = piece.end()
        # What follows decides how a name with signs is folded: `C++11`, `c++a`.
        after = text[done : done + 1]
        length = len(fold(piece[0] + after)) - len(fold(after))
        last = len(piece[0]) - 1
        sources += (piece.start() + min(at, last) for at in range(length))
    sources += range(done, len(text))
    sources += [len(text) - 1] * (len(folded) - len(sources))
    return sources[: len(folded)]
