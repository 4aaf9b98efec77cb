"""The order of the chunks that may answer a question: a table of features. Pure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

from llm_kb.search.question import Question, find_stems, join_words, list_words, strip_owner
from llm_kb.search.roles import Role
from llm_kb.search.word_vectors import Meaning
from llm_kb.subjects.editions import rank_versions
from llm_kb.texts.folding import fold
from llm_kb.texts.markup import drop_unsaid

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

TRUST = 0.2
"""Gain of a document with full trust (10 of 10), and cost of one with none (0)."""

_BREADCRUMB = " > "
_NUMBERED = re.compile(r"(?<![^\W_])([a-z]?[ei]p|rfc|adr|erc)[-_ #/]?0*([1-9][0-9]{0,5})(?![0-9])")
_SIGNATURE = re.compile(r"[(<\[{]")


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
    score: float = 0.0
    """How well it answers, from 0 to 1: the share of the telling words that it has of the question,
    or its similarity if it has none. The order of the hits is more reliable."""
    also_in: tuple[str, ...] = ()
    """The other documents with the same text, each once, as `topic/path`."""
    role: Role = Role.DOCS
    trust: int = 5
    """The trust in its topic, from 0 to 10."""


class Rarities:
    """How rare each word of a question is, by the starts of its forms."""

    def __init__(
        self,
        forms: Mapping[str, Mapping[str, int]],
        stems: Mapping[str, str],
        total: int,
    ) -> None:
        """`forms` are those of each word that texts have, with the numbers of chunks."""
        self.of_stems: dict[str, float] = {}
        self._words: list[tuple[float, set[str]]] = []
        frequencies = {word: min(sum(own.values()), total) for word, own in forms.items()}
        # Their inverse document frequencies, never negative.
        rarities = {
            word: math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
            for word, frequency in frequencies.items()
        }
        # A word that no text has does not show which passage answers best.
        most = max((rarities[word] for word, own in forms.items() if own), default=math.inf)
        for word, own in forms.items():
            starts = {stems[each] for each in own or (word,)}
            starts = {each for each in starts if not each.startswith(tuple(starts - {each}))}
            self.of_stems |= dict.fromkeys(starts, rarities[word])
            self._words.append((min(rarities[word], most), starts))
        self._whole = sum(weight for weight, _ in self._words) or 1.0

    def share(self, text: str) -> float:
        """Return the share of the question that a text has, in any forms."""
        found = set(find_stems(text, self.of_stems))
        return sum(weight for weight, own in self._words if found & own) / self._whole

    def measure_uses(self, text: str) -> float:
        """Return how often words of a text begin with the stems, from 0 to 1.

        The logarithms of their numbers count by their shares, and half in `LONG` characters.
        """
        words = list_words(text)
        uses = 0.0
        for weight, own in self._words:
            uses += weight * math.log1p(sum(words.count(f" {stem}") for stem in own))
        return min(1.0, uses / (self._whole * (1 + len(text) / LONG)))


WEIGHTS = {
    "words": (1, 1),
    "page": (0.5, 0.5),
    "uses": (2, 0),
    "run": (2, 1),
    "meaning": (4, 0),
    "role": (1, 1),
    "named": (1, 1),
    "numbered": (10, 10),
    "quoted": (100, 100),
}
"""The weights of the features, whose sum orders the hits: for a question, and for what is looked
up, which is mentioned elsewhere too, in whatever words."""


def rank(hits: Sequence[Hit], question: Question, rarities: Rarities) -> list[Hit]:
    """Return the hits, best first, each text once, with how well each answers."""
    words = [hit.bm25 for hit in hits]
    texts = [drop_unsaid(hit.text) for hit in hits]
    runs = [_measure_run(question.sequence, text) for text in texts]
    pasted = max(runs, default=0.0)
    numbers = _find_numbers(question.text)
    features: dict[str, Callable[[], Sequence[float]]] = {
        "words": lambda: _compare(words, 1e-9 if all(words) else LEAST),
        "page": lambda: _compare(_score_pages(hits), LEAST),
        # How often it has the words, which BM25 hardly counts.
        "uses": lambda: list(map(rarities.measure_uses, texts)),
        "run": lambda: runs,
        "meaning": lambda: _measure_meaning(hits, question),
        # What is pasted may be from anywhere.
        "role": lambda: [
            (1 - pasted) * (TRUST * (hit.trust - 5) / 5 - COSTS.get(hit.role, 0.0)) for hit in hits
        ],
        "named": lambda: _find_named(hits, question),
        "numbered": lambda: [
            bool(numbers & _find_numbers(f"{hit.path} {hit.title.split(_BREADCRUMB)[0]}"))
            for hit in hits
        ],
        "quoted": lambda: [
            sum(f" {phrase}" in list_words(hit.text) for phrase in question.phrases) for hit in hits
        ],
    }
    looked_up = 1.0 if question.name else pasted
    totals = [0.0] * len(hits)
    for name, (asked, found) in WEIGHTS.items():
        if weight := asked + (found - asked) * looked_up:
            values = features[name]()
            totals = [total + weight * value for total, value in zip(totals, values, strict=True)]
    best = sorted(range(len(hits)), key=totals.__getitem__, reverse=True)
    scored = []
    for hit in (hits[at] for at in best):
        share = rarities.share(f"{hit.path} {hit.title} {hit.text}")
        score = round(min(1.0, share or max(0.0, hit.cosine or 0.0)), 2)
        scored.append(hit._replace(score=score))
    return _join_copies(scored)


def _find_numbers(text: str) -> set[tuple[str, str]]:
    """Return the documents of a series that a text names: `pep 572` is `PEP-0572`."""
    return {(found[1], found[2]) for found in _NUMBERED.finditer(fold(text))}


def _compare(scores: Sequence[float], least: float) -> list[float]:
    """Return the logarithm of each score's share of the best, at least that of a share."""
    best = max(scores, default=0.0) or 1.0
    return [math.log(max(score / best, least)) for score in scores]


