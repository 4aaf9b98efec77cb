"""A reference topic as its `topic.md` describes it: its title and id, and when it is stale.

Pure; the text of the file is read and written by `topic_text`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum

from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.provenance import FileRecord

MAX_TITLE = 200
MAX_ID = 80


class Status(Enum):
    """What a topic's owner says of it; staleness by age is computed besides."""

    ACTIVE = "active"
    STALE = "stale"
    OBSOLETE = "obsolete"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFile:
    """The content of one `topic.md`."""

    id: str
    title: str
    body: str = ""
    created_at: datetime | None = None
    fetched_at: datetime | None = None
    max_age_days: int = 0
    status: Status = Status.ACTIVE
    trust_score: int | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    created_by: Mapping[str, str] = field(default_factory=dict)

    def is_stale(self, now: datetime) -> bool:
        """Tell whether its owner says so or gave it up, or its age is past its limit."""
        if self.status is Status.STALE:
            return True
        if self.max_age_days == 0:
            return False
        if self.status is Status.OBSOLETE:
            return True
        return self.fetched_at is None or (now - self.fetched_at).days > self.max_age_days

    def stale_since(self, now: datetime) -> datetime | None:
        """Return when a stale topic became so; None for a fresh one, or without a date.

        One that its owner marked before its age did is held stale from the start:
        when it was marked is not recorded.
        """
        if not self.is_stale(now) or self.fetched_at is None:
            return None
        # Compared as days: a time so far ahead may be none.
        if not self.max_age_days or (now - self.fetched_at).days <= self.max_age_days:
            return self.fetched_at
        return self.fetched_at + timedelta(days=self.max_age_days + 1)

    def status_at(self, now: datetime) -> Status:
        """Return the status to show: stale where age makes it so."""
        if self.status is Status.ACTIVE and self.is_stale(now):
            return Status.STALE
        return self.status


def make_topic_id(title: str) -> str:
    """Return the id of a title, safe as the name of a directory: `topic-dioxus-ui`.

    A title without a letter or digit of ASCII, or too long a one, is told apart
    from others like it by a digest.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    digest = hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if not slug:
        slug = digest
    elif len(slug) > MAX_ID:
        slug = f"{slug[:MAX_ID].rstrip('-')}-{digest}"
    return f"topic-{slug}"


def check_title(title: str, where: str = "title") -> str:
    """Return a title in one line; raise TopicFileError when there is nothing in it."""
    title = " ".join(title.split())
    bad = [c for c in title if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"}]
    if not title or bad or len(title) > MAX_TITLE:
        raise TopicFileError(where, f"{title[:60]!r} must be 1 to {MAX_TITLE} visible characters")
    return title


def format_time(moment: datetime) -> str:
    """Return a time as `topic.md` and JSON have it: UTC, whole seconds, `Z`."""
    # Not strftime: what it makes of a year below 1000 differs between systems.
    utc = moment.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None)
    return f"{utc.isoformat()}Z"


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


def make_snippet(body: str, terms: Sequence[str] = ()) -> str:
    """Return the paragraph of a description that holds most of the terms, shortened."""
    paragraphs = [
        " ".join(paragraph.split())
        for paragraph in body.split("\n\n")
        if paragraph.strip() and not paragraph.lstrip().startswith("#")
    ]
    if not paragraphs:
        return ""
    text = max(paragraphs, key=lambda p: sum(term in p.casefold() for term in terms))
    return text if len(text) <= SNIPPET else text[: SNIPPET - 3].rstrip() + "..."


SNIPPET = 160
