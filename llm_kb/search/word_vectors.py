"""How near two texts are in meaning, by the vectors of their words. No model is asked.

`word_vectors.bin` has 29,000 words of technical documentation in English. Their vectors were
learned from the places that all-MiniLM-L6-v2 (Apache License 2.0) gives to texts of such
documentation, by `bench/retrieval/word_vectors.py`. It is read at the first search that needs it.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from operator import mul
from pathlib import Path

from llm_kb.texts.folding import fold

DIMENSIONS = 64

FILE = Path(__file__).with_name("word_vectors.bin")
"""The words, a line each, a null byte, and their vectors: a byte for each number, 128 being 0."""

_ZERO = 128
_WORD = re.compile(r"[^\W\d_]+")
_MARKUP = re.compile(r"(?<!\w)</?[A-Za-z][^<>]{0,300}>|&#?\w+;|https?://\S+")
"""Tags, entities and addresses: their letters are not words of a text."""


class Meaning:
    """The meaning of a question: the sum of the vectors of its words."""

    def __init__(self, words: Sequence[str]) -> None:
        self._vector, known = _add_up(words)
        self._length = math.hypot(*self._vector)
        self._is_known = 2 * known >= len(words)

    def compare(self, text: str) -> float | None:
        """Return the cosine of the meanings of the question and a text, or None.

        That is if most of the question's words have no vector, such as those of another language,
        or none of the text's has one.
        """
        vector, _ = _add_up(_WORD.findall(_MARKUP.sub(" ", fold(text))))
        length = self._length * math.hypot(*vector)
        product: int = sum(map(mul, self._vector, vector))
        return product / length if length and self._is_known else None


def is_word(text: str) -> bool:
    """Tell whether a text is a word of documentation in English."""
    return fold(text) in _read()[0]


def _add_up(words: Sequence[str]) -> tuple[list[int], int]:
    """Return the sum of the vectors of folded words, and how many have one."""
    vectors = [vector for word in words if (vector := _find_vector(word))]
    total = array("I", sum(vectors).to_bytes(4 * DIMENSIONS, sys.byteorder))
    return [number - _ZERO * len(vectors) for number in total], len(vectors)


@lru_cache(maxsize=20_000)
def _find_vector(word: str) -> int:
    """Return a word's vector, or 0.

    The numbers are 32 bits each of a single one, so that one addition adds all.
    """
    places, vectors = _read()
    if (place := places.get(word)) is None:
        return 0
    start = place * DIMENSIONS
    wide = bytearray(4 * DIMENSIONS)
    wide[::4] = vectors[start : start + DIMENSIONS]
    return int.from_bytes(wide, "little")


@cache
def _read() -> tuple[dict[str, int], bytes]:
    words, _, vectors = FILE.read_bytes().partition(b"\0")
    return {word: place for place, word in enumerate(words.decode().splitlines())}, vectors
