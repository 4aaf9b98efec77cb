"""Find topics by what they are about: BM25 over title, tags and description. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llm_kb.references.query import parse_question
from llm_kb.references.topic_file import TopicFile

WEIGHTS = {"title": 6.0, "tags": 4.0, "body": 1.0}
"""What a word counts by where it stands."""

K1, B = 1.2, 0.6
SNIPPET = 160
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


def make_snippet(body: str, terms: Sequence[str] = ()) -> str:
    """Return the paragraph of a description that holds most of the terms, shortened."""
    paragraphs = [
        " ".join(paragraph.split())
        for paragraph in body.split("\n\n")
        if paragraph.strip() and not paragraph.lstrip().startswith("#")
    ]
    if not paragraphs:
        return ""
    text = max(paragraphs, key=lambda p: sum(term in p.casefold() for term in terms))
    return text if len(text) <= SNIPPET else text[: SNIPPET - 3].rstrip() + "..."


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
