"""What tools, commands and prompts list of the fetched topics."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from llm_kb.config.settings import Config
from llm_kb.references.library import Library, open_library
from llm_kb.references.sources.records import source_table
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time

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
