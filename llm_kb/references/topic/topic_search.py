"""Find topics by what they are about: BM25 over title, tags and description. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llm_kb.references.topic.topic_file import TopicFile, make_snippet
from llm_kb.search.question import STOP_WORDS, parse_question

WEIGHTS = {"title": 6.0, "tags": 4.0, "body": 1.0}
"""What a word counts by where it stands."""

K1, B = 1.2, 0.6
MIN_STEM = 4
"""A word of a question this long also finds the words it begins."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHit:
    """A topic that answers; its score is between 0 and 1, 1 for all words in the title."""

    topic: TopicFile
    score: float
    snippet: str


def search_topics(topics: Sequence[TopicFile], query: str) -> list[TopicHit]:
    """Return the topics that hold words of the query, best first."""
    terms = [term for term in parse_question(query) if " " not in term]
    weighted = [_weigh(topic) for topic in topics]
    lengths = [sum(words.values()) for words in weighted]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    hits = []
    matches = [[_count(words, term) for words in weighted] for term in terms]
    rarity = [_rarity(sum(map(bool, row)), len(topics)) for row in matches]
    best = sum(rarity) * (K1 + 1) or 1.0
    for index, topic in enumerate(topics):
        norm = K1 * (1 - B + B * lengths[index] / average)
        score = sum(
            rarity[t] * row[index] * (K1 + 1) / (row[index] + norm) for t, row in enumerate(matches)
        )
        if score:
            snippet = make_snippet(topic.body, terms)
            hits.append(TopicHit(topic=topic, score=round(score / best, 2), snippet=snippet))
    return sorted(hits, key=lambda hit: (-hit.score, hit.topic.id))


def _weigh(topic: TopicFile) -> Counter[str]:
    words: Counter[str] = Counter()
    fields = {"title": topic.title, "tags": " ".join(topic.tags), "body": topic.body}
    for name, text in fields.items():
        for word in _WORD.findall(text.casefold()):
            words[word] += WEIGHTS[name]  # type: ignore[assignment] # counts may be fractions
    return words


def _count(words: Counter[str], term: str) -> float:
    """Return the weight of a term: whole words, and at half those it begins or that begin it."""
    total = float(words[term])
    if len(term) >= MIN_STEM:
        total += 0.5 * sum(
            weight
            for word, weight in words.items()
            if word != term
            and len(word) >= MIN_STEM
            and (word.startswith(term) or (len(word) > 4 and term.startswith(word)))
        )
    return total


def _rarity(found: int, total: int) -> float:
    return math.log(1 + (total - found + 0.5) / (found + 0.5))


KINDS = frozenset(
    """
    api book code documentation doc framework guide handbook library manual module official
    package page project reference repo repository site source specification spec topic tutorial
    website wiki
    """.split()  # noqa: SIM905 - as strings, one a line, nobody would read them
)
"""Words for what a topic consists of: people add them to a name, and they fit any topic."""

# C, C++ and C# are three languages.
_NAME_WORD = re.compile(r"[^\W_]+[+#]*")
_END_OF_NAME = re.compile(r"\s[-\u2013\u2014|]\s|:\s|\s\(")


def find_named(topics: Sequence[TopicFile], words: str) -> list[TopicFile]:
    """Return the topics that words may mean: one where it is clear, several where it is not.

    Every word must be one of the topic's title or tags, except those of `KINDS`, which only
    decide between topics. One whose name, which is its title up to a dash or colon, says no
    more than the words comes before others.
    """
    asked = _words(words)
    if not asked:
        return []
    found: dict[tuple[bool, int], list[TopicFile]] = {}
    for topic in topics:
        own = _words(topic.title) | _words(" ".join(topic.tags))
        if _telling(asked) <= own:
            name = _words(_END_OF_NAME.split(topic.title)[0])
            key = (_telling(name) <= asked, len(asked & own))
            found.setdefault(key, []).append(topic)
    return found[max(found)] if found else []


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words, a plural as its singular."""
    words = frozenset(_NAME_WORD.findall(text.casefold()))
    return frozenset(map(_singular, words - STOP_WORDS or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _telling(words: frozenset[str]) -> frozenset[str]:
    """Return the words that tell topics apart: all, where there are only those that do not."""
    return words - KINDS or words
