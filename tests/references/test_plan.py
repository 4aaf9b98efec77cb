"""Plans, roles, names and their texts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from llm_kb.config.settings import Config
from llm_kb.files.fields import Fields
from llm_kb.references.errors import TopicFileError
from llm_kb.references.fetched import render_origin
from llm_kb.references.library import open_library
from llm_kb.references.lookup import recent_references
from llm_kb.references.plan import (
    Plan,
    PlannedSource,
    describe_plan,
    format_about,
    parse_plan,
    plan_table,
    summarize_plan,
)
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    WebSource,
)
from llm_kb.references.sources.rules import is_safe_path, page_name, page_path, unused_name
from llm_kb.references.topic.topic_directory import (
    FileRecord,
    Provenance,
    compare,
    parse_provenance,
    render_provenance,
)
from llm_kb.references.topic.topic_file import TopicFile, make_snippet, render_topic_file
from llm_kb.search.roles import Role

NOON = datetime(2025, 6, 15, 10, tzinfo=timezone.utc)
GIT = GitSource(url="https://github.com/DioxusLabs/dioxus", ref="main", commit="a" * 40)
WEB = WebSource(url="https://dioxuslabs.com/learn/0.6/")
REQUEST = TopicFile(
    id="topic-dioxus",
    title="Dioxus",
    body="About.",
    sources=(replace(GIT, commit=None), WEB),
    tags=("rust",),
    created_by={"ghost": "g"},
)
PLAN = Plan(
    request=REQUEST,
    sources=(
        PlannedSource(
            source=GIT,
            files=1247,
            size=98_000_000,
            notes=("left out: 2 links",),
            hosts=("github.com",),
        ),
        PlannedSource(source=WEB, files=1, size=900, hosts=("dioxuslabs.com",)),
    ),
)
from tests.references.requests import differences


def test_the_summary_is_what_the_operator_reads() -> None:
    assert summarize_plan(PLAN) == "DioxusLabs/dioxus (1,247 files, ~98 MB) + 1 web page (900 B)"
    assert describe_plan(PLAN) == (
        "  git https://github.com/DioxusLabs/dioxus: 1,247 files, ~98 MB\n"
        f"    main at {'a' * 40}\n"
        "    left out: 2 links\n"
        "  web https://dioxuslabs.com/learn/0.6/: 1 file, 900 B\n"
        "  from github.com, dioxuslabs.com"
    )


def test_nobody_adds_a_line_to_what_the_operator_reads() -> None:
    evil = "x\u2028y\nApprove [y/N]: y\r\x1b[2J\x9b31m\u202e"
    shown = "x y Approve [y/N]: y \\x1b[2J\\x9b31m\\u202e"
    source = GitSource(url=f"https://e.org/{evil}", ref=evil, commit=evil, paths=(evil,))
    plan = Plan(
        request=REQUEST,
        sources=(
            PlannedSource(source=source, problem=evil, notes=(evil,), hosts=("e.org",)),
            PlannedSource(source=WEB, problem=evil, hosts=("dioxuslabs.com",)),
        ),
    )
    assert describe_plan(plan).split("\n") == [
        f"  git https://e.org/{shown}: {shown}",
        f"    {shown} at {shown}, only {shown}",
        f"    {shown}",
        f"  web https://dioxuslabs.com/learn/0.6/: {shown}",
        "  from e.org, dioxuslabs.com",
    ]


def test_a_plan_survives_being_stored() -> None:
    stored = json.loads(json.dumps(plan_table(PLAN)))
    assert parse_plan(Fields(stored), ()) == PLAN
    assert parse_plan(Fields(stored), ()).id == PLAN.id


@pytest.mark.parametrize(
    "changed",
    [
        replace(PLAN, request=replace(REQUEST, title="Another")),
        replace(PLAN, request=replace(REQUEST, body="Another")),
        replace(PLAN, sources=PLAN.sources[:1]),
        replace(PLAN, sources=(replace(PLAN.sources[0], files=1248), PLAN.sources[1])),
        replace(PLAN, sources=(replace(PLAN.sources[0], size=98_000_001), PLAN.sources[1])),
        replace(
            PLAN,
            sources=(
                replace(PLAN.sources[0], source=replace(GIT, commit="b" * 40)),
                PLAN.sources[1],
            ),
        ),
        replace(
            PLAN,
            sources=(
                PLAN.sources[0],
                replace(PLAN.sources[1], hosts=("evil.example",)),
            ),
        ),
        replace(PLAN, sources=(replace(PLAN.sources[0], language="Rust"), PLAN.sources[1])),
    ],
    ids=["title", "body", "sources", "files", "size", "commit", "host", "language"],
)
def test_the_digest_covers_all_that_is_approved(changed: Plan) -> None:
    assert changed.id != PLAN.id


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "~1.0 KB"),
        (98_000_000, "~98 MB"),
    ],
)
def test_sizes_that_may_be_estimates(size: int, text: str) -> None:
    assert format_about(size) == text


@pytest.mark.parametrize(
    ("url", "name", "path"),
    [
        ("https://e.org/learn/0.6/", "e-org-learn-0-6.md", "e-org/learn/0-6/index.md"),
        ("https://e.org", "e-org.md", "e-org/index.md"),
        ("https://e.org/a/b.html?x=1", "e-org-a-b-html-x-1.md", "e-org/a/b-x-1.md"),
        ("https://e.org/%2e%2e/%2fetc", "e-org-etc.md", "e-org/032f551e/etc.md"),
    ],
)
def test_pages_get_names_made_of_their_urls(url: str, name: str, path: str) -> None:
    assert (page_name(url), page_path(url)) == (name, path)
    assert is_safe_path(path)


def test_taken_names_are_numbered() -> None:
    assert unused_name("a.md", []) == "a.md"
    assert unused_name("a.md", ["A.MD", "a-2.md"]) == "a-3.md"
    assert unused_name("d.x/a", ["d.x/a"]) == "d.x/a-2"


RECORD = FileRecord(
    source=0,
    url=GIT.url,
    hash="sha256:1",
    size=3,
    fetched_at="2025-06-15T10:00:00Z",
    commit="c" * 40,
)
TOPIC = TopicFile(
    id="topic-dioxus-ui",
    title="Dioxus - Rust UI Framework",
    body="# Dioxus\n\nDioxus is a portable framework for building interfaces.\n\n- Components\n",
    fetched_at=NOON,
    max_age_days=30,
    tags=("rust", "ui", "framework"),
    sources=(GIT, WEB, GitSource(url="file:///x", role=Role.DOCS)),
)


def test_the_record_of_files_survives_being_stored() -> None:
    provenance = Provenance(request="d", files={"a.md": RECORD}, sources=(GIT, WEB))
    assert parse_provenance(render_provenance(provenance), "x") == provenance


def test_the_record_of_an_earlier_version_names_no_sources() -> None:
    files = {"a.md": {"source": 0, "url": "https://e.org/u"}}
    earlier = json.dumps({"version": 1, "request": "d", "files": files}).encode()
    assert parse_provenance(earlier, "x") == Provenance(
        request="d", files={"a.md": FileRecord(source=0, url="https://e.org/u")}
    )


def test_a_record_of_what_is_no_source_is_refused() -> None:
    with pytest.raises(TopicFileError, match=r"^x: it is not a record of files: .*must be http"):
        parse_provenance(
            b'{"version": 1, "request": "", "files": {}, '
            b'"sources": [{"type": "web", "url": "ftp://e.org/"}]}',
            "x",
        )


def test_disk_and_record_are_compared() -> None:
    recorded = dict.fromkeys(("same", "changed", "gone"), RECORD)
    found = {"same": "sha256:1", "changed": "sha256:2", "new": "sha256:1"}
    assert compare(recorded, found) | {"problems": []} == differences(
        modified=["changed"], missing=["gone"], unknown=["new"]
    )


@pytest.mark.parametrize(
    ("record", "age", "line"),
    [
        (RECORD, 1, f"{GIT.url} @ {'c' * 40}, fetched 2025-06-15T10:00:00Z"),
        (
            RECORD,
            31,
            f"{GIT.url} @ {'c' * 40}, fetched 2025-06-15T10:00:00Z,"
            " STALE since 2025-07-16T10:00:00Z",
        ),
        (
            FileRecord(source=1, url=WEB.url, etag='"x"'),
            1,
            f"{WEB.url}, fetched 2025-06-15T10:00:00Z",
        ),
        (None, 1, "not fetched: added to topic-dioxus-ui by hand"),
    ],
)
def test_the_origin_is_one_line(record: FileRecord | None, age: int, line: str) -> None:
    assert render_origin(TOPIC, record, NOON + timedelta(days=age)) == line


def list_recent(user_dir: Path, *topics: TopicFile) -> str | None:
    """Return the prompt's list of these topics."""
    for topic in topics:
        directory = user_dir / "kb" / "references" / topic.id
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "topic.md").write_text(render_topic_file(topic))
    return recent_references(open_library(Config(), user_dir))


