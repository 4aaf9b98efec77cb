"""Answers from fetched topics, found as in every search: for `reference_search` and its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_kb.knowledge_base.passages import SearchOptions, find_passages
from llm_kb.knowledge_base.tool_text import DEFAULT_LIMIT
from llm_kb.knowledge_base.topics import OpenTopic
from llm_kb.references.catalog import ReferenceCatalog, reference_topic
from llm_kb.references.find_topics import find_meant
from llm_kb.references.library import Library
from llm_kb.references.topic.topic_file import (
    Status,
    TopicFile,
    format_time,
    stale_since,
    without_heading,
)
from llm_kb.rendering.passages import Passage, Passages, find_notes
from llm_kb.rendering.plain_text import name_some, shorten
from llm_kb.search.roles import Scope
from llm_kb.subjects.selection import keep_tagged

LONGEST_DESCRIPTION = 500
"""Number of characters of a topic's description that precede the passages found in it."""


def search_references(  # noqa: PLR0913 - each narrows the search
    library: Library,
    question: str,
    topic: str | None = None,
    limit: int = DEFAULT_LIMIT,
    *,
    scope: Scope | None = None,
    tags: Sequence[str] = (),
) -> dict[str, Any]:
    """Search the topics that `topic` names, or all that are not obsolete, for `limit` passages.

    `tags` keeps the topics with one of them. The answer begins with the topics: those that were
    named, else those with a passage. It warns of files that were not searched. Raises
    EmptyQuestionError for a question without a word.
    """
    problems: list[str] = []
    if topic:
        chosen = find_meant(library, topic)
    else:
        found, unreadable = library.topics()
        chosen = [each for each in found if each.status is not Status.OBSOLETE]
        problems = [f"not searched: {name_some(unreadable)}"] if unreadable else []
    chosen = [chosen[number] for number in keep_tagged([each.tags for each in chosen], tags)]
    options = SearchOptions(find_embedder=library.find_embedder, whole=True, scope=scope)
    answer = find_passages([_open(library, each) for each in chosen], question, limit, options)
    topics = {each.id: each for each in chosen}
    searched = list(dict.fromkeys(passage.topic for passage in answer.passages))
    problems += _find_warnings(library, answer, [topics[each] for each in searched])
    shown = topics if topic else {topic_id: topics[topic_id] for topic_id in searched}
    return _describe(library, answer, shown) | ({"warnings": problems} if problems else {})


def _open(library: Library, described: TopicFile) -> OpenTopic:
    """Open a fetched topic, of which hidden files are searched as well."""
    topic = reference_topic(described, library.store.directory(described.id))
    return OpenTopic(topic, ReferenceCatalog(topic, described, library))


def _find_warnings(
    library: Library, answer: Passages, searched: Sequence[TopicFile]
) -> Iterator[str]:
    """Yield the notes of a search, why it found nothing, and the topics that are outdated."""
    yield from find_notes(answer)
    if answer.why_nothing:
        yield answer.why_nothing
    elif answer.topics and not answer.passages:
        yield "no text has a word of that; try the words such a text would use"
    for topic in searched:
        if outdated := library.find_outdated(topic):
            yield f"{topic.id}: {outdated}; to follow: llm kb references refresh {topic.id}"


def _describe(
    library: Library, answer: Passages, topics: Mapping[str, TopicFile]
) -> dict[str, Any]:
    """Return the answer of `reference_search`: the topics, then the passages, best first."""
    return {
        "topics": [_describe_topic(topic) for topic in topics.values()],
        "legs": list(answer.legs),
        "results": [
            _describe_passage(passage, stale_since(topics[passage.topic], library.clock()))
            for passage in answer.passages
        ],
    }


def _describe_topic(topic: TopicFile) -> dict[str, Any]:
    """Return title, trust and description of a topic that was searched."""
    body = " ".join(without_heading(topic.title, topic.body).split())
    entry: dict[str, Any] = {"topic_id": topic.id, "title": topic.title}
    if topic.trust_score is not None:
        entry["trust_score"] = topic.trust_score
    return entry | ({"description": shorten(body, LONGEST_DESCRIPTION)} if body else {})


def _describe_passage(passage: Passage, since: Any) -> dict[str, Any]:
    """Return one passage: its place, origin and text, and the time its topic became stale."""
    entry: dict[str, Any] = {
        "topic_id": passage.topic,
        "file": passage.path,
        "lines": f"{passage.first_line}-{passage.last_line}",
        "origin": passage.origin,
        "title": passage.title,
        "role": passage.role.value,
        "score": passage.score,
        "text": passage.text,
    }
    if passage.also_in:
        entry["also_in"] = list(passage.also_in)
    return entry | ({"stale_since": format_time(since)} if since else {})
