"""The order of the chunks that may answer a question. Pure.

BM25 counts the words of a chunk, wherever they are and whatever is around the chunk. To the
logarithm of its score are added, each from 0 to 1:

- whether the chunk opens a section, but not a page, whose introduction has its words and seldom the
  answer; and how often it has the words, which BM25 hardly counts: both less for a pasted question;
- three times, which of the names in the question the chunk has just as they are written, by how
  rare their words are: less for a pasted question, and not if the question is a name;
- whether the question names that section;
- how much of the question the chunk has word for word: twice, but for a name, which is mentioned
  elsewhere too;
- how much of the question it has;
- half the logarithm of what the best chunks of its page score together, since an answer is more
  likely on a page about the matter;
- how much nearer in meaning it is than others, four times, by an embedding model or the vectors of
  its words: less the more of the question a text has word for word, and not for a name.
"""

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

NEARER = 4.0
"""Gain of a chunk with the meaning of the question itself. One that is as near as the hits are on
average gains nothing, whatever the range of a model's cosines is."""

NAMES = 3.0
"""Gain of a chunk with all the names of a question that consists of them: an option or a function
is seldom mentioned where it does not matter."""

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
    """How near it is in meaning; None if it was not compared."""
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
        self,
        stems: Mapping[str, str],
        frequencies: Mapping[str, int],
        total: int,
        names: Iterable[str] = (),
    ) -> None:
        self.of_stems = {
            stem: find_rarity(frequencies[word], total) for word, stem in stems.items()
        }
        known = [self.of_stems[stem] for word, stem in stems.items() if frequencies[word]]
        # A word that no text has does not show which passage answers best.
        most = max(known, default=math.inf)
        self._weights = {stem: min(rarity, most) for stem, rarity in self.of_stems.items()}
        self._whole = sum(self._weights.values()) or 1.0
        self._names = {
            name: max((self._weights[stem] for stem in find_stems(name, self._weights)), default=0)
            for name in names
        }

    def share(self, stems: Iterable[str]) -> float:
        """Return the share of the question that some of its stems make up."""
        return sum(self._weights[stem] for stem in {*stems}) / self._whole

    def measure_uses(self, text: str) -> float:
        """Return how often words of a text begin with the stems, from 0 to 1, and more for names.

        The logarithms of their numbers count by their shares, and half in `LONG` characters. A name
        that the text has as it is written counts by the share of its rarest word, `NAMES` times.
        """
        folded = fold(text)
        words = f" {_BETWEEN_WORDS.sub(' ', folded)}"
        uses = 0.0
        for stem, weight in self._weights.items():
            begin = stem if stem >= _UNSPACED else f" {stem}"
            uses += weight * math.log1p(words.count(begin))
        named = sum(weight for name, weight in self._names.items() if _has_name(folded, name))
        uses /= self._whole * (1 + len(text) / LONG)
        return min(1.0, uses) + NAMES * min(1.0, named / self._whole)


def _has_name(text: str, name: str) -> bool:
    """Tell whether a folded text has a name, which does not go on at its ends."""
    return name in text and bool(re.search(rf"(?<![\w-]){re.escape(name)}(?!-?\w)", text))


def find_rarity(frequency: int, total: int) -> float:
    """Return the rarity of a word: its inverse document frequency, never negative."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def rank(hits: Sequence[Hit], question: Question, rarities: Rarities) -> list[Hit]:
    """Return the hits, best first, each text once, with how well each answers."""
    held = [find_stems(f"{hit.path} {hit.title} {hit.text}", rarities.of_stems) for hit in hits]
    shares = [rarities.share(stems) for stems in held]
    best = max((hit.bm25 for hit in hits), default=0.0) or 1.0
    least = 1e-9 if all(hit.bm25 for hit in hits) else LEAST
    pages: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for hit in hits:
        pages[hit.topic, hit.path].append(hit.bm25)
    of_pages = {page: sum(nlargest(OF_A_PAGE, scores)) for page, scores in pages.items()}
    best_page = max(of_pages.values(), default=0.0) or 1.0
    usual = fmean([hit.cosine for hit in hits if hit.cosine is not None] or [0.0])
    room = max(1.0 - usual, NARROW)
    word_for_word = [_measure_run(question.sequence, hit.text) for hit in hits]
    # What is pasted from a text may be anywhere in it.
    asked = 1.0 - max(word_for_word, default=0.0)
    nearer = 0.0 if question.name else NEARER * asked
    names = [name for name in ("".join(question.sequence), question.name) if name]
    weighed: list[tuple[float, Hit]] = []
    for number, hit in enumerate(hits):
        page = hit.topic, hit.path
        uses = 0.0 if question.name else rarities.measure_uses(hit.text)
        weight = (
            math.log(max(hit.bm25 / best, least))
            + math.log(max(of_pages[page] / best_page, LEAST)) / 2
            + asked * (bool(hit.heading and hit.first_line > 1) + hit.prior + uses)
            + _is_named(hit, names)
            + word_for_word[number] * (1.0 if question.name else 2.0)
            + shares[number]
            + nearer * (0.0 if hit.cosine is None else (hit.cosine - usual) / room)
        )
        score = round(min(1.0, shares[number] or max(0.0, hit.cosine or 0.0)), 2)
        weighed.append((weight, hit._replace(score=score)))
    weighed.sort(key=lambda pair: -pair[0])
    return _join_copies([hit for _, hit in weighed])


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
