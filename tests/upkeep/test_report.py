"""The rules of `check`, and the report of findings."""

from __future__ import annotations

import pytest

from llm_kb.upkeep.check import (
    Finding,
    Level,
    Rule,
    has_errors,
    render_findings,
    render_summary,
    sort_findings,
)

ERROR = Finding(Rule.UNMATCHED, "b", "wrong")
WARNING = Finding(Rule.NESTED, "a", "odd", line=3)


def test_errors_come_before_warnings_and_each_once() -> None:
    later = WARNING._replace(line=10)
    assert sort_findings([later, WARNING, ERROR, ERROR]) == [ERROR, WARNING, later]
    levels = [rule.level for rule in Rule]
    assert levels == sorted(levels, key=list(Level).index)


def test_a_report_gives_reasons_once_for_each_rule() -> None:
    assert list(render_findings([ERROR, WARNING, WARNING._replace(line=10)])) == [
        "b: error: wrong [unmatched]",
        f"  {Rule.UNMATCHED.advice}",
        "a:3: warning: odd [nested]",
        "a:10: warning: odd [nested]",
        f"  {Rule.NESTED.advice}",
    ]


def test_a_finding_as_json() -> None:
    assert WARNING.as_dict() == {
        "level": "warning",
        "rule": "nested",
        "file": "a",
        "line": 3,
        "what": "odd",
        "advice": Rule.NESTED.advice,
    }
    assert Rule.NO_INTRODUCTION.id == "no-introduction"


@pytest.mark.parametrize(
    ("findings", "subjects", "summary"),
    [
        ([], 1, "nothing wrong in 1 subject"),
        ([WARNING], 2, "1 warning in 2 subjects"),
        ([ERROR, ERROR, WARNING], 0, "2 errors, 1 warning in 0 subjects"),
    ],
)
def test_summary(findings: list[Finding], subjects: int, summary: str) -> None:
    assert render_summary(findings, subjects) == summary
    assert has_errors(findings) is (ERROR in findings)


def test_what_was_ignored_is_counted() -> None:
    summary = render_summary([], 2, [WARNING, ERROR, WARNING])
    assert (
        summary == "nothing wrong in 2 subjects; 3 ignored by kb.check.ignore (nested, unmatched)"
    )


def test_rules_speak_in_sentences() -> None:
    for rule in Rule:
        assert rule.advice.endswith(".")
