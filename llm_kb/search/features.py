"""Computes the features by which chunks are ranked, besides their own scores. Pure.

BM25 counts the words of a chunk, wherever they are and whatever is around the
chunk. The features are whether the chunk opens a section, whether the question names it,
how much of the question it has word for word, and how well its neighbours and its file
answer. The dense leg, if there is one, adds the similarity of meaning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from llm_kb.search.hits import Hit
from llm_kb.search.question import STOP_WORDS, fold, strip_owner

BETWEEN = 2
"""Blank lines that may be between two adjoining chunks."""

SHORTEST_RUN = 2
"""Minimum length of a run of words in the order of the question."""

ASKED, PASTED = 1, 6
"""Numbers of telling words in a run of a question's words that some text has: up to the first it is
asked, from the second on it is pasted, and in between it is partly both."""

SHORTEST_LINE = 4
"""Minimum number of telling words of a line that may be the question in a pasted log."""

QUOTED = 0.4
"""Highest score of a hit for words in a row that it has of the question."""

DENSE_POWER = 4
"""Exponent of a similarity's share of the best: cosines of one model are close together."""

DENSE_SHARES = (0.6, 0.15, 0.25)
"""Weights of a chunk's own similarity, its neighbours' and its file's."""

_BREADCRUMB = " > "
_SIGNATURE = re.compile(r"[(<\[{]")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_ASCII_BETWEEN = bytes(code for code in range(128) if not chr(code).isalnum())

_UNSPACED = "\u2e80"
"""First character of the scripts without spaces, in which a word begins anywhere."""


class Features(NamedTuple):
    """The features of a chunk besides its own score, each between 0 and 1.

    A share is of the question's words, weighted by rarity.
    """

    opens: float
    """Whether it opens a section; less for a pasted question, which may be from anywhere."""
    named: float
    """Whether the question names the section or definition it opens with, in any spelling."""
    run: float
    """The share of the question that it has word for word, even if written as one word."""
    adjoining: float
    """The share that it and the chunks just before and after it have."""
    file: float
    """The best BM25 score of the other chunks in its file, as a share of the best score."""
    dense: float
    """The similarity of meaning of it, its neighbours and its file, the nearest being 1; less
    for a pasted question, which is found by its words."""


class Question:
    """The stems of a question's words with their rarities, all its words, and its lines' stems."""

    def __init__(  # noqa: PLR0913 - all that is known of a question
        self,
        stems: Sequence[str],
        frequencies: Sequence[int],
        total: int,
        sequence: Sequence[str] = (),
        *,
        name: str = "",
        lines: Sequence[Sequence[str]] = (),
    ) -> None:
        self.sequence = sequence
        self.name = name
        self._joined = "".join(sequence)
        self._starts = list(accumulate(map(len, sequence), initial=0))
        self._asked = tuple(filter(None, (self._joined, name)))
        self.rarities = {
            stem: find_rarity(frequency, total)
            for stem, frequency in zip(stems, frequencies, strict=True)
        }
        self._whole = sum(self.rarities.values()) or 1.0
        self._lines = [stems, *(line for line in lines if len(line) >= SHORTEST_LINE)]
        known = [
            self.rarities[stem]
            for stem, frequency in zip(stems, frequencies, strict=True)
            if frequency
        ]
        # A word that no text has does not show which passage answers best.
        self._most = max(known, default=math.inf)

    def share(self, stems: Iterable[str]) -> float:
        """Return the share of the question that some of its stems make up."""
        held = set(stems)
        return sum(tells for stem, tells in self.rarities.items() if stem in held) / self._whole

    def share_of_answer(self, stems: Iterable[str]) -> float:
        """Return the same share, or that of one line if it is higher.

        A word that no text has counts as the rarest other word.
        """
        held, most = set(stems), self._most

        def weigh(line: Iterable[str]) -> float:
            return sum(min(self.rarities[stem], most) for stem in {*line})

        return max(weigh(held.intersection(line)) / (weigh(line) or 1.0) for line in self._lines)

    def find_longest_run(self, text: str) -> Sequence[str]:
        """Return the longest run of words of the question in a text; empty if there is none.

        Characters between the words do not matter, nor whether there are any: `ignoreCase`,
        `ignore_case` and `ignore case` are the same. Numbers alone are no run, since `3.7`
        would be in `0.13.7`.
        """
        longest, first = SHORTEST_RUN - 1, 0
        last = len(self.sequence) - longest
        if last <= 0:
            return ()
        joined = join_words(text)
        found: Sequence[str] = ()
        while first < last:
            run = self._joined[self._starts[first] : self._starts[first + longest + 1]]
            if run in joined and not run.isdigit():
                longest, last = longest + 1, last - 1
                found = self.sequence[first : first + longest]
            else:
                first += 1
        return found

    def is_name_of(self, hit: Hit) -> bool:
        """Tell whether the question is a heading of a chunk, or names a definition in it."""
        headings = hit.title.rpartition(_BREADCRUMB)[2].split(", ") if hit.heading else ()
        return any(map(self._is_name, headings))

    def _is_name(self, heading: str) -> bool:
        """Tell whether the question is a heading, with or without its qualifier."""
        name = _SIGNATURE.split(heading)[0] or heading
        whole = join_words(name)
        # Both end alike, and stripping takes longer.
        return whole.endswith(self._asked) and (
            whole in self._asked or strip_owner(name) in self._asked
        )


