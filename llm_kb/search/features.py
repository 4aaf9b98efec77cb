"""What tells good chunks from others beside their own scores. Pure.

BM25 counts the words of a chunk, wherever they stand and whatever stands around the
chunk. The features see whether they stand early and together, whether the chunk opens
a section or goes on with one, and how well its neighbours and the rest of its file
answer. The dense leg, where there is one, adds its reciprocal rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from llm_kb.search.hits import Hit
from llm_kb.search.words import WORD, find_longest_run, find_stems, stand_beside, stand_near

LEAD = 300
"""Characters at the beginning of a chunk that tell what it is about."""

BETWEEN = 2
"""Lines between two chunks that adjoin: blank ones belong to none."""

SHORTEST_RUN = 4
"""Words of a question that say something by standing in its order, stop words included."""

DENSE_K = 20
"""The constant of reciprocal rank: by how little the first ranks of the dense leg differ."""


class Features(NamedTuple):
    """What tells of a chunk beside its own score, each between 0 and 1.

    A share is of the question's words, of which rare ones count more. A score is
    that of BM25, as a share of the best one.
    """

    opens: float
    """Whether it opens a section."""
    focus: float
    """How much of its heading is of the question."""
    page: float
    """How much of the outermost heading above it is of the question."""
    lead: float
    """The share it begins with."""
    beside: float
    """The share of neighbouring words that stand in it as neighbours."""
    near: float
    """The share of neighbouring words that stand in it near each other."""
    run: float
    """How much of the question stands in it word for word."""
    path: float
    """The share that its path names."""
    adjoining: float
    """The share that it and the chunks just before and after it hold."""
    file: float
    """The best score in its file."""
    file_share: float
    """The share that the chunks of its file hold together."""
    dense: float
    """Its reciprocal rank in the dense leg, of which the nearest chunk's is 1."""
    file_dense: float
    """The best of these in its file."""


class Question:
    """The stems of a question's words, how much they tell, and the words in its order."""

    def __init__(
        self,
        stems: Sequence[str],
        frequencies: Sequence[int],
        total: int,
        sequence: Sequence[str] = (),
    ) -> None:
        self.sequence = sequence if len(sequence) >= SHORTEST_RUN else ()
        self.rarities = {
            stem: find_rarity(frequency, total)
            for stem, frequency in zip(stems, frequencies, strict=True)
        }
        self.pairs = {
            (a, b): self.rarities[a] + self.rarities[b] for a, b in pairwise(stems) if a != b
        }
        self._whole = sum(self.rarities.values()) or 1.0
        self._all_pairs = sum(self.pairs.values()) or 1.0

    def share(self, stems: Iterable[str]) -> float:
        """Return how much of the question some of its stems are."""
        return sum(map(self.rarities.__getitem__, stems)) / self._whole

    def share_of_pairs(self, pairs: Iterable[tuple[str, str]]) -> float:
        """Return how much of its neighbouring words some of them are."""
        return sum(map(self.pairs.__getitem__, pairs)) / self._all_pairs

    def share_of_run(self, text: str) -> float:
        """Return how much of the question stands in a text as one run of words."""
        longest = find_longest_run(text, self.sequence) if self.sequence else 0
        return longest / len(self.sequence) if longest >= SHORTEST_RUN else 0.0

    def share_of_heading(self, heading: str) -> float:
        """Return how many of a heading's words are the question's."""
        words = set(WORD.findall(heading.lower()))
        stems = tuple(self.rarities)
        return sum(word.startswith(stems) for word in words) / len(words) if words else 0.0


def find_rarity(frequency: int, total: int) -> float:
    """Return how much a word tells: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def measure_answer(hit: Hit, question: Question) -> float:
    """Return how well a hit answers: the share of the question it holds, or its similarity."""
    held = find_stems(f"{hit.path} {hit.title} {hit.text}", question.rarities)
    return round(min(1.0, max(question.share(held), hit.cosine or 0.0)), 2)


def find_features(hits: Sequence[Hit], question: Question) -> list[Features]:
    """Return the features of every hit."""
    best = find_best(hits)
    ranks = rank_by_cosine(hits)
    by_file: dict[tuple[str, str], list[int]] = {}
    for number, hit in enumerate(hits):
        by_file.setdefault((hit.topic, hit.path), []).append(number)
    found: dict[int, Features] = {}
    for numbers in by_file.values():
        offsets = {n: find_stems(hits[n].text, question.rarities) for n in numbers}
        held = {n: _find_held(hits[n], offsets[n], question) for n in numbers}
        path = question.share(find_stems(hits[numbers[0]].path, question.rarities))
        file = max(hits[n].bm25 for n in numbers) / best
        file_share = question.share(frozenset[str]().union(*held.values()))
        file_dense = max(_reciprocal(ranks.get(n)) for n in numbers)
        for n in numbers:
            adjoining = held[n].union(*(held[m] for m in numbers if _adjoin(hits[n], hits[m])))
            found[n] = Features(
                opens=float(bool(hits[n].heading)),
                focus=question.share_of_heading(hits[n].heading),
                page=question.share_of_heading(hits[n].title.partition(" > ")[0]),
                lead=question.share(stem for stem, at in offsets[n].items() if at[0] < LEAD),
                beside=question.share_of_pairs(
                    pair for pair in question.pairs if stand_beside(*pair, offsets[n])
                ),
                near=question.share_of_pairs(
                    pair for pair in question.pairs if stand_near(*pair, offsets[n])
                ),
                run=question.share_of_run(hits[n].text),
                path=path,
                adjoining=question.share(adjoining),
                file=file,
                file_share=file_share,
                dense=_reciprocal(ranks.get(n)),
                file_dense=file_dense,
            )
    return [found[number] for number in range(len(hits))]


def find_best(hits: Iterable[Hit]) -> float:
    """Return the best BM25 score, or 1 where nothing scores."""
    return max((hit.bm25 for hit in hits), default=0.0) or 1.0


def rank_by_cosine(hits: Sequence[Hit]) -> dict[int, int]:
    """Return the rank in the dense leg, from 1, of the numbers of the hits it found."""
    near = [(-hit.cosine, number) for number, hit in enumerate(hits) if hit.cosine is not None]
    return {number: rank for rank, (_, number) in enumerate(sorted(near), 1)}


def _find_held(hit: Hit, offsets: Mapping[str, object], question: Question) -> frozenset[str]:
    """Return the stems in a hit's text, its title or its path."""
    return frozenset(offsets).union(find_stems(f"{hit.path} {hit.title}", question.rarities))


def _reciprocal(rank: int | None) -> float:
    """Return what a rank in the dense leg counts: 1 for the nearest, 0 for what is not in it."""
    return (DENSE_K + 1) / (DENSE_K + rank) if rank else 0.0


def _adjoin(one: Hit, other: Hit) -> bool:
    """Whether one of two hits of a file begins where the other ends."""
    return (
        abs(other.first_line - one.last_line) <= BETWEEN
        or abs(one.first_line - other.last_line) <= BETWEEN
    )
