"""The ids of topics, and their staleness."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.files.fields import BadValueError
from llm_kb.references.fetched import render_origin
from llm_kb.references.lookup import topic_entry
from llm_kb.references.topic.topic_directory import FileRecord
from llm_kb.references.topic.topic_file import (
    Status,
    TopicFile,
    format_time,
    is_stale,
    make_topic_id,
    read_title,
    stale_since,
)

NOON = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("status", "max_age", "age", "since", "shown"),
    [
        ("active", 30, timedelta(days=30, hours=23), None, "active"),
        ("active", 30, timedelta(days=31), 31, "stale"),
        ("active", 0, timedelta(days=3000), None, "active"),
        ("obsolete", 30, timedelta(days=1), 0, "obsolete"),
        ("obsolete", 0, timedelta(days=3000), None, "obsolete"),
        ("stale", 30, timedelta(days=1), 0, "stale"),
        ("stale", 30, timedelta(days=40), 31, "stale"),
        ("stale", 0, timedelta(days=40), 0, "stale"),
        ("stale", 3_000_000, timedelta(days=40), 0, "stale"),
        ("obsolete", 1_000_000_000, timedelta(days=40), 0, "obsolete"),
        ("active", 1_000_000_000, timedelta(days=40), None, "active"),
        ("active", 30, timedelta(hours=-20), None, "active"),
        ("active", 0, timedelta(days=-400), None, "active"),
    ],
)
def test_staleness_is_told_by_age_or_by_the_owner(
    status: str, max_age: int, age: timedelta, since: int | None, shown: str
) -> None:
    topic = TopicFile(
        id="t", title="T", fetched_at=NOON, max_age_days=max_age, status=Status(status)
    )
    now = NOON + age
    entry = topic_entry(topic, now)
    assert (entry["is_stale"], entry["status"]) == (since is not None, shown)
    assert stale_since(topic, now) == (None if since is None else NOON + timedelta(days=since))


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (NOON, "2025-06-15T10:00:00Z"),
        (NOON.astimezone(timezone(timedelta(hours=2))), "2025-06-15T10:00:00Z"),
        (NOON.replace(microsecond=999_999), "2025-06-15T10:00:00Z"),
        (datetime(7, 1, 2, tzinfo=timezone.utc), "0007-01-02T00:00:00Z"),
    ],
)
def test_times_are_written_in_utc_and_whole_seconds(moment: datetime, shown: str) -> None:
    assert format_time(moment) == shown


def test_an_origin_says_stale_even_where_no_date_is_known() -> None:
    topic = TopicFile(id="t", title="T", status=Status.STALE)
    record = FileRecord(source=0, url="https://e.org/a", fetched_at="2025-06-15T10:00:00Z")
    assert render_origin(topic, record, NOON) == (
        "https://e.org/a, fetched 2025-06-15T10:00:00Z, STALE"
    )


@pytest.mark.parametrize(
    ("title", "topic_id"),
    [
        ("Dioxus - Rust UI Framework", "topic-dioxus-rust-ui-framework"),
        ("SQLite-Vec KNN", "topic-sqlite-vec-knn"),
        ("Café Zürich", "topic-cafe-zurich"),
        ("../../etc/passwd", "topic-etc-passwd"),
        ("C++", "topic-c"),
        ("日本語", "topic-77710aed"),
        ("...", "topic-ab5df625"),
        ("a" * 90, f"topic-{'a' * 80}-6b2ec791"),
    ],
)
def test_ids_are_made_of_titles(title: str, topic_id: str) -> None:
    assert make_topic_id(title) == topic_id


@given(st.text(max_size=200))
def test_no_title_makes_an_id_that_is_a_path(title: str) -> None:
    made = make_topic_id(title)
    assert made.startswith("topic-")
    assert made.isascii()
    assert not set(made) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert len(made) <= 100


@pytest.mark.parametrize("title", ["", "  ", "a\x00b", "\x1b[31m", "a\u202eb", "x" * 201])
def test_titles_that_deceive_are_refused(title: str) -> None:
    with pytest.raises(BadValueError, match="visible characters"):
        read_title(title)


def test_a_topic_fetched_in_the_future_is_stale_and_nobody_knows_since_when() -> None:
    topic = TopicFile(id="t", title="T", fetched_at=NOON.replace(year=2999), max_age_days=30)
    assert (is_stale(topic, NOON), stale_since(topic, NOON)) == (True, None)
    assert render_origin(topic, FileRecord(source=0, url="https://e.org/"), NOON) == (
        "https://e.org/, fetched 2999-06-15T10:00:00Z, STALE"
    )
