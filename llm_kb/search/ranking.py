"""The order of the chunks that may answer a question: a table of features. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

from llm_kb.search.question import Question, strip_owner
from llm_kb.search.roles import Role
from llm_kb.texts.folding import MARKS, find_sources, fold, is_aligned

CANDIDATES = 150
"""Number of chunks found by their words that are compared."""

LEAST = 0.1
"""Share of the best score that what was found by meaning alone has, and then all with less."""

OF_A_PAGE = 2
"""Number of chunks that show how well a page answers: more would favour long pages."""

NARROW = 0.1
"""Distance from which on differences between hits that are all near count in full."""

LONG = 2_400
"""Characters of a text that has words often because it is long: two chunks."""

COSTS = {Role.CODE: 1.25, Role.TESTS: 2.0, Role.EXAMPLES: 1.0, Role.CHANGES: 1.0}
"""Cost of a role, subtracted from the logarithm of a score."""

OTHER_LANGUAGE = 2.0
"""Cost of a translation into another language than the question's."""

TRUST = 0.2
"""Gain of a document with full trust (10 of 10), and cost of one with none (0)."""

_BREADCRUMB = " > "
_SIGNATURE = re.compile(r"[(<\[{]")
_BETWEEN_WORDS = re.compile(rf"(?:(?![{MARKS}])[\W_])+")
_ASCII_BETWEEN = bytes(code for code in range(128) if not chr(code).isalnum())

_UNSPACED = "\u2e80"
"""First character of the scripts without spaces, in which a word begins anywhere."""


Place = tuple[str, str, int, int]
"""The position of a chunk: topic, path, first and last line, which count from 1."""


class Hit(NamedTuple):
    """A chunk that may answer a question; lines count from 1, both inclusive."""

    topic: str
    path: str
    first_line: int
    last_line: int
    title: str
    heading: str
    text: str
    bm25: float = 0.0
    """Its score by keywords; 0 if only the dense leg found it."""
    cosine: float | None = None
    """How near it is in meaning by an embedding model; None if it was not compared."""
    likeness: float | None = None
    """How near it is by the vectors of its words; None if it was not compared."""
    score: float = 0.0
    """How well it answers, from 0 to 1: the share of the telling words that it has of the question,
    or its similarity if it has none. The order of the hits is more reliable."""
    copies: tuple[Place, ...] = ()
    """Other places of the same text."""
    role: Role = Role.DOCS
    language: str = ""
    """The language that it is translated into; empty if it is not translated."""
    prior: float = 0.0
    """The part of its score from its role and the trust in its topic."""

    @property
    def place(self) -> Place:
        """Its position."""
        return self[:4]

    @property
    def also_in(self) -> tuple[str, ...]:
        """The other documents with the same text, each once, as `topic/path`."""
        files = dict.fromkeys(f"{topic}/{path}" for topic, path, _, _ in self.copies)
        files.pop(f"{self.topic}/{self.path}", None)
        return tuple(files)


class Rarities:
    """How rare each word of a question is, keyed by the common start of its forms."""

    def __init__(
        self, stems: Mapping[str, str], frequencies: Mapping[str, int], total: int
    ) -> None:
        self.of_stems = {
            stem: _find_rarity(frequencies[word], total) for word, stem in stems.items()
        }
        known = [self.of_stems[stem] for word, stem in stems.items() if frequencies[word]]
        # A word that no text has does not show which passage answers best.
        most = max(known, default=math.inf)
        self._weights = {stem: min(rarity, most) for stem, rarity in self.of_stems.items()}
        self._whole = sum(self._weights.values()) or 1.0

    def share(self, text: str) -> float:
        """Return the share of the question that a text has."""
        return sum(self._weights[stem] for stem in find_stems(text, self._weights)) / self._whole

    def measure_uses(self, text: str) -> float:
        """Return how often words of a text begin with the stems, from 0 to 1.

        The logarithms of their numbers count by their shares, and half in `LONG` characters.
        """
        words = f" {_BETWEEN_WORDS.sub(' ', fold(text))}"
        uses = 0.0
        for stem, weight in self._weights.items():
            begin = stem if stem >= _UNSPACED else f" {stem}"
            uses += weight * math.log1p(words.count(begin))
        return min(1.0, uses / (self._whole * (1 + len(text) / LONG)))


