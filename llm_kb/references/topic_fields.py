"""The fields of a `topic.md`, each checked as it is read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from llm_kb.references.errors import TopicFileError, show_value
from llm_kb.references.source_rules import OPTIONAL_GIT_PROTOCOLS
from llm_kb.references.sources import Source, parse_source
from llm_kb.references.topic_file import Status

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
