"""Finds fetched topics by id, title, words or meaning, and lists them for tools and prompts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone
from hashlib import blake2b
from typing import Any

from llm_kb.files.topic_documents import stamp_content
from llm_kb.references.errors import ObsoleteTopicError, UnknownReferenceError
from llm_kb.references.library import DESCRIPTIONS, Library
from llm_kb.references.sources.records import source_table
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time, make_snippet
from llm_kb.search.index.documents import Documents, File
from llm_kb.search.titles import find_named

NEAR = 0.3
"""Cosine from which a topic may be about a query: with a small model bench/retrieval/topics.py
found 95 of 100 intended topics at or above this one, and 87 at 0.4."""

MOST_NEAR = 3
"""The most topics found by meaning alone."""

MOST_FOUND = 10
"""Number of topics that a search for topics returns."""

MOST_NAMED = 5
"""Number of topics that words may name together, and that an error suggests."""


class Descriptions(Documents):
    """The descriptions of topics as documents in the index of their library."""

    name = DESCRIPTIONS

    def __init__(self, library: Library, topics: Sequence[TopicFile]) -> None:
        self.root = str(library.root)
        self.index = library.index
        self._texts = {
            _hide(topic.id): f"# {topic.title}\n\n{', '.join(topic.tags)}\n\n{topic.body}".encode()
            for topic in topics
        }

    def list(self) -> Iterator[File]:
        """Yield the topics, each with a stamp that changes with its description."""
        for path, text in self._texts.items():
            yield File(path, *stamp_content(text))

    def read(self, path: str) -> bytes:
        """Return the text that describes a topic."""
        return self._texts[path]


def _hide(topic_id: str) -> str:
    """Return a path for a topic that contains no word of a query."""
    return f"{blake2b(topic_id.encode(), digest_size=10).hexdigest()}.md"


def find_topics(library: Library, query: str) -> list[tuple[TopicFile, float, str]]:
    """Return the topics that a query is about, best first, each with its score and a snippet.

    Obsolete ones are among them. With an embedding model, topics that mean the same in other words
    are found too: the nearest few, so that the caller can choose by their titles.
    """
    # Imported here: a prompt, and a client's greeting, look for a topic by its name alone.
    from llm_kb.search.question import EmptyQuestionError, parse_question  # noqa: PLC0415
    from llm_kb.search.search import search  # noqa: PLC0415

    topics, _ = library.topics()
    try:
        asked = parse_question(query)
    except EmptyQuestionError:
        return []
    if not topics:
        return []
    described = Descriptions(library, topics)
    result = search([described], asked, library.find_embedder, limit=len(topics))
    near = [hit for hit in result.hits if not hit.bm25][:MOST_NEAR]
    by_path = {_hide(topic.id): topic for topic in topics}
    found: dict[str, tuple[TopicFile, float, str]] = {}
    for hit in result.hits:
        if hit.bm25 or (hit in near and (hit.cosine or 0) >= NEAR):
            topic = by_path[hit.path]
            snippet = make_snippet(topic.body, asked.words)
            found.setdefault(hit.path, (topic, hit.score, snippet))
    return list(found.values())[:MOST_FOUND]


def find_topic(library: Library, wanted: str, *, obsolete: bool = False) -> TopicFile:
    """Return the one topic that `find_meant` finds; raise its errors, also for several topics."""
    found = find_meant(library, wanted, obsolete=obsolete)
    if len(found) > 1:
        raise UnknownReferenceError(wanted, library.ids(), near=[each.id for each in found])
    return found[0]


def find_meant(library: Library, wanted: str, *, obsolete: bool = False) -> list[TopicFile]:
    """Return the topic of an id, of a title in any case, or the few that words clearly name.

    Raises UnknownReferenceError, which names the nearest topics, for words that name none or
    many, TopicFileError if its own file cannot be read, and ObsoleteTopicError unless
    `obsolete` topics are allowed.
    """
    if wanted in library.ids():
        found = [library.read(wanted)]
    else:
        topics, _ = library.topics()
        active = [topic for topic in topics if topic.status is not Status.OBSOLETE]
        found = _find_named(active, wanted) or _find_named(topics, wanted)
        if not 1 <= len(found) <= MOST_NAMED:
            near = found or [near for near, _, _ in find_topics(library, wanted)]
            raise UnknownReferenceError(
                wanted,
                [topic.id for topic in active],
                near=[topic.id for topic in near if topic in active][:MOST_NAMED],
            )
    if found[0].status is Status.OBSOLETE and not obsolete:
        raise ObsoleteTopicError(found[0].id)
    return found


def find_id(library: Library, wanted: str) -> str:
    """Return the id that an id, a title or words name; broken topics are found too."""
    if wanted in library.ids():
        return wanted
    return find_topic(library, wanted, obsolete=True).id


def _find_named(topics: Sequence[TopicFile], wanted: str) -> list[TopicFile]:
    titled = [topic for topic in topics if topic.title.casefold() == wanted.casefold()]
    return titled or find_named(topics, wanted)


MOST_RECENT = 10
"""Number of topics that a prompt lists."""

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def topic_entry(topic: TopicFile, now: datetime, outdated: str | None = None) -> dict[str, Any]:
    """Return a topic as an entry of `reference_topic_list`; an `outdated` one is stale."""
    is_stale = outdated is not None or topic_file.is_stale(topic, now)
    status = Status.STALE if is_stale and topic.status is Status.ACTIVE else topic.status
    entry = {
        "topic_id": topic.id,
        "title": topic.title,
        "status": status.value,
        "is_stale": is_stale,
        "fetched_at": topic.fetched_at and format_time(topic.fetched_at),
        "max_age_days": topic.max_age_days,
        "created_by_ghost": topic.created_by.get("ghost"),
        "source_count": len(topic.sources),
        "file_count": topic.file_count,
        "tags": list(topic.tags),
    }
    return entry | _trust(topic) | ({"outdated": outdated} if outdated else {})


def _trust(topic: TopicFile) -> dict[str, Any]:
    return {} if topic.trust_score is None else {"trust_score": topic.trust_score}


def list_topics(
    library: Library, include_obsolete: bool = False
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the answer of `reference_topic_list`, and the problems of unreadable topics."""
    topics, problems = library.topics()
    entries = [
        topic_entry(topic, library.clock(), library.find_outdated(topic))
        for topic in topics
        if include_obsolete or topic.status is not Status.OBSOLETE
    ]
    return entries, problems