def _find_rarity(frequency: int, total: int) -> float:
    """Return the rarity of a word: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


class _Comparison:
    """What a hit is compared with: the question, and the other hits."""

    def __init__(self, hits: Sequence[Hit], question: Question, rarities: Rarities) -> None:
        self.question = question
        self.rarities = rarities
        self.names = [name for name in ("".join(question.sequence), question.name) if name]
        self.best = max((hit.bm25 for hit in hits), default=0.0) or 1.0
        self.least = 1e-9 if all(hit.bm25 for hit in hits) else LEAST
        pages: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for hit in hits:
            pages[hit.topic, hit.path].append(hit.bm25)
        self.pages = {page: sum(nlargest(OF_A_PAGE, scores)) for page, scores in pages.items()}
        self.best_page = max(self.pages.values(), default=0.0) or 1.0
        self.usual = (
            _find_usual(hit.cosine for hit in hits),
            _find_usual(hit.likeness for hit in hits),
        )
        self.runs = {hit.place: _measure_run(question.sequence, hit.text) for hit in hits}
        self.pasted = max(self.runs.values(), default=0.0)
        """How much of the question some text has word for word."""
        self.looked_up = 1.0 if question.name else self.pasted
        """How much of the question is looked up, not asked: a name is, and what is pasted."""

    def measure(self, hit: Hit) -> dict[str, float]:
        """Return the features of a hit."""
        return {
            # BM25, as a share of the best, and the same of the best of its page.
            "words": math.log(max(hit.bm25 / self.best, self.least)),
            "page": math.log(max(self.pages[hit.topic, hit.path] / self.best_page, LEAST)),
            # How often it has the words, which BM25 hardly counts.
            "uses": self.rarities.measure_uses(hit.text) if self.looked_up < 1 else 0.0,
            "run": self.runs[hit.place],
            "meaning": self._measure_meaning(hit),
            # What is pasted may be from anywhere.
            "role": hit.prior * (1.0 - self.pasted),
            "named": float(_is_named(hit, self.names)),
        }

    def _measure_meaning(self, hit: Hit) -> float:
        """Return how much nearer in meaning it is than the hits are on average.

        The average of what an embedding model and the vectors of words say, if both were asked.
        """
        nearer = [
            0.0 if near is None else (near - usual) / max(1.0 - usual, NARROW)
            for near, usual in zip((hit.cosine, hit.likeness), self.usual, strict=True)
            if usual is not None
        ]
        return fmean(nearer or [0.0])


def _find_usual(values: Iterable[float | None]) -> float | None:
    """Return the average of what was compared; None if nothing was."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


# What is looked up is mentioned elsewhere too, in whatever words.
_LOOK_UP = {"words": 1, "page": 0.5, "uses": 0, "run": 1, "meaning": 0, "role": 1, "named": 1}
_QUESTION = {"words": 1, "page": 0.5, "uses": 2, "run": 2, "meaning": 4, "role": 1, "named": 1}
"""The weights of the features, whose sum orders the hits."""


def find_prior(role: Role, trust: int | None = None) -> float:
    """Return the part of a score's logarithm from a document's role and its topic's trust."""
    trusted = 0.0 if trust is None else TRUST * (trust - 5) / 5
    return trusted - COSTS.get(role, 0.0)


def rank(hits: Sequence[Hit], question: Question, rarities: Rarities) -> list[Hit]:
    """Return the hits, best first, each text once, with how well each answers."""
    compared = _Comparison(hits, question, rarities)
    share = compared.looked_up
    weights = {name: asked + (_LOOK_UP[name] - asked) * share for name, asked in _QUESTION.items()}

    def weigh(hit: Hit) -> float:
        return sum(weights[name] * value for name, value in compared.measure(hit).items())

    ordered = sorted(hits, key=weigh, reverse=True)
    return _join_copies([hit._replace(score=_find_score(hit, rarities)) for hit in ordered])


def _find_score(hit: Hit, rarities: Rarities) -> float:
    """Return the share of the question that a hit has, or how near it is if it has none."""
    share = rarities.share(f"{hit.path} {hit.title} {hit.text}")
    near = hit.likeness if hit.cosine is None else hit.cosine
    return round(min(1.0, share or max(0.0, near or 0.0)), 2)


def _is_named(hit: Hit, names: Sequence[str]) -> bool:
    """Tell whether the question is a heading of a chunk, or names a definition in it."""
    headings = hit.title.rpartition(_BREADCRUMB)[2].split(", ") if hit.heading else ()
    for heading in headings:
        name = _SIGNATURE.split(heading)[0] or heading
        whole = join_words(name)
        # Both end alike, and stripping takes longer.
        if whole.endswith(tuple(names)) and (whole in names or strip_owner(name) in names):
            return True
    return False


def _measure_run(sequence: Sequence[str], text: str) -> float:
    """Return the share of a question that a text has word for word, at least two words.

    Characters between the words do not matter, nor whether there are any: `ignoreCase`,
    `ignore_case` and `ignore case` are the same. Numbers alone are no run, since `3.7`
    would be in `0.13.7`.
    """
    words, whole = len(sequence), "".join(sequence)
    starts = list(accumulate(map(len, sequence), initial=0))
    longest, first, found = 1, 0, 0
    joined = join_words(text) if words > 1 else ""
    while first + longest < words:
        run = whole[starts[first] : starts[first + longest + 1]]
        if run in joined and not run.isdigit():
            longest = found = longest + 1
        else:
            first += 1
    return found / words if words else 0.0


def _join_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Return each text once, with the places of its copies.

    Its own is the one nearest to the top of a file: a whole manual repeats its parts' files.
    """
    joined: dict[str, Hit] = {}
    for hit in hits:
        text = hit.text.strip()
        kept = joined.setdefault(text, hit)
        if kept is not hit:
            shown, copy = (hit, kept) if hit.first_line < kept.first_line else (kept, hit)
            copies = (*kept.copies, copy.place)
            joined[text] = shown._replace(copies=copies, score=kept.score)
    return list(joined.values())


def find_stems(text: str, stems: Iterable[str]) -> list[str]:
    """Return the stems that begin a word, or a part of an identifier, of a text."""
    lower = fold(text)
    if not is_aligned(text, lower):
        # Capitals are compared where the letters of the folded text come from.
        text = "".join(text[at] for at in find_sources(text, lower))
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
