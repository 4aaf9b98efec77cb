"""`LiveInput` in, `chronicle/v3` and `LiveResult` out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from llm_kb.capture.annotation import (
    CATEGORIES,
    InvalidAnnotationError,
    LiveInput,
    annotate,
    parse_live_input,
)
from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, KINDS, Entry
from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.capture.store import DamagedStoreError, UnknownCommitError, load_store
from llm_kb.capture.tools import LIVE_INPUT
from llm_kb.errors import KbError
from tests.repositories import Repo

MINIMAL = LiveInput(commit="HEAD", summary="Because the broker limits reconnects")


def test_the_least_there_can_be() -> None:
    data = '{"commit": "HEAD", "summary": " Because the broker limits reconnects "}'
    assert parse_live_input(data) == MINIMAL


def test_everything_there_can_be() -> None:
    raw = {
        "commit": "abc123",
        "summary": "why",
        "wisdom": [
            {"category": "dead_end", "content": "tried", "file": None, "lines": None},
            {
                "category": "gotcha",
                "content": "trap",
                "file": "src/x.py",
                "lines": {"start": 10, "end": 10},
            },
        ],
        "knowledge": [
            {"type": "convention", "scope": "src/", "rule": "r"},
            {"type": "anti_pattern", "pattern": "p", "instead": "i"},
        ],
    }
    assert parse_live_input(json.dumps(raw)) == LiveInput(
        commit="abc123",
        summary="why",
        wisdom=(
            {"category": "dead_end", "content": "tried"},
            {
                "category": "gotcha",
                "content": "trap",
                "file": "src/x.py",
                "lines": {"start": 10, "end": 10},
            },
        ),
        knowledge=(
            Entry(CONVENTION, {"scope": "src/", "rule": "r", "stability": "provisional"}),
            Entry(ANTI_PATTERN, {"pattern": "p", "instead": "i"}),
        ),
    )


GIVEN = {"commit": "HEAD", "summary": "why"}


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        pytest.param(
            None,
            ["found nothing; allowed: a table"],
            id="null",
        ),
        pytest.param({}, ["commit: missing", "summary: missing"], id="empty"),
        pytest.param(
            {"commit": 7, "summary": "  "},
            [
                "commit: found the number 7; allowed: a string",
                "summary: found '  '; allowed: a string that is not empty",
            ],
            id="wrong values",
        ),
        pytest.param(
            GIVEN | {"wisdon": [], "summary": "a\x1b"},
            [
                "summary: found 'a\\x1b'; allowed: a string without control characters",
                "wisdon: unknown key; allowed: commit, knowledge, summary, wisdom; "
                "did you mean 'wisdom'?",
            ],
            id="unknown fields",
        ),
        pytest.param(
            GIVEN | {"wisdom": {}, "knowledge": "x"},
            [
                "wisdom: found a table; allowed: a list of tables",
                "knowledge: found 'x'; allowed: a list of tables",
            ],
            id="no lists",
        ),
        pytest.param(
            GIVEN
            | {
                "wisdom": [
                    "text",
                    {"category": "tip", "content": ""},
                    {"category": "gotcha", "content": "c", "lines": {"start": 1, "end": 2}},
                    {
                        "category": "gotcha",
                        "content": "c",
                        "file": "f",
                        "lines": {"start": 5, "end": 2},
                    },
                    {
                        "category": "gotcha",
                        "content": "c",
                        "file": "f",
                        "lines": {"start": True, "end": -1, "to": 3},
                    },
                ]
            },
            [
                "wisdom[0]: found 'text'; allowed: a table",
                "wisdom[1].category: found 'tip'; allowed: "
                "dead_end, gotcha, insight, unfinished_thread",
                "wisdom[1].content: found ''; allowed: a string that is not empty",
                "wisdom[2].lines: lines need a file; `file` is missing",
                "wisdom[3].lines: start 5 is after end 2",
                "wisdom[4].lines.start: found true; allowed: a whole number from 0 to 4294967295",
                "wisdom[4].lines.end: found the number -1; "
                "allowed: a whole number from 0 to 4294967295",
                "wisdom[4].lines.to: unknown key; allowed: end, start",
            ],
            id="wisdom",
        ),
        pytest.param(
            GIVEN
            | {
                "knowledge": [
                    {"scope": "src/"},
                    {"type": "boundary", "module": "m/", "rule": "r"},
                    7,
                ]
            },
            [
                "knowledge[2]: found the number 7; allowed: a table",
                "knowledge[0].type: required; use one of convention, boundary, anti_pattern",
                "knowledge[1].owns: required for boundary",
                "knowledge[1].boundary: required for boundary",
                (
                    "knowledge[1].rule: is not a field of boundary, "
                    "which takes module, owns, boundary"
                ),
                "knowledge[2].type: required; use one of convention, boundary, anti_pattern",
            ],
            id="knowledge",
        ),
    ],
)
def test_every_problem_is_reported_with_its_path(raw: object, problems: list[str]) -> None:
    with pytest.raises(InvalidAnnotationError) as caught:
        parse_live_input(json.dumps(raw))
    assert list(caught.value.problems) == problems


@pytest.mark.parametrize("data", ["", "{", b"\xff", "[" * 100_000])
def test_what_is_not_json_is_said_to_be_none(data: str | bytes) -> None:
    with pytest.raises(InvalidAnnotationError, match="nothing was written:\n  - not JSON: "):
        parse_live_input(data)


def test_the_live_input() -> None:
    found = LIVE_INPUT
    assert found["required"] == ["commit", "summary"]
    assert found["additionalProperties"] is False
    entry = found["properties"]["knowledge"]["items"]
    assert entry["properties"]["type"]["enum"] == [kind.name for kind in KINDS]
    assert set(entry["properties"]) == {"type"}.union(*(kind.settable for kind in KINDS))
    assert entry["required"] == ["type"]
    wisdom = found["properties"]["wisdom"]["items"]
    assert wisdom["properties"]["category"]["enum"] == list(CATEGORIES)
    assert wisdom["required"] == ["category", "content"]


SUMMARY = "Because the other way round it hangs"


def run(repo: Repo, **fields: Any) -> dict[str, Any]:
    raw = {"commit": "HEAD", "summary": SUMMARY, **fields}
    return annotate(repo.path, parse_live_input(json.dumps(raw)))


def test_the_annotation_is_a_note_on_the_commit(repo: Repo) -> None:
    first = repo.head
    repo.commit("second")
    wisdom = [{"category": "gotcha", "content": "c", "file": "x"}]
    assert run(repo, commit="HEAD~1", wisdom=wisdom) == {
        "success": True,
        "commit": first,
        "wisdom_written": 1,
        "knowledge_written": 0,
        "knowledge_duplicates": 0,
        "warnings": [],
    }
    note = repo.note_json(ANNOTATIONS_REF, first)
    written = datetime.fromisoformat(note.pop("timestamp"))
    assert abs(datetime.now(timezone.utc) - written) < timedelta(minutes=5)
    assert note == {
        "schema": "chronicle/v3",
        "commit": first,
        "summary": SUMMARY,
        "wisdom": wisdom,
        "provenance": {"source": "live", "author": "Test Author"},
    }


def test_knowledge_goes_to_the_store_with_its_commit(repo: Repo) -> None:
    first = repo.head
    repo.commit("second")
    knowledge = [
        {"type": "convention", "scope": "src/", "rule": "Use x"},
        {"type": "convention", "scope": "src/", "rule": "use x."},
        {"type": "anti_pattern", "pattern": "p", "instead": "i"},
    ]
    result = run(repo, commit=first, knowledge=knowledge)
    assert (result["knowledge_written"], result["knowledge_duplicates"]) == (2, 1)
    result = run(repo, knowledge=knowledge)
    assert (result["knowledge_written"], result["knowledge_duplicates"]) == (0, 3)
    assert [(e.id, e.provenance) for e in load_store(repo.path).entries] == [
        ("conv-1", first),
        ("ap-1", first),
    ]


def test_another_annotation_replaces_the_first_and_says_so(repo: Repo) -> None:
    run(repo)
    result = run(repo, summary="For quite another reason, it turned out")
    assert result["warnings"] == [f"replaced the annotation that {repo.head[:8]} had"]
    assert repo.note_json(ANNOTATIONS_REF, repo.head)["summary"].startswith("For quite another")
    assert repo.git("rev-list", "--count", ANNOTATIONS_REF) == "2"


def test_annotations_of_other_commits_stay(repo: Repo) -> None:
    heads = [repo.head, repo.commit("second"), repo.commit("third")]
    for head in heads:
        run(repo, commit=head)
    listed = repo.git("notes", f"--ref={ANNOTATIONS_REF}", "list").splitlines()
    assert sorted(line.split()[1] for line in listed) == sorted(heads)


@pytest.mark.parametrize("name", ["nothing", "HEAD:README.md", "HEAD\nHEAD", "--all", " "])
def test_a_commit_that_is_none_writes_nothing(repo: Repo, name: str) -> None:
    live = LiveInput(commit=name, summary=SUMMARY)
    with pytest.raises(UnknownCommitError, match="no commit is called"):
        annotate(repo.path, live)
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_a_store_that_cannot_be_read_writes_nothing(repo: Repo) -> None:
    repo.write_note("{")
    with pytest.raises(DamagedStoreError):
        run(repo, knowledge=[{"type": "anti_pattern", "pattern": "p", "instead": "i"}])
    assert repo.git("for-each-ref", ANNOTATIONS_REF) == ""


def test_when_one_ref_cannot_move_the_other_stays(repo: Repo) -> None:
    """The two refs move in one transaction."""
    repo.git("update-ref", f"{ANNOTATIONS_REF}/in-its-way", "HEAD")
    with pytest.raises(KbError, match="chronicle/in-its-way' exists"):
        run(repo, knowledge=[{"type": "anti_pattern", "pattern": "p", "instead": "i"}])
    assert repo.git("for-each-ref", "refs/notes/*") == ""