def _score_pages(hits: Sequence[Hit]) -> list[float]:
    """Return for each hit the scores of its page's best chunks."""
    pages: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for hit in hits:
        pages[hit.topic, hit.path].append(hit.bm25)
    return [sum(nlargest(OF_A_PAGE, pages[hit.topic, hit.path])) for hit in hits]


def _measure_meaning(hits: Sequence[Hit], question: Question) -> list[float]:
    """Return how much nearer in meaning each hit is than the hits are on average.

    The average of what an embedding model and the vectors of words say, if both were asked.
    """
    # The words that have vectors are English ones, of prose.
    meaning = Meaning(question.words if question.language == "en" else ())
    likenesses = [
        None if hit.role is Role.CODE else meaning.compare(f"{hit.title} {hit.text}")
        for hit in hits
    ]
    nearer = [_find_nearer([hit.cosine for hit in hits]), _find_nearer(likenesses)]
    return [fmean(each) for each in zip(*filter(None, nearer), strict=True)] or [0.0] * len(hits)


def _find_nearer(cosines: Sequence[float | None]) -> list[float]:
    """Return how much each is above the average of those that are known; empty if none is."""
    known = [cosine for cosine in cosines if cosine is not None]
    usual = fmean(known or [0.0])
    scale = max(1.0 - usual, NARROW)
    return [0.0 if each is None else (each - usual) / scale for each in cosines] if known else []


def _find_named(hits: Sequence[Hit], question: Question) -> list[bool]:
    """Return whether the question is a heading of each hit, or names a definition in it."""
    names = {"".join(question.sequence), question.name} - {""}
    named = []
    for hit in hits:
        headings = hit.title.rpartition(_BREADCRUMB)[2].split(", ") if hit.heading else ()
        own = [_SIGNATURE.split(heading)[0] or heading for heading in headings]
        # Both end alike, and stripping takes longer.
        own = [name for name in own if join_words(name).endswith(tuple(names))]
        named.append(any(names & {join_words(name), strip_owner(name)} for name in own))
    return named


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
    """Return each text once, with the documents that have copies.

    Its own is of the newest version, and there the one nearest to the top of a file: a whole
    manual repeats its parts' files.
    """
    copies: defaultdict[str, list[Hit]] = defaultdict(list)
    for hit in hits:
        copies[hit.text.strip()].append(hit)
    joined = []
    for same in copies.values():
        shown = same[0]
        if len(same) > 1:
            shown = max(same, key=lambda hit: (rank_versions(hit.path), -hit.first_line))
        files = dict.fromkeys(f"{hit.topic}/{hit.path}" for hit in same)
        files.pop(f"{shown.topic}/{shown.path}")
        joined.append(shown._replace(also_in=tuple(files), score=same[0].score))
    return joined
