"""Fuzz `topic.md`: any bytes are a topic or a TopicFileError, and what is written is read back."""

from __future__ import annotations

from datetime import datetime, timezone

from llm_kb.references.errors import TopicFileError
from llm_kb.references.fetched import render_origin
from llm_kb.references.topic.topic_file import (
    change_topic_file,
    is_stale,
    parse_topic_file,
    render_topic_file,
    stale_since,
)

NOW = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)


def fuzz(data: bytes) -> None:
    """Read a `topic.md`; use, change and write it if it is valid."""
    text = data.decode("utf-8", "replace")
    try:
        topic = parse_topic_file(text, "topic.md")
    except TopicFileError:
        return
    assert is_stale(topic, NOW) or stale_since(topic, NOW) is None
    render_origin(topic, None, NOW)
    again = parse_topic_file(render_topic_file(topic), "topic.md")
    assert (again.id, again.title, again.sources) == (topic.id, topic.title, topic.sources)
    try:
        changed = change_topic_file(text, "topic.md", {"max_age_days": 7}, "New body")
    except TopicFileError:
        return  # TOML that only one of the two readers takes
    assert parse_topic_file(changed, "topic.md").max_age_days == 7