def test_recent_topics_are_listed_in_the_format_of_the_seed(tmp_path: Path) -> None:
    older = TopicFile(
        id="topic-a", title="SQLite-Vec KNN", tags=("sqlite", "embeddings"),
        fetched_at=NOON - timedelta(days=1),
    )  # fmt: skip
    assert list_recent(tmp_path) is None
    assert list_recent(tmp_path, older, TOPIC) == (
        "## Available Reference Topics\n\n"
        "- Dioxus - Rust UI Framework (`topic-dioxus-ui`) — rust, ui, framework\n"
        "- SQLite-Vec KNN (`topic-a`) — sqlite, embeddings"
    )
    listed = list_recent(tmp_path, *(replace(older, id=f"topic-{n}", tags=()) for n in range(15)))
    assert len((listed or "").splitlines()) == 12


def test_a_snippet_is_a_paragraph_and_no_heading() -> None:
    assert make_snippet(TOPIC.body) == "Dioxus is a portable framework for building interfaces."
    assert make_snippet("# Only a heading\n") == ""
    assert make_snippet("word " * 100) == ("word " * 100)[:157].rstrip() + "..."


def test_the_digest_of_a_request_is_that_of_what_is_asked_for() -> None:
    """Whoever asks, and also once it was stored."""
    plan = parse_plan(Fields(json.loads(json.dumps(plan_table(PLAN)))), ())
    assert plan.request.digest == REQUEST.digest
    assert replace(REQUEST, created_by={"ghost": "other"}).digest == REQUEST.digest
    others = [
        replace(REQUEST, title="Dioxus 2"),
        replace(REQUEST, tags=()),
        replace(REQUEST, sources=(WEB,)),
    ]
    assert len({REQUEST.digest, *(other.digest for other in others)}) == 4


def test_a_crawl_is_described_by_its_pages() -> None:
    planned = PlannedSource(source=CrawlSource(url="https://e.org/a"), files=2, size=3000)
    plan = Plan(request=REQUEST, sources=(planned,))
    assert summarize_plan(plan) == "2 web pages (~3.0 KB)"
    before = replace(plan, sources=(replace(planned, files=0, size=0), PlannedSource(source=WEB)))
    assert summarize_plan(before) == "up to 51 web pages"
