"""`LiveInput` in, `chronicle/v3` and `LiveResult` out."""

from __future__ import annotations

import json

import pytest

from llm_kb.capture.annotation import InvalidAnnotationError, LiveInput, parse_live_input
from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry

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
