"""The text of a `topic.md`: TOML between `+++` lines, and below it the description.

The file is the truth and its owner may edit it: changes are made in place, so that
comments, order and unknown keys stay. Pure; reading and writing is the store's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_kb.references.errors import TopicFileError, show_value
from llm_kb.references.sources import Source, source_table
from llm_kb.references.topic_fields import Fields
from llm_kb.references.topic_file import TopicFile, check_title, format_time
from llm_kb.toml_text import TomlError, decode_toml

if TYPE_CHECKING:
    from tomlkit.items import AoT

TYPE = "ReferenceTopic"
FENCE = "+++"
WIDTH = 88
"""A list longer than this is written one item a line."""

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
        files=fields.texts("files"),
        sources=fields.sources(),
        created_by=fields.strings("created_by"),
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
