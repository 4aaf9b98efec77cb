"""When a reference topic is stale, and the texts that say so. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from llm_kb.references.topic.provenance import FileRecord
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time

CLOCK_SKEW = timedelta(days=1)
"""How far ahead of this machine's clock a topic may have been fetched, on another machine."""


def is_stale(topic: TopicFile, now: datetime) -> bool:
    """Tell whether a topic is older than its `max_age_days`, or its owner gave it up.

    The rule is the seed's. A time in the future is not believed: such a topic would
    never become stale.
    """
    if topic.status is Status.STALE:
        return True
    if topic.max_age_days == 0:
        return False
    if topic.status is Status.OBSOLETE or topic.fetched_at is None:
        return True
    return _age_in_days(topic.fetched_at, now) > topic.max_age_days or _is_ahead(topic, now)


def stale_since(topic: TopicFile, now: datetime) -> datetime | None:
    """Return when a stale topic became so; None for a fresh one, or where no date tells.

    A topic that was marked stale before its age made it so counts as stale since it was
    fetched: the time of the mark is not recorded.
    """
    if not is_stale(topic, now) or topic.fetched_at is None or _is_ahead(topic, now):
        return None
    # Compared as days: the sum may lie beyond the end of the calendar.
    if not topic.max_age_days or _age_in_days(topic.fetched_at, now) <= topic.max_age_days:
        return topic.fetched_at
    return topic.fetched_at + timedelta(days=topic.max_age_days + 1)


def shown_status(topic: TopicFile, now: datetime, outdated: str | None = None) -> Status:
    """Return the status to show: an active topic past its age, or `outdated`, is stale."""
    if topic.status is Status.ACTIVE and (outdated or is_stale(topic, now)):
        return Status.STALE
    return topic.status


def render_origin(topic: TopicFile, record: FileRecord | None, now: datetime) -> str:
    """Return the line above a fetched file: `source @ commit, fetched when`, and STALE."""
    if record is None:
        return f"not fetched: added to {topic.id} by hand"
    at = f" @ {record.commit}" if record.commit else ""
    fetched = format_time(topic.fetched_at) if topic.fetched_at else record.fetched_at
    line = f"{record.url}{at}, fetched {fetched}"
    if not is_stale(topic, now):
        return line
    since = stale_since(topic, now)
    return f"{line}, STALE since {format_time(since)}" if since else f"{line}, STALE"


def _age_in_days(fetched_at: datetime, now: datetime) -> int:
    return (now - fetched_at).days


def _is_ahead(topic: TopicFile, now: datetime) -> bool:
    return topic.fetched_at is not None and topic.fetched_at - now > CLOCK_SKEW
