"""The text of a `topic.md`: TOML between `+++` lines, and below it the description.

The file is the truth and its owner may edit it: changes are made in place, so that
comments, order and unknown keys stay. Pure; reading and writing is the store's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any

from llm_kb.files.toml import TomlError, decode_toml
from llm_kb.references.errors import TopicFileError, show_value
from llm_kb.references.sources.records import Source, parse_source, source_table
from llm_kb.references.sources.rules import OPTIONAL_GIT_PROTOCOLS
from llm_kb.references.topic.topic_file import (
    Description,
    Status,
    TopicFile,
    check_title,
    describe,
    format_time,
)

if TYPE_CHECKING:
    from tomlkit.items import AoT

TYPE = "ReferenceTopic"
FENCE = "+++"
WIDTH = 88
"""A list longer than this is written one item a line."""

MOST_LISTED = 200
"""Fetched files that `topic.md` lists; of more it gives the number, and stays quick to read."""

_FRONT_MATTER = re.compile(
    r"\ufeff?\+\+\+[ \t]*\r?\n((?s:.*?))^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE
)

_LINE_FEED = re.compile(r"(?<!\r)\n")


def parse_topic_file(text: str, where: str) -> TopicFile:
    """Read the text of a `topic.md`; raise TopicFileError, naming `where`."""
    front, body = _split(text, where)
    try:
        table = decode_toml(front)
    except TomlError as error:
        raise TopicFileError(where, f"its front matter is no TOML: {error}") from error
    fields = Fields(table, where)
    if table.get("type") != TYPE:
        raise TopicFileError(where, f"type is {show_value(table.get('type'))}, not {TYPE!r}")
    files = fields.texts("files")
    return TopicFile(
        id=fields.text("id"),
        title=check_title(fields.text("title"), f"{where}: title"),
        body=body.replace("\r\n", "\n").replace("\r", "\n"),
        created_at=fields.time("created_at"),
        fetched_at=fields.time("fetched_at"),
        max_age_days=fields.number("max_age_days") or 0,
        status=fields.status(),
        trust_score=fields.number("trust_score"),
        tags=fields.texts("tags"),
        files=files,
        file_count=fields.number("file_count") or len(files),
        sources=fields.sources(),
        created_by=fields.strings("created_by"),
    )


def new_topic_file(described: Description, files: Sequence[str], now: datetime) -> TopicFile:
    """Return the content of a new topic's `topic.md`."""
    return TopicFile(
        **describe(described),
        created_at=now,
        fetched_at=now,
        files=tuple(sorted(files)),
        file_count=len(files),
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
    _list_files(document, topic.files)
    if topic.created_by:
        document["created_by"] = tomlkit.item(dict(topic.created_by))
    document["sources"] = _sources(topic.sources)
    body = with_heading(topic.title, topic.body)
    return f"{FENCE}\n{tomlkit.dumps(document)}{FENCE}\n\n{body}\n"


def change_topic_file(
    text: str, where: str, changes: Mapping[str, Any], body: str | None = None
) -> str:
    """Change keys of a `topic.md` and leave the rest as it is, to the byte.

    A changed `sources` must be as long as the one in the file: only what
    fetching records in them is written. What is new has the line ends of the rest.
    """
    import tomlkit  # noqa: PLC0415 - slow to import, and only needed to write
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    front, old_body = _split(text, where)
    try:
        document = tomlkit.parse(front)
        for key, value in changes.items():
            if key == "sources":
                _pin_sources(document.get("sources", ()), value, where)
            elif key == "files":
                _list_files(document, value)
            else:
                document[key] = _array(value) if isinstance(value, tuple) else value
        new_front = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise TopicFileError(where, f"its front matter cannot be changed: {error}") from error
    newline = _newline(text)
    if newline != "\n":
        new_front = _LINE_FEED.sub(newline, new_front)
    start = text.index(front) if front else text.index("\n") + 1
    tail = text[start + len(front) :]
    if body is not None:
        fence = tail[: len(tail) - len(old_body)].rstrip("\r\n")
        tail = _LINE_FEED.sub(newline, f"{fence}\n\n{body.strip()}\n")
    return text[:start] + new_front + tail


def _list_files(document: Any, files: Sequence[str]) -> None:
    """Set `files`, or in its place `file_count` where there are too many to list."""
    if len(files) <= MOST_LISTED:
        document["files"] = _array(files)
        document.pop("file_count", None)
    else:
        document["file_count"] = len(files)
        document.pop("files", None)


def _pin_sources(tables: Sequence[Any], sources: Sequence[Source], where: str) -> None:
    """Note the commits that sources were fetched at."""
    if len(tables) != len(sources):
        raise TopicFileError(where, "its sources were changed meanwhile; refresh it once more")
    for table, source in zip(tables, sources, strict=True):
        if "commit" in (new := source_table(source)):
            table["commit"] = new["commit"]


def _newline(text: str) -> str:
    """Return how the lines of a text end, of one with both kinds as Unix has it."""
    return "\r\n" if "\r\n" in text and not _LINE_FEED.search(text) else "\n"


def with_heading(title: str, body: str) -> str:
    """Return a description below a heading; its own, where it has one."""
    body = body.strip()
    return body if body.startswith("# ") else f"# {title}\n\n{body}".rstrip()


def without_heading(title: str, body: str) -> str:
    """Return a description without a heading that only repeats the title."""
    return f"{body.strip()}\n".removeprefix(f"# {title}\n").strip()


def _split(text: str, where: str) -> tuple[str, str]:
    """Return the TOML between the first two `+++` lines, and what follows them."""
    found = _FRONT_MATTER.match(text)
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


MOST = 2**63 - 1
"""The largest number that TOML promises to hold; a larger one may not even be printable."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Typed getters over a table of TOML; what is wrong raises TopicFileError, by name.

    `where` is what the error says of the file.
    """

    table: Mapping[str, Any]
    where: str

    def text(self, key: str) -> str:
        """Return a text that must be there."""
        value = self.table.get(key)
        if not isinstance(value, str) or not value:
            raise TopicFileError(self.where, f"{key} must be a text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty without one."""
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise TopicFileError(self.where, f"{key} must be a list of texts")
        return tuple(value)

    def number(self, key: str) -> int | None:
        """Return a number from 0; None without one."""
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise TopicFileError(self.where, f"{key} must be a number from 0")
        if value > MOST:
            raise TopicFileError(self.where, f"{key} must be a number from 0 to {MOST}")
        return value

    def time(self, key: str) -> datetime | None:
        """Return a time in UTC, which may be a text, or a time or date of TOML.

        It is one of UTC if it names no zone; a date is its midnight.
        """
        value = self.table.get(key)
        if value is None:
            return None
        try:
            moment = _read_time(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
            # Here and not where it is shown: at either end of the calendar it may not be possible.
            return moment.astimezone(timezone.utc)
        except (TypeError, ValueError, OverflowError) as error:
            raise TopicFileError(
                self.where, f"{key} must be a time such as '2025-06-15T10:00:00Z'"
            ) from error

    def status(self) -> Status:
        """Return what the owner says of the topic, `active` where nothing is said."""
        value = self.table.get("status", Status.ACTIVE.value)
        try:
            return Status(value)
        except ValueError as error:
            raise TopicFileError(
                self.where, f"status is {show_value(value)}; it must be active, stale or obsolete"
            ) from error

    def strings(self, key: str) -> dict[str, str]:
        """Return a table, empty without one; values that are no text are made one."""
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            raise TopicFileError(self.where, f"{key} must be a table")
        return {
            name: item if isinstance(item, str) else show_value(item)
            for name, item in value.items()
        }

    def sources(self) -> tuple[Source, ...]:
        """Return what `[[sources]]` lists; raise SourceError for what is no source."""
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


def _read_time(value: object) -> datetime:
    """Return a time as it is written, with or without a zone; raise TypeError, ValueError."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    if not isinstance(value, str):
        raise TypeError(type(value))
    # fromisoformat knows no `Z` before Python 3.11.
    return datetime.fromisoformat(value.replace("Z", "+00:00"))
