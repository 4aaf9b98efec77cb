"""`topic.md` as in the seed's example, and edits of it that leave everything else alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import TopicFileError
from llm_kb.references.provenance import FileRecord
from llm_kb.references.recent import render_origin
from llm_kb.references.sources import GitSource, WebSource
from llm_kb.references.topic_file import (
    Status,
    TopicFile,
    change_topic_file,
    check_title,
    make_topic_id,
    parse_topic_file,
    render_topic_file,
)

SEED = """\
+++
id = "topic-dioxus-ui"
title = "Dioxus - Rust UI Framework"
type = "ReferenceTopic"
created_at = "2025-06-15T10:00:00Z"
trust_score = 8
tags = ["rust", "ui", "framework", "dioxus"]
status = "active"
fetched_at = "2025-06-15T10:00:00Z"
max_age_days = 30
files = ["README.md", "docs/guide/index.md", "examples/hello_world.rs"]

[created_by]
ghost = "ghost-a"
model = "claude-sonnet-4-5-20250929"

[[sources]]
type = "git"
url = "https://github.com/DioxusLabs/dioxus"
ref = "main"
commit = "a1b2c3d4e5f6"
paths = ["README.md", "docs/", "examples/"]

[[sources]]
type = "web"
url = "https://dioxuslabs.com/learn/0.6/"
+++

# Dioxus - Rust UI Framework

Dioxus is a portable, performant, and ergonomic framework for building
cross-platform user interfaces in Rust.
"""
NOON = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)
TOPIC = TopicFile(
    id="topic-dioxus-ui",
    title="Dioxus - Rust UI Framework",
    body=SEED.partition("+++\n\n")[2],
    created_at=NOON,
    fetched_at=NOON,
    max_age_days=30,
    trust_score=8,
    tags=("rust", "ui", "framework", "dioxus"),
    files=("README.md", "docs/guide/index.md", "examples/hello_world.rs"),
    sources=(
        GitSource(
            url="https://github.com/DioxusLabs/dioxus",
            ref="main",
            commit="a1b2c3d4e5f6",
            paths=("README.md", "docs/", "examples/"),
        ),
        WebSource(url="https://dioxuslabs.com/learn/0.6/"),
    ),
    created_by={"ghost": "ghost-a", "model": "claude-sonnet-4-5-20250929"},
)


def test_the_example_of_the_seed_is_read_and_written_to_the_byte() -> None:
    assert parse_topic_file(SEED, "topic.md") == TOPIC
    assert render_topic_file(TOPIC) == SEED


HAND_EDITED = (
    SEED.replace("status = ", "# still good, I think\nstatus   =   ")
    .replace("[created_by]", "[owner]\nname = 'me' # and you\n\n[created_by]")
    .replace('ref = "main"', 'ref = "main"\nmirror = "ours"')
)


def test_changes_leave_comments_unknown_keys_and_spacing_alone() -> None:
    source = TOPIC.sources[0]
    assert isinstance(source, GitSource)
    new = GitSource(url=source.url, ref="main", commit="f" * 40, paths=source.paths)
    changed = change_topic_file(
        HAND_EDITED,
        "topic.md",
        {"status": "obsolete", "files": ("a.md",), "sources": [new, TOPIC.sources[1]]},
    )
    assert changed == (
        HAND_EDITED.replace('"active"', '"obsolete"')
        .replace('["README.md", "docs/guide/index.md", "examples/hello_world.rs"]', '["a.md"]')
        .replace("a1b2c3d4e5f6", "f" * 40)
    )


def test_nothing_to_change_changes_nothing() -> None:
    assert change_topic_file(HAND_EDITED, "topic.md", {}) == HAND_EDITED


def test_a_new_description_replaces_the_old_one_and_nothing_else() -> None:
    changed = change_topic_file(HAND_EDITED, "topic.md", {}, body="New.\n\n+++\n")
    assert changed == HAND_EDITED.partition("# Dioxus")[0] + "New.\n\n+++\n"
    assert parse_topic_file(changed, "topic.md").body == "New.\n\n+++\n"


def test_windows_line_ends_and_a_mark_are_read() -> None:
    text = "\ufeff" + SEED.replace("\n", "\r\n")
    assert parse_topic_file(text, "topic.md").sources == TOPIC.sources


def test_dates_may_be_dates_of_toml() -> None:
    text = SEED.replace('fetched_at = "2025-06-15T10:00:00Z"', "fetched_at = 2025-06-15T10:00:00Z")
    assert parse_topic_file(text, "topic.md") == TOPIC


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("+++\nid", "id", "no front matter", id="no fence"),
        pytest.param('"active"', '"fresh"', "status is 'fresh'; it must be", id="status"),
        pytest.param("ReferenceTopic", "Note", "type is 'Note'", id="type"),
        pytest.param('id = "topic-dioxus-ui"\n', "", "id must be a text", id="no id"),
        pytest.param("= 30", "= -1", "max_age_days must be a number", id="age"),
        pytest.param("= 30", "= true", "max_age_days must be a number", id="boolean age"),
        pytest.param('= "2025', '= "later 2025', "must be a time", id="time"),
        pytest.param('["rust",', "[1,", "tags must be a list of texts", id="tags"),
        pytest.param("= 8", "= = 8", "no TOML", id="toml"),
        pytest.param("= 8", f"= 8\nx{'.x' * 101} = 1", "more than 100 parts", id="a long key"),
        pytest.param('"web"', '"ftp"', r"sources\[1\]: type is 'ftp'", id="source"),
        pytest.param("[[sources]]", "[sources]", "no TOML", id="sources"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, message: str) -> None:
    with pytest.raises(TopicFileError if "sources\\[" not in message else Exception, match=message):
        parse_topic_file(SEED.replace(old, new, 2), "topic.md")


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
    ],
)
def test_staleness_is_told_by_age_or_by_the_owner(
    status: str, max_age: int, age: timedelta, since: int | None, shown: str
) -> None:
    topic = TopicFile(
        id="t", title="T", fetched_at=NOON, max_age_days=max_age, status=Status(status)
    )
    now = NOON + age
    assert (topic.is_stale(now), topic.status_at(now).value) == (since is not None, shown)
    assert topic.stale_since(now) == (None if since is None else NOON + timedelta(days=since))


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
    with pytest.raises(TopicFileError, match="visible characters"):
        check_title(title)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
lines = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=40)


@given(
    st.builds(
        TopicFile,
        id=st.just("topic-x"),
        title=lines.map(lambda text: " ".join(text.split())).filter(bool),
        body=texts.map(lambda text: "# Heading\n" + text.replace("\r", "").strip() + "x\n"),
        tags=st.lists(texts, max_size=3).map(tuple),
        files=st.lists(texts, max_size=20).map(tuple),
        max_age_days=st.integers(0, 9999),
        fetched_at=st.just(NOON),
    )
)
def test_what_is_written_is_read_back(topic: TopicFile) -> None:
    assert parse_topic_file(render_topic_file(topic), "topic.md") == topic
