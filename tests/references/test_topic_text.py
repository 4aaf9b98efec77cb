"""`topic.md` as in the seed's example, and edits of it that leave everything else alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.records import GitSource, WebSource
from llm_kb.references.topic.topic_file import (
    Status,
    TopicFile,
    change_topic_file,
    format_time,
    parse_topic_file,
    render_topic_file,
    stale_since,
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
    file_count=3,
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


WINDOWS = HAND_EDITED.replace("\n", "\r\n")


def test_line_ends_are_line_feeds_after_changes() -> None:
    changes = {"status": "obsolete", "files": (*TOPIC.files, *(f"{n}.md" for n in range(20)))}
    plain = change_topic_file(HAND_EDITED, "topic.md", changes, body="One\n\nTwo")
    assert change_topic_file(WINDOWS, "topic.md", {}) == HAND_EDITED
    changed = change_topic_file(WINDOWS, "topic.md", changes, body="One\n\nTwo")
    assert changed == plain
    assert parse_topic_file(changed, "topic.md").body == "One\n\nTwo\n"


def test_dates_may_be_dates_of_toml() -> None:
    text = SEED.replace('fetched_at = "2025-06-15T10:00:00Z"', "fetched_at = 2025-06-15T10:00:00Z")
    assert parse_topic_file(text, "topic.md") == TOPIC


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("+++\nid", "id", "no front matter", id="no fence"),
        pytest.param("ReferenceTopic", "Note", "type is 'Note'", id="type"),
        pytest.param('id = "topic-dioxus-ui"\n', "", "id: missing", id="no id"),
        pytest.param("= 8", "= = 8", "not TOML", id="toml"),
        pytest.param("= 8", f"= 8\nx{'.x' * 101} = 1", "more than 20 parts", id="a long key"),
        pytest.param("[[sources]]", "[sources]", "not TOML", id="sources"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, message: str) -> None:
    with pytest.raises(TopicFileError, match=rf"^topic\.md: .*{message}"):
        parse_topic_file(SEED.replace(old, new, 2), "topic.md")


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
    ).map(lambda topic: replace(topic, file_count=len(topic.files)))
)
def test_what_is_written_is_read_back(topic: TopicFile) -> None:
    assert parse_topic_file(render_topic_file(topic), "topic.md") == topic


toml_values = st.recursive(
    st.one_of(
        st.text(max_size=12).map(json.dumps),
        st.sampled_from(["", "/", "https://e.org/", "git", "docs", "active", "a/../b"]).map(
            json.dumps
        ),
        st.integers().map(str),
        st.sampled_from([f"0x{'f' * 5000}", "9" * 5000, f"[{'[' * 3000}", "1e999", "nan"]),
        st.floats().map(str),
        st.booleans().map(lambda value: str(value).lower()),
        st.dates().map(str),
        st.times().map(str),
        st.datetimes().map(lambda moment: moment.isoformat()),
        st.datetimes().map(lambda moment: f"{moment.isoformat()}+14:00"),
        st.datetimes().map(lambda moment: f'"{moment.isoformat()}-14:00"'),
    ),
    lambda values: (
        st.lists(values, max_size=2).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(
            st.sampled_from(["type", "url", "ref", "paths", "depth", "role", "ghost"]),
            values,
            max_size=4,
        ).map(lambda table: f"{{{', '.join(f'{key} = {item}' for key, item in table.items())}}}")
    ),
    max_leaves=6,
)
KEYS = (
    "id", "title", "type", "created_at", "fetched_at", "max_age_days", "status", "trust_score",
    "tags", "files", "sources", "created_by", "mine",
)  # fmt: skip


@given(st.sampled_from(KEYS), toml_values)
def test_any_value_makes_a_topic_that_can_be_shown_and_changed_or_an_error(
    key: str, value: str
) -> None:
    table = {"id": '"topic-x"', "title": '"X"', "type": '"ReferenceTopic"', key: value}
    text = "".join(f"{name} = {item}\n" for name, item in table.items())
    text = f"+++\n{text}+++\nBody\n"
    try:
        topic = parse_topic_file(text, "topic.md")
    except TopicFileError as error:
        assert str(error).startswith("topic.md: ")  # noqa: PT017 - either may come
        return
    since = stale_since(topic, NOON)
    assert all(format_time(moment) for moment in (topic.fetched_at, since) if moment)
    changes = {"status": "stale", "fetched_at": "2025-06-15T10:00:00Z", "files": ("a.md",)}
    changed = parse_topic_file(change_topic_file(text, "topic.md", changes), "topic.md")
    assert (changed.status, changed.fetched_at, changed.files) == (Status.STALE, NOON, ("a.md",))
    assert (changed.id, changed.title, changed.body) == (topic.id, topic.title, topic.body)


def test_many_files_are_counted_and_not_listed() -> None:
    few, many = (
        replace(TOPIC, files=tuple(f"{n:03}.md" for n in range(count)), file_count=count)
        for count in (200, 201)
    )
    assert parse_topic_file(render_topic_file(few), "topic.md") == few
    text = render_topic_file(many)
    assert "files = [" not in text
    assert parse_topic_file(text, "topic.md") == replace(many, files=())
    grown = change_topic_file(SEED, "topic.md", {"files": many.files})
    assert "max_age_days = 30\n\n[created_by]" not in grown
    assert parse_topic_file(grown, "topic.md").file_count == 201
    assert change_topic_file(grown, "topic.md", {"files": TOPIC.files}).count("file_count") == 0
