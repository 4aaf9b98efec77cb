"""What the checks find in names and texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm_kb.rendering.presentation import Presented
from llm_kb.upkeep import rules as checks
from llm_kb.upkeep.rules import (
    Finding,
    Level,
    Rule,
    has_errors,
    render_findings,
    render_summary,
    sort_findings,
)
from tests.presented import make_presented, make_subject


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("plain/name-1_2.md", None),
        ("Überblick.md", None),
        (".github/a.md", None),
        ("a[1].md", "its name has characters of patterns"),
        ("a:b.md", "its name has characters that Windows forbids"),
        ("a./b.md", "its name has characters that Windows forbids"),
        ("con.md", "its name is a device on Windows"),
        ("a/NUL", "its name is a device on Windows"),
        ("console.md", None),
        (" a.md", "its name has white space at an edge"),
        ("a .md", "its name has white space at an edge"),
        ("it's.md", "its name has quotes"),
        ("-a.md", "its name looks like an option"),
        ("a\u200db.md", "its name has joiners, which have no width"),
        ("a?'.md", "its name has characters of patterns, has quotes"),
    ],
)
def test_names(path: str, what: str | None) -> None:
    expected = [] if what is None else [Finding(rule=Rule.UNSAFE_NAME, file="F", what=what)]
    assert list(checks.check_name("F", path)) == expected


def test_names_that_differ_in_case() -> None:
    files = [("F1", "README.md"), ("F2", "readme.md"), ("F3", "other.md")]
    assert list(checks.check_alike(files)) == [
        Finding(
            rule=Rule.UNSAFE_NAME, file="F1", what="its name differs only in case from 'readme.md'"
        ),
        Finding(
            rule=Rule.UNSAFE_NAME, file="F2", what="its name differs only in case from 'README.md'"
        ),
    ]


def test_shared_slugs() -> None:
    subjects = [(path, make_subject(path)) for path in ("a.md", "b.md", "b.toml")]
    assert list(checks.check_ambiguous(subjects)) == [
        Finding(rule=Rule.AMBIGUOUS, file="b.md", what="its slug 'b' is also that of 'b.toml'"),
        Finding(rule=Rule.AMBIGUOUS, file="b.toml", what="its slug 'b' is also that of 'b.md'"),
    ]


@pytest.mark.parametrize(
    ("presented", "findings"),
    [
        pytest.param(make_presented("a.md", "fine"), [], id="fine"),
        pytest.param(
            make_presented("a.md", b"\0"),
            [(Rule.BINARY, "binary file, 1 byte, skipped")],
            id="binary",
        ),
        pytest.param(
            make_presented("a.md", b"\xff"),
            [(Rule.UNDECODABLE, "1 byte not valid in UTF-8, shown as \ufffd")],
            id="undecodable",
        ),
        pytest.param(
            make_presented("a.md", "x" * 101),
            [(Rule.OVERSIZE, "its 101 bytes are more than one load returns")],
            id="too long",
        ),
        pytest.param(
            make_presented("a.md", "x", size=2_000),
            [(Rule.OVERSIZE, "its 2,000 bytes are more than one load returns")],
            id="too long to read",
        ),
        pytest.param(make_presented("a.md", "\U000e0041"), [], id="reported as a character"),
    ],
)
def test_content(presented: Presented, findings: list[tuple[Rule, str]]) -> None:
    found = [(f.rule, f.what) for f in checks.check_content("F", presented, 100)]
    assert found == findings


def test_without_a_limit_nothing_is_too_long() -> None:
    assert list(checks.check_content("F", make_presented("a.md", "x" * 101), 0)) == []


def test_characters() -> None:
    text = "a\n\u202eb\u2066\u202e\n\U000e0041\u200b\u200b\n"
    assert list(checks.check_characters("F", text)) == [
        Finding(rule=Rule.INVISIBLE, file="F", line=3, what="1 tag character: U+E0041"),
        Finding(
            rule=Rule.INVISIBLE, file="F", line=2, what="3 bidirectional controls: U+202E, U+2066"
        ),
        Finding(rule=Rule.ZERO_WIDTH, file="F", line=3, what="2 characters without width: U+200B"),
    ]
    assert list(checks.check_characters("F", "Grüße, שלום, \U0001f469\u200d\U0001f4bb")) == []


def test_characters_of_a_configuration_have_no_line() -> None:
    assert list(checks.check_characters("F", "\n\u200b", " in kb.topic.a.title")) == [
        Finding(
            rule=Rule.ZERO_WIDTH,
            file="F",
            what="1 character without width in kb.topic.a.title: U+200B",
        )
    ]


def test_patterns() -> None:
    assert list(checks.check_patterns("F", "kb.topic.a.learned", ["x*"])) == [
        Finding(rule=Rule.UNMATCHED, file="F", what="kb.topic.a.learned: 'x*' matches nothing")
    ]


ERROR = Finding(rule=Rule.UNMATCHED, file="b", what="wrong")
WARNING = Finding(rule=Rule.BINARY, file="a", what="odd", line=3)


def test_errors_come_before_warnings_and_each_once() -> None:
    later = replace(WARNING, line=10)
    assert sort_findings([later, WARNING, ERROR, ERROR]) == [ERROR, WARNING, later]
    levels = [rule.level for rule in Rule]
    assert levels == sorted(levels, key=[Level.ERROR, Level.WARNING].index)


def test_a_report_gives_reasons_once_for_each_rule() -> None:
    assert list(render_findings([ERROR, WARNING, replace(WARNING, line=10)])) == [
        "b: error: wrong",
        f"  why:  {Rule.UNMATCHED.why}",
        f"  mend: {Rule.UNMATCHED.mend}",
        "a:3: warning: odd",
        "a:10: warning: odd",
        f"  why:  {Rule.BINARY.why}",
        f"  mend: {Rule.BINARY.mend}",
    ]


def test_a_finding_as_json() -> None:
    assert WARNING.as_dict() == {
        "level": "warning",
        "rule": "binary",
        "file": "a",
        "line": 3,
        "what": "odd",
        "why": Rule.BINARY.why,
        "mend": Rule.BINARY.mend,
    }
    assert Rule.NO_INTRODUCTION.id == "no-introduction"


@pytest.mark.parametrize(
    ("findings", "subjects", "summary"),
    [
        ([], 1, "nothing wrong in 1 subject"),
        ([WARNING], 2, "1 warning in 2 subjects"),
        ([ERROR, ERROR, WARNING], 0, "2 errors and 1 warning in 0 subjects"),
    ],
)
def test_summary(findings: list[Finding], subjects: int, summary: str) -> None:
    assert render_summary(findings, subjects) == summary
    assert has_errors(findings) is (ERROR in findings)


def test_rules_speak_in_sentences() -> None:
    for rule in Rule:
        assert rule.why.endswith(".")
        assert rule.mend.endswith(".")
