"""A `topic.md`: what it says of a reference topic, and its text. Pure.

The text is TOML between `+++` lines, and below it the description. The owner may edit the file, so
changes are made in place: comments, order and unknown keys are kept.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Any

from llm_kb.files.fields import (
    BadValueError,
    Fields,
    TomlError,
    decode_toml,
    describe,
    read_choice,
    read_count,
    show_value,
)
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import Source, read_source, read_string, source_table
from llm_kb.references.sources.rules import OPTIONAL_GIT_PROTOCOLS, slug_text
from llm_kb.texts.markup import FRONT_MATTER
from llm_kb.texts.safe import HIDDEN, UNUSABLE

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
class TopicFile:
    """A reference topic as requested or as its `topic.md` describes it, and its state."""

    id: str
    title: str
    body: str = ""
    tags: tuple[str, ...] = ()
    max_age_days: int = 0
    trust_score: int | None = None
    created_by: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    created_at: datetime | None = None
    fetched_at: datetime | None = None
    status: Status = Status.ACTIVE
    files: tuple[str, ...] = ()
    """The fetched files, if there are few; `.provenance.json` lists all."""
    file_count: int = 0

    @property
    def digest(self) -> str:
        """The SHA-256 of the request, which does not depend on the content of the sources."""
        asked = json.dumps(request_table(self), sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()


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


TYPE = "ReferenceTopic"
FENCE = "+++"
WIDTH = 88
"""A list of more characters is written with one item per line."""

MOST_LISTED = 200
"""Most fetched files that `topic.md` lists; of more it states the number."""


def parse_topic_file(text: str, where: str) -> TopicFile:
    """Return the content of a `topic.md`; raise TopicFileError, naming `where`."""
    found = _find_front_matter(text, where)
    try:
        table = decode_toml(found["front"])
    except TomlError as error:
        raise TopicFileError(where, f"its front matter is not TOML: {error}") from error
    if table.get("type") != TYPE:
        raise TopicFileError(where, f"type is {describe(table.get('type'))}, not {TYPE!r}")
    fields = Fields(table)
    files = fields.texts("files", read_string)
    created_by = fields.fields("created_by").table.items()
    topic = TopicFile(
        id=fields.text("id", read=read_string),
        title=fields.text("title", read=read_title),
        body=text[found.end() :].lstrip("\r\n").replace("\r\n", "\n").replace("\r", "\n"),
        tags=fields.texts("tags", read_string),
        max_age_days=fields.count("max_age_days", 0),
        trust_score=fields.get("trust_score", read_count),
        created_by={
            name: value if isinstance(value, str) else show_value(value)
            for name, value in created_by
        },
        sources=read_sources(fields),
        created_at=fields.get("created_at", read_time),
        fetched_at=fields.get("fetched_at", read_time),
        status=Status(fields.choice("status", STATUSES, Status.ACTIVE.value)),
        files=files,
        file_count=fields.count("file_count", len(files)),
    )
    refuse_problems(fields, where)
    return topic


def refuse_problems(fields: Fields, where: str) -> None:
    """Raise TopicFileError if a field of a document has a problem."""
    fields.raise_problems(lambda problems: TopicFileError(where, "; ".join(problems)))


def read_sources(fields: Fields) -> tuple[Source, ...]:
    """Return the sources of a `topic.md` or a record, also old ones; problems are recorded.

    Whether a source is allowed is decided when it is fetched: a topic can still be read after its
    owner disallows a protocol.
    """
    found = [
        read_source(each, protocols=OPTIONAL_GIT_PROTOCOLS, lenient=True)
        for each in fields.list_of_fields("sources")
    ]
    return tuple(filter(None, found))


def render_topic_file(topic: TopicFile) -> str:
    """Return the text of a new `topic.md`."""
    import tomlkit  # noqa: PLC0415 - slow to import, and only needed to write

    fields = {
        "id": topic.id,
        "title": topic.title,
        "type": TYPE,
        "created_at": topic.created_at and format_time(topic.created_at),
        "trust_score": topic.trust_score,
        "tags": topic.tags,
        "status": topic.status.value,
        "fetched_at": topic.fetched_at and format_time(topic.fetched_at),
        "max_age_days": topic.max_age_days,
        "files": topic.files,
        "created_by": dict(topic.created_by) or None,
    }
    document = tomlkit.document()
    _set_fields(document, {key: value for key, value in fields.items() if value is not None})
    tables = map(source_table, topic.sources)
    document["sources"] = tomlkit.item([{k: _item(v) for k, v in each.items()} for each in tables])
    body = with_heading(topic.title, topic.body)
    return f"{FENCE}\n{tomlkit.dumps(document)}{FENCE}\n\n{body}\n"


def change_topic_file(
    text: str, where: str, changes: Mapping[str, Any], body: str | None = None
) -> str:
    """Return the text of a `topic.md` with changed keys, and the rest kept to the byte.

    Changed `sources` must be as many as those in the file; only the fields that fetching
    records are written. All lines end with line feeds then.
    """
    import tomlkit  # noqa: PLC0415 - slow to import, and only needed to write
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    text = text.replace("\r\n", "\n")
    found = _find_front_matter(text, where)
    try:
        document = tomlkit.parse(found["front"])
        if "sources" in changes:
            _pin_sources(document.get("sources", ()), changes["sources"])
        _set_fields(document, {key: changes[key] for key in changes if key != "sources"})
        new_front = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise TopicFileError(where, f"its front matter cannot be changed: {error}") from error
    rest = text[found.end("front") :] if body is None else f"{FENCE}\n\n{body.strip()}\n"
    return text[: found.start("front")] + new_front + rest


def _set_fields(document: Any, fields: Mapping[str, Any]) -> None:
    """Set keys; `files` become `file_count` if there are too many to list."""
    for key, value in fields.items():
        if key == "files":
            is_long = len(value) > MOST_LISTED
            document.pop("files" if is_long else "file_count", None)
            key, value = ("file_count", len(value)) if is_long else (key, value)
        document[key] = _item(value)


def _pin_sources(tables: Sequence[Any], sources: Sequence[Source]) -> None:
    """Write the fetched commits of sources, and the versions of packages."""
    for table, source in zip(tables, sources, strict=False):
        if "commit" in (new := source_table(source)):
            table["commit"] = new["commit"]
        if "package" in new:
            table.update({key: new[key] for key in ("ref", "package") if key in new})


def with_heading(title: str, body: str) -> str:
    """Return a description that begins with a heading: its own, else the title."""
    body = body.strip()
    return body if body.startswith("# ") else f"# {title}\n\n{body}".rstrip()


def without_heading(title: str, body: str) -> str:
    """Return a description without a heading that only repeats the title."""
    return f"{body.strip()}\n".removeprefix(f"# {title}\n").strip()


def _find_front_matter(text: str, where: str) -> re.Match[str]:
    if (found := FRONT_MATTER.match(text)) and found["fence"] == FENCE:
        return found
    raise TopicFileError(where, f"it has no front matter between {FENCE} lines")


def _item(value: Any) -> Any:
    """Return a value as TOML writes it, a long list with one item a line."""
    import tomlkit  # noqa: PLC0415 - as above

    if not isinstance(value, list | tuple):
        return value
    array = tomlkit.item(list(value))
    return array.multiline(len(array.as_string()) > WIDTH)


def read_title(value: object) -> str:
    """Read a title: one visible line."""
    title = " ".join(read_string(value).split())
    if not title or UNUSABLE.search(title) or len(title) > MAX_TITLE:
        raise BadValueError(describe(value), f"1 to {MAX_TITLE} visible characters")
    return title


def read_time(value: object) -> datetime:
    """Return a time in UTC, read from a string, or from a time or date of TOML.

    A time without a zone is in UTC; a date is its midnight.
    """
    text = str(value) if isinstance(value, str | date) else ""
    try:
        # fromisoformat does not know `Z` before Python 3.11.
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        # Converted here, since this fails at either end of the calendar.
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise BadValueError(describe(value), "a time such as '2025-06-15T10:00:00Z'") from error


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


MAX_BODY = 20_000
MAX_TAGS = 20
MAX_SOURCES = 30

MAX_SOURCE = 4_000
"""Characters of a source, for an operator to read."""

WHERE = "reference topic"

_LINE_END = re.compile("\r\n|[\x85\u2028\u2029]")
_HIDDEN = re.compile(f"[{HIDDEN}\r]")


def parse_request(
    arguments: Mapping[str, Any],
    *,
    created_by: Mapping[str, str],
    protocols: Collection[str] = (),
    sources: Sequence[Source | None] = (),
) -> TopicFile:
    """Return the description of a new topic from its fields; raise TopicFileError for all flaws.

    Its `sources` are given, or fields as well.
    """
    fields = Fields(arguments)
    title = fields.text("title", read=read_title)
    tables = fields.list_of_fields("sources")
    if not 1 <= len(tables or sources) <= MAX_SOURCES:
        fields.report("sources", f"found {len(tables):,}; allowed: 1 to {MAX_SOURCES}")
        tables = ()
    sources = sources or [read_new_source(each, protocols) for each in tables]
    request = TopicFile(
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
    refuse_problems(fields, WHERE)
    return request


def read_new_source(fields: Fields, protocols: Collection[str]) -> Source | None:
    """Return the source that a table describes; None, with problems recorded, if it is invalid."""
    source = read_source(fields, protocols=protocols)
    length = len("".join([source.url, *source.paths])) if source else 0
    if length > MAX_SOURCE:
        fields.report("", f"url and paths have {length:,} characters, over {MAX_SOURCE:,}")
    return source


def request_table(request: TopicFile) -> dict[str, Any]:
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
    refuse_problems(fields, WHERE)
    changes = {key: value for key, value in found.items() if value is not None}
    if not changes and body is None:
        raise TopicFileError(WHERE, "nothing to change: give status, max_age_days, body or tags")
    return changes, body


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
