"""`topic.md`: what a reference topic is, in TOML between `+++` lines, and its description.

The file is the truth and its owner may edit it: changes are made in place, so that
comments, order and unknown keys stay. Pure; reading and writing is the store's.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources import OPTIONAL_GIT_PROTOCOLS, Source, parse_source, source_table
from llm_kb.toml_text import TomlError, decode_toml

if TYPE_CHECKING:
    from tomlkit.items import AoT

TYPE = "ReferenceTopic"
FENCE = "+++"
MAX_TITLE = 200
MAX_ID = 80
WIDTH = 88
"""A list longer than this is written one item a line."""


_FRONT_MATTER = re.compile(
    r"\ufeff?\+\+\+[ \t]*\r?\n((?s:.*?))^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE
)


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
        expiry = self.fetched_at + timedelta(days=self.max_age_days + 1)
        return expiry if self.max_age_days and expiry <= now else self.fetched_at

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


def check_title(title: str) -> str:
    """Return a title in one line; raise TopicFileError when there is nothing in it."""
    title = " ".join(title.split())
    bad = [c for c in title if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"}]
    if not title or bad or len(title) > MAX_TITLE:
        raise TopicFileError("title", f"{title[:60]!r} must be 1 to {MAX_TITLE} visible characters")
    return title


def format_time(moment: datetime) -> str:
    """Return a time as `topic.md` and JSON have it: UTC, whole seconds, `Z`."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_topic_file(text: str, where: str) -> TopicFile:
    """Read the text of a `topic.md`; raise TopicFileError, naming `where`."""
    front, body = _split(text, where)
    try:
        table = decode_toml(front)
    except TomlError as error:
        raise TopicFileError(where, f"its front matter is no TOML: {error}") from error
    read = _Reader(table, where)
    if table.get("type") != TYPE:
        raise TopicFileError(where, f"type is {table.get('type')!r}, not {TYPE!r}")
    return TopicFile(
        id=read.text("id"),
        title=check_title(read.text("title")),
        body=body,
        created_at=read.time("created_at"),
        fetched_at=read.time("fetched_at"),
        max_age_days=read.number("max_age_days") or 0,
        status=read.status(),
        trust_score=read.number("trust_score"),
        tags=read.texts("tags"),
        files=read.texts("files"),
        sources=read.sources(),
        created_by=read.strings("created_by"),
    )


def render_topic_file(topic: TopicFile) -> str:
    """Write a new `topic.md`, keys in the order of the seed's example."""
    import tomlkit  # noqa: PLC0415 - slow to import, and only needed to write

    document = tomlkit.document()
    document["id"] = topic.id
    document["title"] = topic.title
    document["type"] = TYPE
    if topic.created_at:
        document["created_at"] = format_time(topic.created_at)
    if topic.trust_score is not None:
        document["trust_score"] = topic.trust_score
    document["tags"] = _array(topic.tags)
    document["status"] = topic.status.value
    if topic.fetched_at:
        document["fetched_at"] = format_time(topic.fetched_at)
    document["max_age_days"] = topic.max_age_days
    document["files"] = _array(topic.files)
    if topic.created_by:
        document["created_by"] = tomlkit.item(dict(topic.created_by))
    document["sources"] = _sources(topic.sources)
    body = with_heading(topic.title, topic.body)
    return f"{FENCE}\n{tomlkit.dumps(document)}{FENCE}\n\n{body}\n"


def with_heading(title: str, body: str) -> str:
    """Return a description below a heading; its own, where it has one."""
    body = body.strip()
    return body if body.startswith("# ") else f"# {title}\n\n{body}".rstrip()


def without_heading(title: str, body: str) -> str:
    """Return a description without a heading that only repeats the title."""
    return f"{body.strip()}\n".removeprefix(f"# {title}\n").strip()


