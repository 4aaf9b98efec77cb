"""Search what the subjects of a knowledge base say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest

from llm_kb.content_search import Found, Query, search_text
from llm_kb.errors import UnreadableError
from llm_kb.knowledge_base import KnowledgeBase, OpenTopic
from llm_kb.presentation import present
from llm_kb.topics import Subject

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
