"""The fields of a `topic.md`, read from the table that TOML makes of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone

import pytest

from llm_kb.references.errors import SourceError, TopicFileError
from llm_kb.references.sources.records import GitSource
from llm_kb.references.topic.topic_file import Status
from llm_kb.references.topic.topic_text import Fields

NOON = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        pytest.param("2025-06-15T10:00:00Z", NOON, id="text"),
        pytest.param("2025-06-15T12:00:00+02:00", NOON, id="text with a zone"),
        pytest.param("2025-06-15T10:00:00", NOON, id="text without a zone"),
        pytest.param(datetime(2025, 6, 15, 10, tzinfo=timezone.utc), NOON, id="of TOML"),
        pytest.param(
            datetime(2025, 6, 15, 12, tzinfo=timezone(timedelta(hours=2))), NOON, id="with a zone"
        ),
        pytest.param(datetime.fromisoformat("2025-06-15T10:00:00"), NOON, id="without a zone"),
        pytest.param(
            date(2025, 6, 15), datetime(2025, 6, 15, tzinfo=timezone.utc), id="a date of TOML"
        ),
        pytest.param("2025-06-15", datetime(2025, 6, 15, tzinfo=timezone.utc), id="a date"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_time_is_a_text_or_one_of_toml(value: object, moment: datetime | None) -> None:
    assert Fields({"fetched_at": value}, "topic.md").time("fetched_at") == moment


def test_what_is_not_there_is_empty() -> None:
    fields = Fields({}, "topic.md")
    assert (fields.texts("tags"), fields.number("trust_score"), fields.time("fetched_at")) == (
        (), None, None,
    )  # fmt: skip
    assert (fields.status(), fields.strings("created_by"), fields.sources()) == (
        Status.ACTIVE, {}, (),
    )  # fmt: skip


def test_a_protocol_that_was_taken_back_can_still_be_read() -> None:
    table = {"sources": [{"type": "git", "url": "file:///srv/frob"}]}
    assert Fields(table, "topic.md").sources() == (GitSource(url="file:///srv/frob"),)


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        pytest.param(lambda f: f.text("x"), None, "x must be a text", id="no text"),
        pytest.param(lambda f: f.text("x"), "", "x must be a text", id="empty text"),
        pytest.param(lambda f: f.texts("x"), "a", "x must be a list of texts", id="no list"),
        pytest.param(lambda f: f.texts("x"), [1], "x must be a list of texts", id="texts"),
        pytest.param(lambda f: f.number("x"), -1, "x must be a number from 0", id="number"),
        pytest.param(lambda f: f.number("x"), True, "x must be a number from 0", id="boolean"),
        pytest.param(
            lambda f: f.time("x"),
            "later",
            "x must be a time such as '2025-06-15T10:00:00Z'",
            id="time",
        ),
        pytest.param(
            lambda f: f.time("x"),
            5,
            "x must be a time such as '2025-06-15T10:00:00Z'",
            id="no time",
        ),
        *(
            pytest.param(
                lambda f: f.time("x"),
                value,
                "x must be a time such as '2025-06-15T10:00:00Z'",
                id=f"a time that is {name}",
            )
            for name, value in {
                "without a day": time(10),
                "before the calendar": "0001-01-01T00:00:00+14:00",
                "after the calendar": "9999-12-31T23:59:59-14:00",
                "a list": [2025, 6, 15],
            }.items()
        ),
        pytest.param(
            lambda f: f.number("x"),
            1 << 63,
            "x must be a number from 0 to 9223372036854775807",
            id="a large number",
        ),
        pytest.param(lambda f: f.strings("x"), [], "x must be a table", id="table"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(
    read: Callable[[Fields], object], value: object, message: str
) -> None:
    with pytest.raises(TopicFileError) as failed:
        read(Fields({} if value is None else {"x": value}, "topic.md"))
    assert str(failed.value) == f"topic.md: {message}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(["active"], "['active']", id="a list"),
        pytest.param(1 << 20_000, "a int too long to print", id="a number nobody can print"),
        pytest.param("x" * 100, f"'{'x' * 78}…", id="a long text"),
    ],
)
def test_a_status_that_is_none_is_named_briefly(value: object, shown: str) -> None:
    with pytest.raises(TopicFileError) as failed:
        Fields({"status": value}, "topic.md").status()
    assert str(failed.value) == (
        f"topic.md: status is {shown}; it must be active, stale or obsolete"
    )


def test_what_made_a_topic_is_told_as_text() -> None:
    made = {"ghost": "me", "version": 3, "large": 1 << 20_000}
    assert Fields({"created_by": made}, "topic.md").strings("created_by") == {
        "ghost": "me",
        "version": "3",
        "large": "a int too long to print",
    }


def test_an_unknown_status_is_answered_with_those_there_are() -> None:
    with pytest.raises(TopicFileError) as failed:
        Fields({"status": "fresh"}, "topic.md").status()
    assert str(failed.value) == (
        "topic.md: status is 'fresh'; it must be active, stale or obsolete"
    )


def test_a_source_that_is_none_is_said_with_its_number() -> None:
    sources = [{"type": "web", "url": "https://e.org"}, {"type": "ftp", "url": "https://e.org"}]
    with pytest.raises(SourceError, match=r"^topic\.md: sources\[1\]: type is 'ftp'"):
        Fields({"sources": sources}, "topic.md").sources()
    with pytest.raises(TopicFileError, match="sources must be a list of tables"):
        Fields({"sources": {}}, "topic.md").sources()
