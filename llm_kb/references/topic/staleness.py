"""When a reference topic is stale, and how that is shown. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from llm_kb.references.topic.provenance import FileRecord
from llm_kb.references.topic.topic_file import Status, TopicFile, format_time

CLOCK_SKEW = timedelta(days=1)
"""How far in the future a fetch may lie, since clocks of machines differ."""


def is_stale(topic: TopicFile, now: datetime) -> bool:
    """Tell whether a topic is older than its `max_age_days`, or was marked stale or obsolete.

    A time in the future counts as stale, since such a topic would never become so.
    """
    if topic.status is Status.STALE:
        return True
    if topic.max_age_days == 0:
        return False
    if topic.status is Status.OBSOLETE or topic.fetched_at is None:
        return True
    age = now - topic.fetched_at
    return age.days > topic.max_age_days or age < -CLOCK_SKEW


def stale_since(topic: TopicFile, now: datetime) -> datetime | None:
    """Return when a topic became stale; None if it is fresh or the date is unknown.

    A topic that was marked stale before its age made it so counts as stale since it was
    fetched, since the time of the mark is not recorded.
    """
    fetched_at = topic.fetched_at
    if not is_stale(topic, now) or fetched_at is None or now - fetched_at < -CLOCK_SKEW:
        return None
    # Compared in days, since the sum may lie beyond the end of the calendar.
    if not topic.max_age_days or (now - fetched_at).days <= topic.max_age_days:
        return fetched_at
    return fetched_at + timedelta(days=topic.max_age_days + 1)


def shown_status(topic: TopicFile, now: datetime, outdated: str | None = None) -> Status:
    """Return the status to show: an active topic that is too old or `outdated` is stale."""
    if topic.status is Status.ACTIVE and (outdated or is_stale(topic, now)):
        return Status.STALE
    return topic.status


def render_origin(topic: TopicFile, record: FileRecord | None, now: datetime) -> str:
    """Return the line above a fetched file: `source @ commit, fetched when, STALE`, or OBSOLETE."""
    if record is None:
        return f"not fetched: added to {topic.id} by hand"
    at = f" @ {record.commit}" if record.commit else ""
    fetched = format_time(topic.fetched_at) if topic.fetched_at else record.fetched_at
    line = f"{record.url}{at}, fetched {fetched}"
    if topic.status is Status.OBSOLETE:
        return f"{line}, OBSOLETE"
    if not is_stale(topic, now):
        return line
    since = stale_since(topic, now)
    return f"{line}, STALE since {format_time(since)}" if since else f"{line}, STALE"
