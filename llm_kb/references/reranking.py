"""Rank the best chunks again by what BM25 does not see. Pure.

BM25 takes every word for itself. Here counts how much of the question a chunk
answers at all, whether its words stand together, whether the heading is about
the question and little else, whether the chunk opens a section or goes on with
one, and how much the rest of the file has to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

# Each feature is between 0 and 1; a score grows by so much of itself at most.
# Tuned on the `-tune` sets of bench/retrieval.py.
COVERAGE = 1.0
ADJACENCY = 1.0
HEADING_FOCUS = 0.3
FILE_EVIDENCE = 0.4
OPENING = 0.5

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = (
    *("ations", "ation", "ings", "ing", "ies", "ied", "ers"),
    *("er", "ed", "es", "s", "ly", "e"),
)


class Candidate(NamedTuple):
    """A chunk with its BM25 score."""

    score: float
    path: str
    title: str
    heading: str
    text: str


def rerank(
    candidates: Sequence[Candidate],
    words: Sequence[str],
    frequencies: Mapping[str, int],
    total: int,
) -> list[float]:
    """Return a new score for every candidate.

    `words` are those of the question in its order; `frequencies` tells in how
    many of the `total` chunks each occurs.
    """
    weights = {_stem(word): _rarity(frequencies.get(word, 0), total) for word in words}
    whole = sum(weights.values()) or 1.0
    pairs = set(pairwise(_stem(word) for word in words))
    files: dict[str, float] = {}
    for candidate in candidates:
        files[candidate.path] = files.get(candidate.path, 0.0) + candidate.score
    most = max(files.values(), default=0.0) or 1.0
    scores = []
    for candidate in candidates:
        text = _stems(candidate.text)
        heading = set(_stems(candidate.heading))
        found = weights.keys() & {*text, *_stems(candidate.title), *_stems(candidate.path)}
        # Squared: the last words of a question tell more than the first that match.
        growth = 1 + COVERAGE * (sum(map(weights.__getitem__, found)) / whole) ** 2
        growth += FILE_EVIDENCE * files[candidate.path] / most
        if pairs:
            growth += ADJACENCY * len(pairs & set(pairwise(text))) / len(pairs)
        if heading:
            growth += HEADING_FOCUS * len(heading & weights.keys()) / len(heading)
        if candidate.heading:
            growth *= 1 + OPENING
        scores.append(candidate.score * growth)
    return scores


def _rarity(frequency: int, total: int) -> float:
    """Return how much a word tells: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _stems(text: str) -> list[str]:
    """Return the stems of the words of a text, in order."""
    return [_stem(word) for word in _WORD.findall(text.lower())]


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    """Return a word without its ending: rough, but the same for question and text."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
