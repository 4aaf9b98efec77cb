"""The findings about names and texts."""

from __future__ import annotations

import pytest

from llm_kb.rendering.presentation import Presented
from llm_kb.upkeep import text_checks as checks
from llm_kb.upkeep.rules import Finding, Rule
from tests.presented import make_presented, make_subject


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("plain/name-1_2.md", None),
        ("Überblick.md", None),
        (".github/a.md", None),
        ("a[1].md", "its name contains glob characters"),
        ("a:b.md", "its name contains characters that Windows does not allow"),
        ("a./b.md", "its name contains characters that Windows does not allow"),
        ("con.md", "its name contains a Windows device name"),
        ("a/NUL", "its name contains a Windows device name"),
        ("console.md", None),
        (" a.md", "its name contains white space at an edge"),
        ("a .md", "its name contains white space at an edge"),
        ("it's.md", "its name contains quotes"),
        ("-a.md", "its name contains a dash at its start, like an option"),
        ("a\u200db.md", "its name contains joiners, which have no width"),
        (
            "a?'.md",
            "its name contains glob characters, characters that Windows does not allow, quotes",
        ),
    ],
)
def test_names(path: str, what: str | None) -> None:
    expected = [] if what is None else [Finding(Rule.UNSAFE_NAME, "F", what)]
    assert list(checks.check_name("F", path)) == expected


def test_names_that_differ_in_case() -> None:
    files = [("F1", "README.md"), ("F2", "readme.md"), ("F3", "other.md")]
    assert list(checks.check_alike(files)) == [
        Finding(Rule.UNSAFE_NAME, "F1", "its name differs only in case from 'F2'"),
        Finding(Rule.UNSAFE_NAME, "F2", "its name differs only in case from 'F1'"),
    ]


def test_shared_slugs() -> None:
    subjects = [(path, make_subject(path)) for path in ("a.md", "b.md", "b.toml")]
    assert list(checks.check_ambiguous(subjects)) == [
        Finding(Rule.AMBIGUOUS, "b.md", "its slug 'b' is also the slug of 'b.toml'"),
        Finding(Rule.AMBIGUOUS, "b.toml", "its slug 'b' is also the slug of 'b.md'"),
    ]


@pytest.mark.parametrize(
    ("presented", "findings"),
    [
        pytest.param(make_presented("a.md", "fine"), [], id="fine"),
        pytest.param(
            make_presented("a.md", b"\xff"),
            [(Rule.UNDECODABLE, "1 byte not valid in UTF-8, shown as \ufffd")],
            id="undecodable",
        ),
        pytest.param(
            make_presented("a.md", "x" * 101),
            [
                (
                    Rule.OVERSIZE,
                    "101 characters in it have no heading, more than one load returns",
                )
            ],
            id="too long",
        ),
        pytest.param(
            make_presented("a.md", "# A\n" + "x" * 60 + "\n# B\n" + "x" * 60),
            [],
            id="long, and of parts that are not",
        ),
        pytest.param(
            make_presented("a.md", "# A\n" + "x" * 60 + "\n# B\n" + "x" * 160),
            [
                (
                    Rule.OVERSIZE,
                    "164 characters in it have no heading, more than one load returns",
                )
            ],
            id="a part that is too long",
        ),
        pytest.param(make_presented("a.md", "\U000e0041"), [], id="reported as a character"),
    ],
)
def test_content(presented: Presented, findings: list[tuple[Rule, str]]) -> None:
    found = [(f.rule, f.what) for f in checks.check_content("F", presented, "a.md", 100)]
    assert found == findings


def test_a_few_binary_files_are_named() -> None:
    assert list(checks.check_binary("kb", ["kb/a.png", "kb/b"])) == [
        Finding(Rule.BINARY, "kb/a.png", "not a text file"),
        Finding(Rule.BINARY, "kb/b", "not a text file"),
    ]


def test_many_binary_files_are_one_finding() -> None:
    files = [f"kb/{n}.png" for n in range(1_040)] + ["kb/a.ICO", "kb/b.ICO", "kb/logo"]
    what = "1,043 files are not text: 1,040 *.png, 2 *.ICO, 1 logo"
    finding = Finding(Rule.BINARY, "kb", what)
    assert list(checks.check_binary("kb", files)) == [finding]


def test_of_many_kinds_the_most_frequent_are_named() -> None:
    files = [f"a.{n}" for n in range(9)]
    (finding,) = checks.check_binary("kb", files)
    assert finding.what == "9 files are not text: 1 *.0, 1 *.1, 1 *.2, 1 *.3, 1 *.4, 1 *.5, …"


def test_of_many_files_alike_a_few_are_named() -> None:
    """A hostile tree may hold thousands of them, and each finding names the others."""
    shared = list(checks.check_ambiguous((f"a.{n}", make_subject(f"a.{n}")) for n in range(900)))
    assert len(shared) == 900
    assert shared[1].what == "its slug 'a' is also the slug of 'a.0', 'a.2', 'a.3' and 896 more"
    spellings = ["aaa", "AAA", "aAa", "aaA", "Aaa", "aAA"]
    alike = list(checks.check_alike((name, name) for name in spellings))
    assert alike[0].what == "its name differs only in case from 'AAA', 'aAa', 'aaA' and 2 more"


def test_without_a_limit_nothing_is_too_long() -> None:
    assert list(checks.check_content("F", make_presented("a.md", "x" * 101), "a.md", 0)) == []


def test_characters() -> None:
    text = "a\n\u202eb\u2066\u202e\n\U000e0041\u200b\u200b\n"
    assert list(checks.check_characters("F", text)) == [
        Finding(Rule.INVISIBLE, "F", "1 tag character: U+E0041", 3),
        Finding(Rule.INVISIBLE, "F", "3 bidirectional controls: U+202E, U+2066", 2),
        Finding(Rule.ZERO_WIDTH, "F", "2 characters without width: U+200B", 3),
    ]
    assert list(checks.check_characters("F", "Grüße, שלום, \U0001f469\u200d\U0001f4bb")) == []


def test_characters_of_a_configuration_have_no_line() -> None:
    assert list(checks.check_characters("F", "\n\u200b", " in kb.topic.a.title")) == [
        Finding(Rule.ZERO_WIDTH, "F", "1 character without width in kb.topic.a.title: U+200B")
    ]
