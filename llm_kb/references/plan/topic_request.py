"""What models and operators ask for, checked before anything is done. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from llm_kb.references.errors import SourceError, TopicFileError, show_value
from llm_kb.references.sources.records import GitSource, LocalSource, Source, parse_source
from llm_kb.references.topic.topic_file import (
    MAX_AGE_DAYS,
    Description,
    Status,
    check_title,
    make_topic_id,
)
from llm_kb.rendering.plain_text import JOINERS

MAX_BODY = 20_000
MAX_TAGS = 20
MAX_SOURCES = 30

MAX_URL, MAX_PATHS, MAX_PATH = 2000, 100, 300
"""Bounds of an address and of the `paths` of a source."""

WHERE = "reference topic"

_LINE_END = re.compile("\r\n|[\x85\u2028\u2029]")
_KEPT = frozenset(f"\n\t{JOINERS}")
_FIELDS = frozenset({"title", "body", "sources", "tags", "max_age_days", "trust_score"})


def parse_request(
    arguments: Mapping[str, Any],
    *,
    created_by: Mapping[str, str],
    protocols: Collection[str] = (),
    allow_local: bool = False,
) -> Description:
    """Check the fields of a new topic; raise TopicFileError or SourceError by name."""
    _check_keys(arguments, _FIELDS)
    title = check_title(_text(arguments.get("title"), "title"))
    sources = arguments.get("sources")
    if not isinstance(sources, list | tuple) or not sources:
        raise SourceError("sources", "at least one source is needed")
    if len(sources) > MAX_SOURCES:
        raise SourceError("sources", f"{len(sources)} are more than {MAX_SOURCES}")
    for index, source in enumerate(sources):
        if not isinstance(source, Mapping):
            raise SourceError(f"sources[{index}]", "a source is an object with type and url")
    parsed = tuple(
        parse_source(source, f"sources[{index}]", allow_local=allow_local, protocols=protocols)
        for index, source in enumerate(sources)
    )
    for index, source in enumerate(parsed):
        _check_bounds(source, f"sources[{index}]")
    return Description(
        id=make_topic_id(title),
        title=title,
        body=check_body(arguments.get("body") or ""),
        sources=parsed,
        tags=check_tags(arguments.get("tags")),
        max_age_days=_number(arguments.get("max_age_days"), "max_age_days", MAX_AGE_DAYS, 30),
        trust_score=(
            None
            if arguments.get("trust_score") is None
            else _number(arguments["trust_score"], "trust_score", 10, 0)
        ),
        created_by=dict(created_by),
    )


def _check_bounds(source: Source, where: str) -> None:
    """Raise SourceError for more or longer texts than an operator can read before approving."""
    paths = source.paths if isinstance(source, GitSource | LocalSource) else ()
    if len(source.url) > MAX_URL:
        raise SourceError(where, f"its url has {len(source.url):,} characters, over {MAX_URL:,}")
    if len(paths) > MAX_PATHS:
        raise SourceError(where, f"{len(paths):,} paths are more than {MAX_PATHS}")
    if longest := next((path for path in paths if len(path) > MAX_PATH), None):
        raise SourceError(where, f"a path has {len(longest):,} characters, over {MAX_PATH}")


def parse_changes(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Check the fields of an update; return the keys to set, and the new description."""
    _check_keys(arguments, {"status", "max_age_days", "body", "tags"})
    changes: dict[str, Any] = {}
    given = {key: value for key, value in arguments.items() if value is not None}
    if "status" in given:
        allowed = [status.value for status in Status]
        if given["status"] not in allowed:
            raise TopicFileError(
                WHERE,
                f"status is {show_value(given['status'])}; it must be one of {', '.join(allowed)}",
            )
        changes["status"] = given["status"]
    if "max_age_days" in given:
        changes["max_age_days"] = _number(given["max_age_days"], "max_age_days", MAX_AGE_DAYS, 0)
    if "tags" in given:
        changes["tags"] = check_tags(given["tags"])
    body = check_body(given["body"]) if "body" in given else None
    if not changes and body is None:
        raise TopicFileError(WHERE, "nothing to change: give status, max_age_days, body or tags")
    return changes, body


def check_tags(tags: object) -> tuple[str, ...]:
    """Return tags in one line each, none twice."""
    if tags is None:
        return ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise TopicFileError(WHERE, "tags must be a list of texts")
    cleaned = dict.fromkeys(" ".join(tag.split()) for tag in tags)
    if len(cleaned) > MAX_TAGS or any(len(tag) > 50 or not tag.isprintable() for tag in cleaned):
        raise TopicFileError(WHERE, f"at most {MAX_TAGS} tags of 50 visible characters each")
    return tuple(tag for tag in cleaned if tag)


def check_body(body: object) -> str:
    """Return a description without what a terminal would carry out, and what nobody sees."""
    text = _text(body, "body", empty=True)
    if len(text) > MAX_BODY:
        raise TopicFileError(WHERE, f"body has {len(text):,} characters, over {MAX_BODY:,}")
    cleaned = "".join(
        c
        for c in _LINE_END.sub("\n", text)
        if c.isprintable() or c in _KEPT or unicodedata.category(c) not in {"Cc", "Cf"}
    )
    return cleaned.encode("utf-8", "replace").decode()


def _check_keys(arguments: Mapping[str, Any], allowed: Collection[str]) -> None:
    unknown = sorted(set(arguments) - set(allowed))
    if unknown:
        known = ", ".join(sorted(allowed))
        raise TopicFileError(WHERE, f"unknown field {unknown[0]!r}; there are {known}")


def _text(value: object, key: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (empty or value.strip()):
        raise TopicFileError(WHERE, f"{key} is missing")
    return value


def _number(value: object, key: str, most: int, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise TopicFileError(
            WHERE, f"{key} is {show_value(value)}; it must be a number from 0 to {most}"
        )
    return value
