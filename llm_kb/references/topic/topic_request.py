"""Checks the requests of models and operators, before they have any effect. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llm_kb.characters import HIDDEN
from llm_kb.files.fields import BadValueError, Fields, describe, read_choice, read_count
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import (
    Source,
    read_source,
    read_string,
    source_table,
)
from llm_kb.references.topic.topic_file import (
    MAX_AGE_DAYS,
    STATUSES,
    Description,
    make_topic_id,
    read_title,
)

MAX_BODY = 20_000
MAX_TAGS = 20
MAX_SOURCES = 30

MAX_URL, MAX_PATHS, MAX_PATH = 2000, 100, 300
"""Limits of an address and of the `paths` of a source."""

WHERE = "reference topic"

_LINE_END = re.compile("\r\n|[\x85\u2028\u2029]")
_HIDDEN = re.compile(f"[{HIDDEN}\r]")


def parse_request(
    arguments: Mapping[str, Any],
    *,
    created_by: Mapping[str, str],
    protocols: Collection[str] = (),
    allow_local: bool = False,
) -> Description:
    """Return the description of a new topic from its fields; raise TopicFileError for all flaws."""
    fields = Fields(arguments)
    title = fields.text("title", read=read_title)
    sources = [
        _read_source(each, protocols, allow_local=allow_local)
        for each in fields.list_of_fields("sources")
    ]
    if not sources:
        fields.report("sources", "at least one source is needed")
    if len(sources) > MAX_SOURCES:
        fields.report("sources", f"{len(sources)} are more than {MAX_SOURCES}")
    description = Description(
        id=make_topic_id(title),
        title=title,
        body=fields.get("body", read_body) or "",
        sources=tuple(filter(None, sources)),
        tags=fields.get("tags", read_tags) or (),
        max_age_days=fields.count("max_age_days", 30, most=MAX_AGE_DAYS),
        trust_score=fields.get("trust_score", lambda value: read_count(value, most=10)),
        created_by=dict(created_by),
    )
    fields.reject_unknown()
    fields.raise_problems(_error)
    return description


def request_table(request: Description) -> dict[str, Any]:
    """Return the fields of a request, as `parse_request` reads them back."""
    return {
        "title": request.title,
        "body": request.body,
        "sources": [source_table(source) for source in request.sources],
        "tags": list(request.tags),
        "max_age_days": request.max_age_days,
        "trust_score": request.trust_score,
    }


def parse_changes(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the keys that an update sets, and the new description; raise TopicFileError."""
    fields = Fields(arguments)
    found = {
        "status": fields.get("status", lambda value: read_choice(value, STATUSES)),
        "max_age_days": fields.get("max_age_days", lambda v: read_count(v, most=MAX_AGE_DAYS)),
        "tags": fields.get("tags", read_tags),
    }
    body = fields.get("body", read_body)
    fields.reject_unknown()
    fields.raise_problems(_error)
    changes = {key: value for key, value in found.items() if value is not None}
    if not changes and body is None:
        raise TopicFileError(WHERE, "nothing to change: give status, max_age_days, body or tags")
    return changes, body


def _read_source(fields: Fields, protocols: Collection[str], *, allow_local: bool) -> Source | None:
    """Return a source short enough for an operator to read; else record its problems."""
    source = read_source(fields, allow_local=allow_local, protocols=protocols)
    if source is None:
        return None
    paths = source.paths
    if len(source.url) > MAX_URL:
        fields.report("url", f"{len(source.url):,} characters, over {MAX_URL:,}")
    if len(paths) > MAX_PATHS:
        fields.report("paths", f"{len(paths):,} paths are more than {MAX_PATHS}")
    if (longest := max(map(len, paths), default=0)) > MAX_PATH:
        fields.report("paths", f"one has {longest:,} characters, over {MAX_PATH}")
    return source


def _error(problems: Sequence[str]) -> TopicFileError:
    return TopicFileError(WHERE, "; ".join(problems))


def read_tags(value: object) -> tuple[str, ...]:
    """Read tags: one line each, none twice."""
    allowed = f"a list of at most {MAX_TAGS} strings of 50 visible characters"
    if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
        raise BadValueError(describe(value), allowed)
    cleaned = dict.fromkeys(" ".join(tag.split()) for tag in value)
    if len(cleaned) > MAX_TAGS or any(len(tag) > 50 or not tag.isprintable() for tag in cleaned):
        raise BadValueError(describe(value), allowed)
    return tuple(tag for tag in cleaned if tag)


def read_body(value: object) -> str:
    """Read a description, without control and invisible characters."""
    text = read_string(value)
    if len(text) > MAX_BODY:
        raise BadValueError(f"{len(text):,} characters", f"at most {MAX_BODY:,} characters")
    return _HIDDEN.sub("", _LINE_END.sub("\n", text))