def topic_details(library: Library, topic_id: str) -> dict[str, Any]:
    """Return everything recorded about a topic, for `show`."""
    topic, now = library.read(topic_id), library.clock()
    since, directory = topic_file.stale_since(topic, now), library.directory(topic_id)
    return topic_entry(topic, now, library.find_outdated(topic)) | {
        "created_at": topic.created_at and format_time(topic.created_at),
        "created_by": dict(topic.created_by),
        "stale_since": since and format_time(since),
        "sources": [source_table(source) for source in topic.sources],
        "files": sorted(topic_directory.read_provenance(directory).files),
        "body": topic.body,
        "path": str(directory),
    }


def topic_hit_entry(topic: TopicFile, score: float, snippet: str, now: datetime) -> dict[str, Any]:
    """Return a topic that was found as an entry of `reference_topic_search`."""
    entry = topic_entry(topic, now)
    kept = ("topic_id", "title", "status", "is_stale", "fetched_at", "tags")
    found = {"score": score, "snippet": snippet}
    return {key: entry[key] for key in kept} | found | _trust(topic)


def recent_references(library: Library, listed: Collection[str] = ()) -> str | None:
    """Return the prompt's list of recently fetched topics, newest first; None without any.

    Topics that are `listed` in a menu next to it are left out.
    """
    found, _ = library.topics()
    topics = [t for t in found if t.status is not Status.OBSOLETE and t.id not in listed]
    if not topics:
        return None
    topics.sort(key=lambda topic: topic.fetched_at or _NEVER, reverse=True)
    lines = ["## Available Reference Topics", ""]
    for topic in topics[:MOST_RECENT]:
        tags = ", ".join(" ".join(tag.split()) for tag in topic.tags)
        lines.append(f"- {topic.title} (`{topic.id}`)" + (f" — {tags}" if tags else ""))
    return "\n".join(lines)
