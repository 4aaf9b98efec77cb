"""Rank the best chunks of both legs again, by what neither of them sees. Pure.

BM25 counts the words of a chunk, wherever they stand and whatever stands around
the chunk. Here counts whether they stand early and together, whether the chunk
opens a section or goes on with one, and how well its neighbours, the rest of its
file and their names answer: a section seldom repeats what its page is about.
The dense leg, where there is one, is fused in by reciprocal rank.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import mul
from typing import NamedTuple, TypeVar

LEAD = 300
"""Characters at the beginning of a chunk that tell what it is about."""

BETWEEN = 2
"""Lines between two chunks that adjoin: blank ones belong to none."""

LEAST = 0.1
"""The least a BM25 score counts, as a share of the best: what only the dense leg found has none."""


class Candidate(NamedTuple):
    """A chunk with its BM25 score, and its rank in the dense leg: 1 for the nearest."""

    score: float
    path: str
    title: str
    heading: str
    text: str
    first_line: int
    last_line: int
    rank: int | None = None


class Features(NamedTuple):
    """What tells of a candidate beside its own score, each between 0 and 1.

    A share is of the question's words, of which rare ones count more. A score is
    that of BM25, as a share of the best one.
    """

    opens: float
    """Whether it opens a section."""
    focus: float
    """How much of its heading is of the question."""
    lead: float
    """The share it begins with."""
    beside: float
    """The share of neighbouring words that stand in it as neighbours."""
    near: float
    """The share of neighbouring words that stand in it near each other."""
    path: float
    """The share that its path names."""
    adjoining: float
    """The share that it and the chunks just before and after it hold."""
    section: float
    """The best score of another chunk of its section."""
    below: float
    """The best score in the sections below its own."""
    file: float
    """The best score in its file."""
    file_share: float
    """The share that the chunks of its file hold together."""
    dense: float
    """Its reciprocal rank in the dense leg, of which the nearest chunk's is 1."""
    file_dense: float
    """The best of these in its file."""


WEIGHTS = Features(
    opens=1.0,
    focus=0.2,
    lead=0.65,
    beside=0.45,
    near=0.3,
    path=0.75,
    adjoining=0.8,
    section=0.3,
    below=0.3,
    file=0.75,
    file_share=0.8,
    dense=0.35,
    file_dense=0.15,
)
"""How much a feature adds to the logarithm of a score.

Fitted by bench/fit_reranking.py on sources that bench/retrieval.py does not report, and
rounded; what the dense leg counts was chosen on the same ones by bench/fusing.py.
"""

SCORE_BESIDE_DENSE = 0.5
"""How much the logarithm of BM25's score counts where there is a dense leg, instead of 1."""


def rerank(
    candidates: Sequence[Candidate],
    words: Sequence[str],
    frequencies: Mapping[str, int],
    total: int,
) -> list[float]:
    """Return a new score for every candidate; only their order says anything.

    `words` are those of the question in its order; `frequencies` tells in how
    many of the `total` chunks each occurs.
    """
    features = find_features(candidates, words, frequencies, total)
    best = _best(candidates)
    is_hybrid = any(candidate.rank for candidate in candidates)
    weight = SCORE_BESIDE_DENSE if is_hybrid else 1.0
    return [
        weight * math.log(max(candidate.score / best, LEAST)) + sum(map(mul, WEIGHTS, found))
        for candidate, found in zip(candidates, features, strict=True)
    ]


def find_features(
    candidates: Sequence[Candidate],
    words: Sequence[str],
    frequencies: Mapping[str, int],
    total: int,
) -> list[Features]:
    """Return the features of every candidate."""
    question = _Question(words, frequencies, total)
    best = _best(candidates)
    by_path: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_path.setdefault(candidate.path, []).append(candidate)
    found: dict[Candidate, Features] = {}
    for path, chunks in by_path.items():
        file = _read_file(path, chunks, question)
        found |= {
            reading.chunk: _describe(reading, file, question, best) for reading in file.readings
        }
    return [found[candidate] for candidate in candidates]


def _best(candidates: Sequence[Candidate]) -> float:
    """Return the best score, or 1 where nothing scores."""
    return max((candidate.score for candidate in candidates), default=0.0) or 1.0


