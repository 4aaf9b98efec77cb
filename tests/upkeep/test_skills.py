"""Skills that depart from the specification of Agent Skills."""

from __future__ import annotations

import pytest

from llm_kb.files.directory import NO_SKILL
from llm_kb.subjects.topics import Skipped
from llm_kb.upkeep.rules import Finding, Rule
from llm_kb.upkeep.skills import check_skill, check_strays

GOOD = "---\nname: pdf-forms\ndescription: Fills forms.\n---\n# PDF\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(GOOD, None, id="good"),
        pytest.param(
            "# PDF\n", "it has no front matter with a name and a description", id="no front matter"
        ),
        pytest.param(GOOD.replace("name:", "title:"), "its front matter has no name", id="no name"),
        pytest.param(
            GOOD.replace("pdf-forms", "forms"),
            "its name 'forms' is not the name of its directory, 'pdf-forms'",
            id="another name",
        ),
        pytest.param(
            GOOD.replace("pdf-forms", "PDF Forms"),
            "its name 'PDF Forms' is not of at most 64 lower-case letters, digits and single"
            " hyphens",
            id="name with spaces",
        ),
        pytest.param(
            GOOD.replace("description", "summary"),
            "its front matter has no description",
            id="no description",
        ),
        pytest.param(
            GOOD.replace("Fills forms.", "x" * 1025),
            "its description has 1,025 characters; the most is 1,024",
            id="long description",
        ),
    ],
)
def test_skill_files(text: str, what: str | None) -> None:
    found = list(check_skill("F", "pdf-forms", text))
    assert found == ([] if what is None else [Finding(Rule.SKILL, "F", what)])


def test_directories_that_are_no_skills() -> None:
    paths = ["README.md", "LICENSE", "a/skill.md", "a/x.md", "b/x.md", "b/c/y.md"]
    skipped = [Skipped(path=path, reason=NO_SKILL) for path in paths]
    skipped.append(Skipped(path="c/x.md", reason="the link leads outside the topic"))
    assert [(f.file, f.what) for f in check_strays("kb", skipped)] == [
        ("kb/a/skill.md", "its name must be SKILL.md, in upper case"),
        ("kb/b", "no SKILL.md in it, so its 2 files cannot be learned"),
    ]
