"""Search the indexes of topics: keywords always, vectors where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.references.index import Index, open_index
from llm_kb.references.query import build_match, parse_question
from llm_kb.references.ranking import fuse, spread

POOL = 50
"""How many chunks a leg contributes."""

PER_FILE = 3
"""How many chunks of one file come before those of other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One chunk that answers, and where it stands; lines count from 1, both inclusive."""

    topic: str
    path: str
    first_line: int
    last_line: int
    title: str
    text: str
    score: float
    """Between 0 and 1: only the order of one result's hits says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, best first, and the legs that ran: `keyword`, `dense`."""

    hits: tuple[Hit, ...]
    legs: tuple[str, ...]


def search(directories: Sequence[Path], question: str, *, limit: int = 10) -> SearchResult:
    """Search the topics in these directories; a topic's id is its directory's name.

    Every index is brought up to date with its files first. The caller leaves out
    obsolete topics. Raises IndexUnusableError.
    """
    hits: list[Hit] = []
    for directory in directories:
        with open_index(directory) as index:
            index.update()
            hits += search_index(index, question, limit=limit)
    hits.sort(key=lambda hit: -hit.score)
    return SearchResult(hits=tuple(hits[:limit]), legs=("keyword",))


def search_index(index: Index, question: str, *, limit: int) -> list[Hit]:
    """Search one index as it is."""
    ranking = rank_by_keywords(index, question, POOL)
    scores = fuse([(1.0, ranking)])
    chunks = index.read_chunks(list(scores))
    order = spread(list(chunks), lambda id_: chunks[id_].path, per_group=PER_FILE, limit=limit)
    topic = index.directory.name
    return [Hit(topic=topic, **chunks[id_]._asdict(), score=round(scores[id_], 4)) for id_ in order]


def rank_by_keywords(index: Index, question: str, limit: int) -> list[int]:
    """Return the chunks that hold words of the question, best first."""
    terms = parse_question(question)
    words = [term for term in terms if " " not in term]
    match = build_match(terms, index.count_frequencies(words), index.count_chunks())
    return index.match(match, limit) if match else []