def find_rarity(frequency: int, total: int) -> float:
    """Return the rarity of a word: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def find_pasted(run: Sequence[str]) -> float:
    """Return from 0 to 1 how likely a run of words in a text was pasted from it."""
    telling = sum(word not in STOP_WORDS for word in run)
    return min(1.0, max(0.0, (telling - ASKED) / (PASTED - ASKED)))


def measure_answer(hit: Hit, question: Question) -> float:
    """Return how well a hit answers: the share of the question it holds, or its similarity.

    What may be pasted from it counts for no more than `QUOTED`, so that it may be shown and no
    other hit is left out for it: a log has a line that says it, and lines that all logs have.
    """
    share = question.share_of_answer(find_held(hit, question))
    pasted = min(QUOTED, find_pasted(question.find_longest_run(hit.text)))
    return round(min(1.0, max(share, pasted, hit.cosine or 0.0)), 2)


def find_features(hits: Sequence[Hit], question: Question) -> list[Features]:
    """Return the features of every hit, in the same order."""
    best = find_best(hits)
    meanings = _find_meanings(hits)
    runs = [question.find_longest_run(hit.text) for hit in hits]
    asked = 1.0 - max(map(find_pasted, runs), default=0.0)
    by_file: dict[tuple[str, str], list[int]] = {}
    for number, hit in enumerate(hits):
        by_file.setdefault((hit.topic, hit.path), []).append(number)
    found: dict[int, Features] = {}
    for numbers in by_file.values():
        held = {n: find_held(hits[n], question) for n in numbers}
        second, first = sorted([0.0, *(hits[n].bm25 for n in numbers)])[-2:]
        meaning = max(meanings[n] for n in numbers)
        for n in numbers:
            hit = hits[n]
            around = [m for m in numbers if m == n or _adjoin(hit, hits[m])]
            nearness = (meanings[n], max([meanings[m] for m in around]), meaning)
            found[n] = Features(
                opens=asked * bool(hit.heading),
                named=float(question.is_name_of(hit)),
                run=len(runs[n]) / max(1, len(question.sequence)),
                adjoining=question.share([stem for m in around for stem in held[m]]),
                file=(second if hit.bm25 == first else first) / best,
                dense=asked * sum(map(mul, DENSE_SHARES, nearness)),
            )
    return [found[number] for number in range(len(hits))]


def _find_meanings(hits: Sequence[Hit]) -> list[float]:
    """Return how similar each hit is in meaning, as a power of its share of the best."""
    cosines = [max(0.0, hit.cosine or 0.0) for hit in hits]
    nearest = max(cosines, default=0.0) or 1.0
    return [(cosine / nearest) ** DENSE_POWER for cosine in cosines]


def find_best(hits: Iterable[Hit]) -> float:
    """Return the best BM25 score, or 1 where nothing scores."""
    return max((hit.bm25 for hit in hits), default=0.0) or 1.0


def _adjoin(one: Hit, other: Hit) -> bool:
    """Tell whether one of two hits of a file begins where the other ends."""
    return (
        abs(other.first_line - one.last_line) <= BETWEEN
        or abs(one.first_line - other.last_line) <= BETWEEN
    )


# Words in a text


def find_held(hit: Hit, question: Question) -> list[str]:
    """Return the stems of a question that are in a hit's text, title or path."""
    return find_stems(f"{hit.path} {hit.title} {hit.text}", question.rarities)


def find_stems(text: str, stems: Iterable[str]) -> list[str]:
    """Return the stems that begin a word, or a part of an identifier, of a text."""
    lower = fold(text)
    if len(lower) != len(text):
        # Folding lengthens a few letters, such as "İ"; then capitals cannot be compared.
        text = lower
    return [stem for stem in stems if stem in lower and _begins_a_word(stem, text, lower)]


def _begins_a_word(stem: str, text: str, lower: str) -> bool:
    """Tell whether a word or a hump begins at an offset: `getDefault` at D, `HTTPServer` at S."""
    at = lower.find(stem)
    while at != -1:
        before = text[at - 1 : at]
        if not before.isalnum() or text[at] >= _UNSPACED:
            return True
        if text[at].isupper() and (before.islower() or text[at + 1 : at + 2].islower()):
            return True
        at = lower.find(stem, at + len(stem))
    return False


def join_words(text: str) -> str:
    """Return a folded text without the characters between its words."""
    text = fold(text)
    if text.isascii():  # faster than a regex
        return text.encode().translate(None, _ASCII_BETWEEN).decode()
    return _BETWEEN_WORDS.sub("", text)
