"""`topic.md` as in the seed's example, and edits of it that leave everything else alone."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources import GitSource, WebSource
from llm_kb.references.topic_file import TopicFile
from llm_kb.references.topic_text import change_topic_file, parse_topic_file, render_topic_file

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
        pytest.param("ReferenceTopic", "Note", "type is 'Note'", id="type"),
        pytest.param('id = "topic-dioxus-ui"\n', "", "id must be a text", id="no id"),
        pytest.param("= 8", "= = 8", "no TOML", id="toml"),
        pytest.param("= 8", f"= 8\nx{'.x' * 101} = 1", "more than 100 parts", id="a long key"),
        pytest.param("[[sources]]", "[sources]", "no TOML", id="sources"),
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
    )
)
def test_what_is_written_is_read_back(topic: TopicFile) -> None:
    assert parse_topic_file(render_topic_file(topic), "topic.md") == topic
