"""What a prompt says of references: the recent topics, and where a file came from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from llm_kb.references.provenance import FileRecord
from llm_kb.references.topic_file import TopicFile, format_time

HEADING = "## Available Reference Topics"
MOST = 10

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def render_recent_topics(topics: Sequence[TopicFile], most: int = MOST) -> str | None:
    """List the most recently fetched topics, newest first; None when there are none.

    The caller leaves out obsolete ones.
    """
    if not topics:
        return None
    newest = sorted(topics, key=lambda topic: topic.id)
    newest.sort(key=lambda topic: topic.fetched_at or _NEVER, reverse=True)
    return "\n".join([HEADING, "", *(_render_line(topic) for topic in newest[:most])])


def render_origin(topic: TopicFile, record: FileRecord | None, now: datetime) -> str:
    """Return the line above a fetched file: `source @ commit, fetched when`, and STALE."""
    if record is None:
        return f"not fetched: added to {topic.id} by hand"
    at = f" @ {record.commit}" if record.commit else ""
    fetched = format_time(topic.fetched_at) if topic.fetched_at else record.fetched_at
    line = f"{record.url}{at}, fetched {fetched}"
    if not topic.is_stale(now):
        return line
    since = topic.stale_since(now)
    return f"{line}, STALE since {format_time(since)}" if since else f"{line}, STALE"


def _render_line(topic: TopicFile) -> str:
    tags = ", ".join(" ".join(tag.split()) for tag in topic.tags)
    line = f"- {topic.title} (`{topic.id}`)"
    return f"{line} — {tags}" if tags else line
