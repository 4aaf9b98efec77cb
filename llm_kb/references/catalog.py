"""The reference topics of a request, and the catalog of one topic's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.containment import resolve_links
from llm_kb.files.directory import DirectoryCatalog
from llm_kb.files.documents import TopicDocuments
from llm_kb.references.library import Library, open_library
from llm_kb.references.sources.records import source_table
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.topic_directory import FileRecord
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time
from llm_kb.subjects.topics import Catalog, Config, Content, Listing, Subject, Topic

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
        "fetched_at": _time(topic.fetched_at),
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
    directory = library.directory(topic_id)
    return topic_entry(topic, now, library.find_outdated(topic)) | {
        "created_at": _time(topic.created_at),
        "created_by": dict(topic.created_by),
        "stale_since": _time(topic_file.stale_since(topic, now)),
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


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None


def reference_topics(config: Config, user_dir: Path) -> Iterator[tuple[Topic, Catalog]]:
    """Yield the reference topics with their catalogs, sorted by id.

    An unreadable one is left out; `llm kb references list` gives the reason.
    """
    library = open_library(config, user_dir)
    for id_ in library.ids():
        with suppress(KbError):
            described = library.read(id_)
            topic = reference_topic(described, library.directory(id_))
            yield topic, ReferenceCatalog(topic, described, library)


def recent_references(config: Config, user_dir: Path, listed: Collection[str] = ()) -> str | None:
    """Return the prompt's list of recently fetched topics, newest first; None without any.

    Topics that are `listed` in a menu next to it are left out.
    """
    found, _ = open_library(config, user_dir).topics()
    topics = [t for t in found if t.status is not Status.OBSOLETE and t.id not in listed]
    if not topics:
        return None
    topics.sort(key=lambda topic: topic.fetched_at or _NEVER, reverse=True)
    lines = ["## Available Reference Topics", ""]
    for topic in topics[:MOST_RECENT]:
        tags = ", ".join(" ".join(tag.split()) for tag in topic.tags)
        lines.append(f"- {topic.title} (`{topic.id}`)" + (f" — {tags}" if tags else ""))
    return "\n".join(lines)


def reference_topic(described: TopicFile, directory: Path) -> Topic:
    """Return the topic that a `topic.md` describes."""
    return Topic(
        id=described.id,
        root=resolve_links(directory),
        title=described.title,
        introduction=topic_file.make_snippet(described.body) or None,
        description=topic_file.without_heading(described.title, described.body) or None,
        in_menu=described.status is not Status.OBSOLETE,
        tags=described.tags,
        # Anchored, so that only our files at the topic's root are ignored, not fetched ones.
        ignore=tuple(f"/{name}" for name in sorted(topic_directory.RESERVED)),
    )


def render_origin(topic: TopicFile, record: FileRecord | None, now: datetime) -> str:
    """Return the line above a fetched file: `source @ commit, fetched when, STALE`, or OBSOLETE."""
    if record is None:
        return f"not fetched: added to {topic.id} by hand"
    at = f" @ {record.commit}" if record.commit else ""
    fetched = format_time(topic.fetched_at) if topic.fetched_at else record.fetched_at
    line = f"{record.url}{at}, fetched {fetched}"
    if topic.status is Status.OBSOLETE:
        return f"{line}, OBSOLETE"
    if not topic_file.is_stale(topic, now):
        return line
    since = topic_file.stale_since(topic, now)
    return f"{line}, STALE since {format_time(since)}" if since else f"{line}, STALE"


class ReferenceCatalog:
    """The fetched files of a topic, each read with a line on its origin. Implements `Catalog`.

    It is not a `DirectoryCatalog`: commands that write into a directory's files, or name them
    by their place, leave fetched files alone.
    """

    def __init__(self, topic: Topic, described: TopicFile, library: Library) -> None:
        self._catalog = DirectoryCatalog(topic, library.conversions)
        self._described = described
        self._directory = topic.root
        self._library = library

    @property
    def documents(self) -> TopicDocuments:
        """The documents that a search indexes, the same as for `reference_search`."""
        return self._library.documents(self._described.id)

    @property
    def index(self) -> Path:
        """The path of the index of all fetched topics."""
        return self._library.index

    def list(self, reference: str | None = None) -> Listing:
        """Return every subject, or those that a reference names."""
        return self._catalog.list(reference)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Read a subject with its origin; raise UnreadableError like any catalog."""
        record = self._records.get(subject.path)
        origin = render_origin(self._described, record, self._library.clock())
        return self._catalog.read(subject, limit)._replace(origin=origin)

    @cached_property
    def _records(self) -> Mapping[str, FileRecord]:
        try:
            return topic_directory.read_provenance(self._directory).files
        except KbError:  # `verify` reports it; the file can still be read
            return {}
