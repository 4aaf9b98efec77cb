"""Topics and hits as tables: the same for models and for `--json`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from llm_kb.references.sources.records import source_table
from llm_kb.references.topic.staleness import is_stale, shown_status, stale_since
from llm_kb.references.topic.topic_file import TopicFile, TopicHit, format_time


def topic_entry(topic: TopicFile, now: datetime, outdated: str | None = None) -> dict[str, Any]:
    """Return a topic as an entry of `reference_topic_list`; an `outdated` one is stale."""
    return (
        {
            "topic_id": topic.id,
            "title": topic.title,
            "status": shown_status(topic, now, outdated).value,
            "is_stale": outdated is not None or is_stale(topic, now),
            "fetched_at": _time(topic.fetched_at),
            "max_age_days": topic.max_age_days,
            "created_by_ghost": topic.created_by.get("ghost"),
            "source_count": len(topic.sources),
            "file_count": topic.file_count,
            "tags": list(topic.tags),
        }
        | _trust(topic)
        | ({"outdated": outdated} if outdated else {})
    )


def _trust(topic: TopicFile) -> dict[str, Any]:
    return {} if topic.trust_score is None else {"trust_score": topic.trust_score}


def topic_details(
    topic: TopicFile, files: Sequence[str], now: datetime, path: str, outdated: str | None = None
) -> dict[str, Any]:
    """Return everything recorded about a topic, for `show`."""
    return topic_entry(topic, now, outdated) | {
        "created_at": _time(topic.created_at),
        "created_by": dict(topic.created_by),
        "stale_since": _time(stale_since(topic, now)),
        "sources": [source_table(source) for source in topic.sources],
        "files": list(files),
        "body": topic.body,
        "path": path,
    }


def topic_hit_entry(hit: TopicHit, now: datetime) -> dict[str, Any]:
    """Return a topic as an entry of `reference_topic_search`."""
    return {
        "topic_id": hit.topic.id,
        "title": hit.topic.title,
        "status": shown_status(hit.topic, now).value,
        "is_stale": is_stale(hit.topic, now),
        "fetched_at": _time(hit.topic.fetched_at),
        "tags": list(hit.topic.tags),
        "score": hit.score,
        "snippet": hit.snippet,
    } | _trust(hit.topic)


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
