"""The fields of a `topic.md`, read from its TOML table."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

import pytest

from llm_kb.files.fields import BadValueError
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import GitSource
from llm_kb.references.topic.topic_file import TopicFile, parse_topic_file, read_time

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
    ],
)
def test_a_time_is_a_string_or_one_of_toml(value: object, moment: datetime) -> None:
    assert read_time(value) == moment


@pytest.mark.parametrize(
    "value",
    [
        "later",
        5,
        None,
        time(10),
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        [2025, 6, 15],
    ],
    ids=str,
)
def test_what_is_not_a_time_is_refused(value: object) -> None:
    with pytest.raises(BadValueError, match=r"allowed: a time such as '2025-06-15T10:00:00Z'$"):
        read_time(value)


def parse(front: str) -> TopicFile:
    """Read a topic whose front matter goes on like this."""
    return parse_topic_file(
        f'+++\nid = "t"\ntitle = "T"\ntype = "ReferenceTopic"\n{front}\n+++\n', "topic.md"
    )


def test_what_is_not_there_is_empty() -> None:
    assert parse("") == TopicFile(id="t", title="T")


def test_a_protocol_that_was_taken_back_can_still_be_read() -> None:
    topic = parse('[[sources]]\ntype = "git"\nurl = "file:///srv/frob"\nmine = 1')
    assert topic.sources == (GitSource(url="file:///srv/frob"),)


LARGE = "1" * 30


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ('tags = "a"', "tags: found 'a'; allowed: a list of strings, as in ['a']"),
        ("tags = [1]", "tags[0]: found the number 1; allowed: a string"),
        ("max_age_days = -1", "max_age_days: found the number -1; allowed: a whole number, 0 or"),
        ("max_age_days = true", "max_age_days: found true; allowed: a whole number, 0 or more"),
        (f"trust_score = {LARGE}", "allowed: a whole number from 0 to 9223372036854775807"),
        ('fetched_at = "later"', "fetched_at: found 'later'; allowed: a time such as '2025-"),
        ("fetched_at = 10:00:00", "fetched_at: found the time "),
        ("created_by = []", "created_by: found a list; allowed: a table"),
        ('status = "fresh"', "status: found 'fresh'; allowed: active, obsolete, stale"),
        ('status = ["active"]', "status: found a list; allowed: active, obsolete"),
        ("sources = {}", "sources: found a table; allowed: a list of tables"),
        (
            '[[sources]]\ntype = "web"\nurl = "https://e.org"\n[[sources]]\ntype = "ftp"',
            "sources[1].type: found 'ftp'; allowed: crawl, git, package, web",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_key(front: str, problem: str) -> None:
    with pytest.raises(TopicFileError) as failed:
        parse(front)
    assert str(failed.value).startswith("topic.md: ")
    assert problem in str(failed.value)


def test_all_problems_of_a_file_are_reported_together() -> None:
    with pytest.raises(TopicFileError) as failed:
        parse_topic_file('+++\ntype = "ReferenceTopic"\nstatus = 1\ntags = 2\n+++\n', "topic.md")
    assert str(failed.value) == (
        "topic.md: tags: found the number 2; allowed: a list of strings; id: missing; title:"
        " missing; status: found the number 1; allowed: active, obsolete, stale"
    ).replace(
        "tags: found the number 2; allowed: a list of strings; id: missing; title: missing",
        "id: missing; title: missing; tags: found the number 2; allowed: a list of strings",
    )


def test_what_made_a_topic_is_told_as_text() -> None:
    made = parse('created_by = {ghost = "me", version = 3, stable = true}').created_by
    assert made == {"ghost": "me", "version": "3", "stable": "true"}
