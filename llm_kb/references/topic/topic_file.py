"""The content of a `topic.md`: a reference topic's id, title, description and sources. Pure."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from llm_kb.references.sources.file_names import slug_text
from llm_kb.references.sources.records import Source, source_table

MAX_TITLE = 200
MAX_ID = 80
MAX_AGE_DAYS = 36_500

SNIPPET = 160
"""Longest excerpt of a description in a menu or a search result, in characters."""


class Status(Enum):
    """The status set by a topic's owner; staleness by age is computed."""

    ACTIVE = "active"
    STALE = "stale"
    OBSOLETE = "obsolete"


STATUSES = tuple(status.value for status in Status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A reference topic as requested: its id, title, description and sources."""

    id: str
    title: str
    body: str = ""
    tags: tuple[str, ...] = ()
    max_age_days: int = 0
    trust_score: int | None = None
    created_by: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of the request, which does not depend on the content of the sources."""
        asked: Sequence[Any] = [
            self.id,
            self.title,
            self.body,
            list(self.tags),
            self.max_age_days,
            self.trust_score,
            [source_table(source) for source in self.sources],
        ]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFile(Description):
    """The content of a `topic.md`: a description, and the state of the topic."""

    created_at: datetime | None = None
    fetched_at: datetime | None = None
    status: Status = Status.ACTIVE
    files: tuple[str, ...] = ()
    """The fetched files, if there are few; `.provenance.json` lists all."""
    file_count: int = 0
    generated: bool = False
    """Whether a search includes generated files, like `Topic.generated`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHit:
    """A topic found by a search, with the score of its best passage, from 0 to 1."""

    topic: TopicFile
    score: float
    snippet: str


def list_fields(topic: Description) -> dict[str, Any]:
    """Return the fields of a description as arguments for another record with these fields."""
    return {each.name: getattr(topic, each.name) for each in fields(Description)}


def make_topic_id(title: str) -> str:
    """Return the id of a title, safe as the name of a directory: `topic-dioxus-ui`.

    Titles without an ASCII letter or digit, and titles too long for a file name, get a
    digest that tells them apart.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return f"topic-{slug_text(plain, title, MAX_ID)}"


def format_time(moment: datetime) -> str:
    """Return a time as `topic.md` and JSON write it: UTC, whole seconds, `Z`."""
    # Not strftime, which differs between systems for years below 1000.
    utc = moment.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None)
    return f"{utc.isoformat()}Z"


def make_snippet(body: str, terms: Sequence[str] = ()) -> str:
    """Return the paragraph of a description with most of the terms, shortened."""
    paragraphs = [
        " ".join(paragraph.split())
        for paragraph in body.split("\n\n")
        if paragraph.strip() and not paragraph.lstrip().startswith("#")
    ]
    if not paragraphs:
        return ""
    text = max(paragraphs, key=lambda p: sum(term in p.casefold() for term in terms))
    return text if len(text) <= SNIPPET else text[: SNIPPET - 3].rstrip() + "..."
