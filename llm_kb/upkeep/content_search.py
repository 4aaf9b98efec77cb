"""Find the words of a query in texts, and tell which text answers it best.

A plain scan: it needs no index, and is as fast as reading the files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from llm_kb.errors import UnreadableError
from llm_kb.knowledge_base import KnowledgeBase, OpenTopic
from llm_kb.rendering.presentation import present
from llm_kb.subjects.topics import Subject

_QUOTES = "\"'`"
_EDGES = ".,;:!?()[]{}<>" + _QUOTES
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_OFTEN = 10
"""A word counts this many times at most, so that length does not win."""
_HEADING_WORTH = 20
"""A word in a heading or a slug is worth more than any number elsewhere."""
_MAX_WORDS = 32
"""Each word is looked for in each subject; further words of a query are ignored."""
_MAX_WORD_CHARS = 100

LONGEST_LINE = 160
"""The most characters of a line that a list of results shows."""


class EmptyQueryError(ValueError):
    """A query without a word in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Words to find, in any case, each at the start of a word of the text."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Split a query at white space. Raises EmptyQueryError."""
        stripped = (word.strip(_EDGES)[:_MAX_WORD_CHARS] for word in text.casefold().split())
        words = tuple(dict.fromkeys(filter(None, stripped)))[:_MAX_WORDS]
        if not words:
            raise EmptyQueryError(text)
        # The longest first: of two words that begin alike, both would match.
        starts = sorted(words, key=len, reverse=True)
        pattern = "|".join((r"\b" if w[0].isalnum() else "") + re.escape(w) for w in starts)
        return cls(words=words, pattern=re.compile(pattern))

    def find(self, text: str) -> list[tuple[int, str]]:
        """Return the words found in a case-folded text, with their positions."""
        if not any(word in text for word in self.words):
            return []  # a tenth of the time of the pattern
        return [(match.start(), match[0]) for match in self.pattern.finditer(text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How well a text answers a query, and the line that shows it best.

    `line` counts from one; it is the first that says anything where only the name
    answers.
    """

    words: int
    """How many different words of the query were found."""
    weight: int
    line: int
    text: str


def search_text(query: Query, name: str, text: str) -> Found | None:
    """Look for a query in a text and its name; None when no word is there."""
    named = {word for _, word in query.find(name.casefold())}
    # Folding case adds and removes no line feed, so lines are counted in it.
    folded = text.casefold()
    hits = query.find(folded)
    if not (hits or named):
        return None
    lines = text.split("\n")
    by_line = _group_by_line(folded, hits)
    in_headings = {
        word for number, words in by_line.items() if _HEADING.match(lines[number]) for word in words
    }
    often = Counter(word for _, word in hits)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    best = max(by_line, key=lambda number: (len(by_line[number]), -number), default=first)
    return Found(
        words=len(named | often.keys()),
        weight=len(named | in_headings) * _HEADING_WORTH
        + sum(min(count, _OFTEN) for count in often.values()),
        line=best + 1,
        text=lines[best].strip(),
    )


def _group_by_line(text: str, hits: Sequence[tuple[int, str]]) -> dict[int, set[str]]:
    """Return the words found in each line, which counts from zero."""
    by_line: defaultdict[int, set[str]] = defaultdict(set)
    number = counted = 0
    for position, word in hits:
        number += text.count("\n", counted, position)
        counted = position
        by_line[number].add(word)
    return dict(by_line)


SEARCHED_BYTES = 8_000_000
"""How much of a subject is searched: nobody wrote more than that by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A subject that answers a query."""

    topic: str
    subject: Subject
    found: Found


def search_subjects(
    kb: KnowledgeBase, query: Query, topics: Iterable[str] = (), limit: int = 10
) -> list[Hit]:
    """Return the subjects that answer a query best, the best first.

    Listed subjects alone are searched, pre-loaded ones included; hidden and
    disabled ones never. `topics` are ids or titles; without any, all are searched
    that a menu may offer. Raises UnknownTopicError.
    """
    named = {opened.topic.id: opened for opened in map(kb.find_topic, topics)}
    chosen = named or {id_: opened for id_, opened in kb.topics.items() if opened.topic.in_menu}
    hits = (hit for opened in chosen.values() for hit in _search_topic(opened, query))
    return nsmallest(limit, hits, key=_rank)


def _search_topic(opened: OpenTopic, query: Query) -> Iterator[Hit]:
    with opened.catalog.reading() as read:
        for subject in opened.catalog.iter_listed():
            try:
                content = read(subject, SEARCHED_BYTES)
            except UnreadableError:
                continue  # `llm kb check` reports it
            found = search_text(query, subject.name, present(subject, content).body)
            if found:
                yield Hit(topic=opened.topic.id, subject=subject, found=found)


def _rank(hit: Hit) -> tuple[int, int, str, str]:
    return -hit.found.words, -hit.found.weight, hit.topic, hit.subject.name