class _Question:
    """The stems of a question's words, and how much they tell."""

    def __init__(self, words: Sequence[str], frequencies: Mapping[str, int], total: int) -> None:
        stems = [stem(word) for word in words]
        self.rarities = {
            stem_: find_rarity(frequencies.get(word, 0), total)
            for stem_, word in zip(stems, words, strict=True)
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


def find_rarity(frequency: int, total: int) -> float:
    """Return how much a word tells: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


class _Reading(NamedTuple):
    """A candidate, where the question's stems stand in its text, and all it holds."""

    chunk: Candidate
    offsets: Mapping[str, Sequence[int]]
    stems: frozenset[str]
    """In its text, its title or its path."""


class _File(NamedTuple):
    """The candidates of one file and what they have in common."""

    readings: Sequence[_Reading]
    path_share: float
    share: float
    best: float
    dense: float


def _read_file(path: str, chunks: Sequence[Candidate], question: _Question) -> _File:
    """Look for the question in the candidates of a file."""
    in_path = frozenset(find_stems(path, question.rarities))
    readings = []
    for chunk in chunks:
        offsets = find_stems(chunk.text, question.rarities)
        in_title = find_stems(chunk.title, question.rarities)
        readings.append(_Reading(chunk, offsets, in_path.union(offsets, in_title)))
    return _File(
        readings=readings,
        path_share=question.share(in_path),
        share=question.share(frozenset[str]().union(*(reading.stems for reading in readings))),
        best=max(chunk.score for chunk in chunks),
        dense=max(map(_in_dense, chunks)),
    )


def _in_dense(chunk: Candidate) -> float:
    """Return its reciprocal rank in the dense leg; 0 for what is not in it."""
    return reciprocal_rank(chunk.rank) if chunk.rank else 0.0


def _describe(reading: _Reading, file: _File, question: _Question, best: float) -> Features:
    """Return the features of one of a file's candidates."""
    chunk, offsets, held = reading
    section = below = 0.0
    nested = (f"{chunk.title} > ", f"{chunk.title}.")
    for other, _, stems in file.readings:
        if other is chunk:
            continue
        if other.title == chunk.title:
            section = max(section, other.score)
        elif other.title.startswith(nested):
            below = max(below, other.score)
        if _adjoin(chunk, other):
            held |= stems
    heading = stem_words(chunk.heading)
    return Features(
        opens=float(bool(chunk.heading)),
        focus=len(heading & question.rarities.keys()) / len(heading) if heading else 0.0,
        lead=question.share(stem_ for stem_, at in offsets.items() if at[0] < LEAD),
        beside=question.share_of_pairs(p for p in question.pairs if stand_beside(*p, offsets)),
        near=question.share_of_pairs(p for p in question.pairs if stand_near(*p, offsets)),
        path=file.path_share,
        adjoining=question.share(held),
        section=section / best,
        below=below / best,
        file=file.best / best,
        file_share=file.share,
        dense=_in_dense(chunk),
        file_dense=file.dense,
    )


def _adjoin(one: Candidate, other: Candidate) -> bool:
    """Whether one of two chunks of a file begins where the other ends."""
    return (
        abs(other.first_line - one.last_line) <= BETWEEN
        or abs(one.first_line - other.last_line) <= BETWEEN
    )


Item = TypeVar("Item", bound=Hashable)

LEGS_K = 20
"""The constant of reciprocal rank fusion: by how little the first ranks differ."""

PLACES_K = 60
"""The same for the places in a result."""


def reciprocal_rank(rank: int) -> float:
    """Return what a rank in the dense leg counts: 1 for the nearest."""
    return (LEGS_K + 1) / (LEGS_K + rank)


def score_place(place: int) -> float:
    """Return the score of a place in a result: 1 for the first."""
    return (PLACES_K + 1) / (PLACES_K + place)


def spread(
    items: Sequence[Item], group_of: Callable[[Item], Hashable], *, per_group: int, limit: int
) -> list[Item]:
    """Return the first `limit` items with at most `per_group` of one group.

    Items over that are taken, in order, only where there are not enough others.
    """
    counts: Counter[Hashable] = Counter()
    first: list[Item] = []
    rest: list[Item] = []
    for item in items:
        group = group_of(item)
        counts[group] += 1
        (first if counts[group] <= per_group else rest).append(item)
    return [*first, *rest][:limit]


BESIDE = 6
"""Characters from the end of a stem to the next word, where nothing stands between."""

NEAR = 50
"""Characters between the beginnings of two words of one thought."""

MAX_OFFSETS = 16
"""How many places of a stem in a text are compared with those of another."""

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = (
    *("ations", "ation", "ings", "ing", "ies", "ied", "ers"),
    *("er", "ed", "es", "s", "ly", "y", "e"),
)

Offsets = Mapping[str, Sequence[int]]
"""Where stems stand in a text, in order; those that do not are missing."""


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a lower-case word without its ending: rough, but the same for all its forms."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stem_words(text: str) -> set[str]:
    """Return the stems of all words of a short text."""
    return {stem(word) for word in _WORD.findall(text.lower())}


def find_stems(text: str, stems: Iterable[str]) -> dict[str, list[int]]:
    """Return the offsets at which words, or parts of identifiers, begin with each stem."""
    lower = text.lower()
    if len(lower) != len(text):
        # A few letters grow, such as "İ"; then there are no capitals to go by.
        text = lower
    found = {}
    for stem_ in stems:
        offsets = []
        at = lower.find(stem_)
        while at != -1:
            if _begins_word(text, at):
                offsets.append(at)
            at = lower.find(stem_, at + len(stem_))
        if offsets:
            found[stem_] = offsets
    return found


def _begins_word(text: str, at: int) -> bool:
    """Whether a word begins at an offset, or a hump: `getDefault` at D, `HTTPServer` at S."""
    before = text[at - 1 : at]
    if not before.isalnum():
        return True
    return text[at].isupper() and (before.islower() or text[at + 1 : at + 2].islower())


def stand_near(first: str, second: str, offsets: Offsets) -> bool:
    """Whether two stems stand near each other somewhere, in any order."""
    return any(-NEAR <= gap <= NEAR for gap in _gaps(first, second, offsets))


def stand_beside(first: str, second: str, offsets: Offsets) -> bool:
    """Whether the second stem stands right after the first somewhere."""
    return any(0 < gap <= len(first) + BESIDE for gap in _gaps(first, second, offsets))


def _gaps(first: str, second: str, offsets: Offsets) -> list[int]:
    """Return how far after the first stem the second stands, everywhere."""
    ends = offsets.get(second, ())[:MAX_OFFSETS]
    return [end - start for start in offsets.get(first, ())[:MAX_OFFSETS] for end in ends]