def change_topic_file(
    text: str, where: str, changes: Mapping[str, Any], body: str | None = None
) -> str:
    """Change keys of a `topic.md` and leave the rest as it is, to the byte.

    A changed `sources` must be as long as the one in the file: only what
    fetching records in them is written.
    """
    import tomlkit  # noqa: PLC0415 - slow to import, and only needed to write

    front, old_body = _split(text, where)
    document = tomlkit.parse(front)
    for key, value in changes.items():
        if key == "sources":
            for table, source in zip(document.get("sources", ()), value, strict=True):
                if "commit" in (new := source_table(source)):
                    table["commit"] = new["commit"]
        elif isinstance(value, tuple):
            document[key] = _array(value)
        else:
            document[key] = value
    start = text.index(front) if front else text.index("\n") + 1
    end = start + len(front)
    tail = text[end:]
    if body is not None:
        fence = tail[: len(tail) - len(old_body)].rstrip("\r\n")
        tail = f"{fence}\n\n{body.strip()}\n"
    return text[:start] + tomlkit.dumps(document) + tail


def _split(text: str, where: str) -> tuple[str, str]:
    """Return the TOML between the first two `+++` lines, and what follows them."""
    found = re.match(
        r"\ufeff?\+\+\+[ \t]*\r?\n((?s:.*?))^\+\+\+[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE
    )
    if not found:
        raise TopicFileError(where, f"it has no front matter between {FENCE} lines")
    body = text[found.end() :]
    return found[1], body.lstrip("\r\n")


def _array(values: Sequence[str]) -> Any:
    import tomlkit  # noqa: PLC0415 - as above

    # Parsed from text: appending to an array of tomlkit takes quadratic time.
    items = [tomlkit.string(value).as_string() for value in values]
    line = f"[{', '.join(items)}]"
    if len(line) > WIDTH:
        line = "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    return tomlkit.value(line)


def _sources(sources: Sequence[Source]) -> AoT:
    import tomlkit  # noqa: PLC0415 - as above

    tables = tomlkit.aot()
    for source in sources:
        table = tomlkit.table()
        for key, value in source_table(source).items():
            table[key] = _array(value) if isinstance(value, list) else value
        tables.append(table)
    return tables


@dataclass(frozen=True, slots=True)
class _Reader:
    """Typed getters over the front matter, so that a wrong type is an error by name."""

    table: Mapping[str, Any]
    where: str

    def text(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value:
            raise TopicFileError(self.where, f"{key} must be a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise TopicFileError(self.where, f"{key} must be a list of texts")
        return tuple(value)

    def number(self, key: str) -> int | None:
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise TopicFileError(self.where, f"{key} must be a number from 0")
        return value

    def time(self, key: str) -> datetime | None:
        value = self.table.get(key)
        if value is None:
            return None
        try:
            # fromisoformat knows no `Z` before Python 3.11.
            moment = (
                value
                if isinstance(value, datetime)
                else datetime.fromisoformat(value.replace("Z", "+00:00"))
            )
        except (AttributeError, ValueError) as error:
            raise TopicFileError(
                self.where, f"{key} must be a time such as '2025-06-15T10:00:00Z'"
            ) from error
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)

    def status(self) -> Status:
        value = self.table.get("status", Status.ACTIVE.value)
        try:
            return Status(value)
        except ValueError as error:
            raise TopicFileError(
                self.where, f"status is {value!r}; it must be active, stale or obsolete"
            ) from error

    def strings(self, key: str) -> dict[str, str]:
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            raise TopicFileError(self.where, f"{key} must be a table")
        return {name: str(item) for name, item in value.items()}

    def sources(self) -> tuple[Source, ...]:
        value = self.table.get("sources", [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise TopicFileError(self.where, "sources must be a list of tables")
        # What may be fetched is decided again when it is: a topic can still be read
        # after its owner took a protocol back.
        return tuple(
            parse_source(
                item,
                f"{self.where}: sources[{index}]",
                allow_local=True,
                protocols=OPTIONAL_GIT_PROTOCOLS,
                lenient=True,
            )
            for index, item in enumerate(value)
        )
