"""Answer questions from reference topics: choose the topics, search their files."""

from __future__ import annotations

from typing import Any

from llm_kb.errors import KbError
from llm_kb.references.answers import search_answer
from llm_kb.references.errors import UnknownReferenceError
from llm_kb.references.library import Library
from llm_kb.references.provenance import Provenance
from llm_kb.references.search import search
from llm_kb.references.topic_file import Status, TopicFile
from llm_kb.references.topic_search import search_topics

LIMIT = 8
"""Hits of one search: about 8,000 characters."""


class ObsoleteTopicError(KbError):
    """A search in a topic that its owner gave up."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id
        super().__init__(
            f"reference topic {topic_id!r} is marked obsolete and is not searched; its files can"
            " still be read, and `llm kb references update --status active` puts it back"
        )


def ask(
    library: Library, question: str, topic: str | None = None, limit: int = LIMIT
) -> dict[str, Any]:
    """Search one topic, or all that are not obsolete; return what `search_answer` makes of it."""
    chosen = choose_topics(library, topic)
    directories = [library.store.directory(found.id) for found in chosen]
    result = search(directories, question, limit=limit)
    hit_topics = {hit.topic for hit in result.hits}
    return search_answer(
        result,
        {found.id: found for found in chosen},
        {topic_id: _provenance(library, topic_id) for topic_id in hit_topics},
        library.clock(),
    )


def choose_topics(library: Library, wanted: str | None) -> list[TopicFile]:
    """Return the topics to search: by id, by title without case, by words, or all."""
    topics, _ = library.topics()
    if not wanted:
        return [topic for topic in topics if topic.status is not Status.OBSOLETE]
    exact = [topic for topic in topics if topic.id == wanted]
    exact = exact or [t for t in topics if t.title.casefold() == wanted.casefold()]
    if exact:
        if exact[0].status is Status.OBSOLETE:
            raise ObsoleteTopicError(exact[0].id)
        return exact[:1]
    active = [topic for topic in topics if topic.status is not Status.OBSOLETE]
    hits = search_topics(active, wanted)
    if not hits:
        raise UnknownReferenceError(wanted, [topic.id for topic in active])
    return [hits[0].topic]


def _provenance(library: Library, topic_id: str) -> Provenance:
    try:
        return library.store.read_provenance(topic_id)
    except KbError:  # `verify` tells of it; the hits stand
        return Provenance()
