"""The assignment of a refreshed topic's old files to its present sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    Source,
    WebSource,
)
from llm_kb.references.topic.staging import OldTopic, asks_the_same, match_sources
from llm_kb.references.topic.topic_directory import FileRecord, Provenance
from llm_kb.search.roles import Role

V1 = GitSource(url="https://e.org/x", ref="v1", commit="a" * 40)
V2 = GitSource(url="https://e.org/x", ref="v2", paths=("docs/",))
PAGE = WebSource(url="https://e.org/page")
CRAWL = CrawlSource(url="https://e.org/page")


@pytest.mark.parametrize(
    ("recorded", "now", "places"),
    [
        pytest.param((V1, PAGE), (V1, PAGE), {0: 0, 1: 1}, id="same"),
        pytest.param((V1, PAGE), (PAGE, V1), {0: 1, 1: 0}, id="another order"),
        pytest.param((V1, V2), (V2, V1), {0: 1, 1: 0}, id="revisions of one repository"),
        pytest.param((V1, V2), (V2,), {0: 1}, id="one taken out"),
        pytest.param((PAGE,), (V1, PAGE), {1: 0}, id="one put in"),
        pytest.param((V1,), (replace(V1, ref="v3"),), {0: 0}, id="another revision"),
        pytest.param((V2,), (replace(V2, paths=()),), {0: 0}, id="other paths"),
        pytest.param((V1, V2), (replace(V2, paths=()), V1), {0: 1, 1: 0}, id="the rest, once"),
        pytest.param((V1, V1), (V1, V1), {0: 0, 1: 1}, id="twice the same"),
        pytest.param((PAGE,), (replace(PAGE, url="https://e.org/b"),), {}, id="address"),
        pytest.param((PAGE,), (CRAWL,), {}, id="type"),
        pytest.param((PAGE,), (), {}, id="none left"),
    ],
)
def test_a_source_is_known_by_what_it_asks_for_or_its_address(
    recorded: tuple[Source, ...], now: tuple[Source, ...], places: dict[int, int]
) -> None:
    assert match_sources(recorded, now) == places


GIT_FILE = FileRecord(source=0, url=V1.url, commit="a" * 40)
PAGE_FILE = FileRecord(source=1, url="https://e.org/v1/page")


def test_files_are_renumbered_and_those_of_no_source_left_out() -> None:
    recorded = Provenance(
        files={"a": GIT_FILE, "b": PAGE_FILE, "c": replace(PAGE_FILE, source=7)},
        sources=(V1, PAGE),
    )
    now = (GitSource(url="file:///new"), replace(PAGE, role=Role.DOCS))
    assert OldTopic.match(Path("/x"), recorded, now) == OldTopic(
        directory=Path("/x"),
        files={"b": PAGE_FILE},
        asked={1: PAGE},
        record=recorded,
        approved=frozenset(),
    )
    assert OldTopic.match(Path("/x"), recorded, (PAGE,)) == OldTopic(
        directory=Path("/x"),
        files={"b": replace(PAGE_FILE, source=0)},
        asked={0: PAGE},
        record=recorded,
        approved=frozenset(),
    )


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (replace(V1, commit=None, role=Role.CODE), True),
        (replace(V1, paths=("docs/",)), False),
        (replace(V1, ref=None), False),
        (None, False),
    ],
)
def test_commit_and_role_are_not_asked_for(other: Source | None, same: bool) -> None:
    assert asks_the_same(V1, other) is same
