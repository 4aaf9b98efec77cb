"""Topics of skills: each directory with a SKILL.md is a subject, its other files are hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.subjects.topics import Layout, Skipped
from tests.files.test_directory import catalog, found, matched, names, root, skipped, write

__all__ = ["root"]  # the fixture

SKILLS = Layout.SKILLS
TREE = [
    "pdf/SKILL.md", "pdf/reference.md", "pdf/scripts/fill.py", "pdf/forms/SKILL.md",
    "pdf/forms/a.md", "team/review.v2/SKILL.md", ".draft/SKILL.md", ".draft/x.md",
]  # fmt: skip


def test_a_directory_with_a_skill_file_is_one_subject(root: Path) -> None:
    write(root, *TREE, "README.md", "team/notes.md")
    opened = catalog(root, layout=SKILLS)
    assert names(opened) == {
        "(draft)": ".draft/SKILL.md",
        "(draft/x)": ".draft/x.md",
        "pdf": "pdf/SKILL.md",
        "pdf/forms": "pdf/forms/SKILL.md",
        "(pdf/forms/a)": "pdf/forms/a.md",
        "(pdf/reference)": "pdf/reference.md",
        "(pdf/scripts/fill)": "pdf/scripts/fill.py",
        "team/review.v2": "team/review.v2/SKILL.md",
    }
    reason = "it is not in a directory with a SKILL.md"
    assert skipped(opened) == [
        Skipped(path="README.md", reason=reason),
        Skipped(path="team/notes.md", reason=reason),
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ["pdf"]),
        ("**", ["pdf", "pdf/forms", "team/review.v2"]),
        ("pdf/*", ["pdf/forms"]),
        ("*/review*", ["team/review.v2"]),
        ("pdf/ref*", []),
    ],
)
def test_patterns_match_skills_and_not_their_parts(
    root: Path, pattern: str, expected: list[str]
) -> None:
    write(root, *TREE)
    opened = catalog(root, layout=SKILLS)
    assert matched(opened, pattern) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("pdf", ["pdf/SKILL.md"]),
        ("pdf/SKILL", ["pdf/SKILL.md"]),
        ("pdf/SKILL.md", ["pdf/SKILL.md"]),
        ("pdf/forms", ["pdf/forms/SKILL.md"]),
        ("pdf/reference", ["pdf/reference.md"]),
        ("pdf/reference.md", ["pdf/reference.md"]),
        ("pdf/scripts/fill", ["pdf/scripts/fill.py"]),
        ("draft", [".draft/SKILL.md"]),
        (".draft", [".draft/SKILL.md"]),
        ("draft/x", [".draft/x.md"]),
        ("team/review.v2", ["team/review.v2/SKILL.md"]),
        ("team", []),
        ("team/notes", []),
        ("README", []),
    ],
)
def test_a_reference_names_a_skill_or_a_part_of_one(
    root: Path, reference: str, expected: list[str]
) -> None:
    write(root, *TREE, "README.md", "team/notes.md")
    assert found(catalog(root, layout=SKILLS), reference) == expected


def test_a_disabled_skill_is_disabled_with_its_parts(root: Path) -> None:
    write(root, *TREE)
    opened = catalog(root, layout=SKILLS, disabled=["pdf", "draft/x"])
    assert names(opened) == {
        "(draft)": ".draft/SKILL.md",
        "pdf/forms": "pdf/forms/SKILL.md",
        "(pdf/forms/a)": "pdf/forms/a.md",
        "team/review.v2": "team/review.v2/SKILL.md",
    }
    for reference in ("pdf", "pdf/SKILL.md", "pdf/reference", "draft/x"):
        assert found(opened, reference) == []


def test_a_part_of_a_skill_yields_its_name_to_a_skill(root: Path) -> None:
    write(root, "a/SKILL.md", "a/b.md", "a/b/SKILL.md")
    opened = catalog(root, layout=SKILLS)
    assert names(opened) == {"a": "a/SKILL.md", "a/b": "a/b/SKILL.md", "(a/b.md)": "a/b.md"}
    assert sorted(found(opened, "a/b")) == ["a/b.md", "a/b/SKILL.md"]
    assert found(opened, "a/b.md") == ["a/b.md"]


def test_a_topic_may_be_one_skill_itself(root: Path) -> None:
    write(root, "SKILL.md", "x.md")
    opened = catalog(root, layout=SKILLS)
    assert names(opened) == {"SKILL": "SKILL.md", "(x)": "x.md"}
    assert (found(opened, "SKILL"), found(opened, "x")) == (["SKILL.md"], ["x.md"])
