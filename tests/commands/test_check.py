"""`llm kb check`: every finding, on a workspace with that problem."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_kb.rendering.plain_text import count_columns
from llm_kb.upkeep.check import Rule
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.git_templates import copy_empty_repository, copy_repository
from tests.terminal import run_on_terminal

CONFIG = '[kb.topic.a]\nintroduction = "What it is."\nsubjects = "kb"\n'
GOOD: Mapping[str, str | bytes] = {"llm-kb.toml": CONFIG, "kb/one.md": "One.\n"}


def check(run_llm: RunLlm, code: int) -> list[tuple[str, str, int | None, str]]:
    """Run the check and return rule, file, line and what of each finding."""
    result = run_llm(["kb", "check", "--json"])
    assert (result.exit_code, result.stderr) == (code, "")
    return [(f["rule"], f["file"], f["line"], f["what"]) for f in json.loads(result.stdout)]


def test_a_good_knowledge_base(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, GOOD)
    result = run_llm(["kb", "check"])
    assert (result.exit_code, result.stdout) == (0, "nothing wrong in 1 subject\n")
    assert check(run_llm, 0) == []


def test_a_finding_as_json(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/one.md": 'See\nlearn("a", "x")\n'})
    assert json.loads(run_llm(["kb", "check", "--json"]).stdout) == [
        {
            "level": "error",
            "rule": "dangling",
            "file": "kb/one.md",
            "line": 2,
            "what": "no subject of topic 'a' matches 'x'",
            "advice": Rule.DANGLING.advice,
        }
    ]


def test_a_file_that_no_search_reads_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, GOOD)
    os.truncate(tmp_path / "kb/one.md", 20_000_001)
    what = "no search reads it: it is larger than 20 MB"
    assert check(run_llm, 0) == [("oversize", "kb/one.md", None, what)]


def test_the_sample_is_clean(run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2] / "sample_kb")
    assert check(run_llm, 0) == []


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        pytest.param(
            {"llm-kb.toml": f"[kb]\nmax_result_chars = 3\n{CONFIG}"},
            ("oversize", "kb/one.md", None, "5 characters in it have no heading"),
            id="oversize",
        ),
        pytest.param(
            {"kb/one.md": "a\nb\u202ec\n"},
            ("invisible", "kb/one.md", 2, "1 invisible character: U+202E"),
            id="bidirectional",
        ),
        pytest.param(
            {"kb/one.md": "a\nb\U000e0041c\n"},
            ("invisible", "kb/one.md", 2, "1 invisible character: U+E0041"),
            id="tag character",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}description = "b\u202ec"\n'},
            (
                "invisible",
                "llm-kb.toml",
                None,
                "1 invisible character: U+202E in kb.topic.a.description",
            ),
            id="in the configuration",
        ),
        pytest.param(
            {"llm-kb.toml": f'[kb.check]\nignore = ["danglin"]\n{CONFIG}'},
            (
                "unmatched",
                "llm-kb.toml",
                None,
                "kb.check.ignore: 'danglin' is not a rule; did you mean 'dangling'?",
            ),
            id="a rule that is none",
        ),
        pytest.param(
            {"kb/one.md": 'Call\nlearn("a", "two").\n'},
            ("dangling", "kb/one.md", 2, "no subject of topic 'a' matches 'two'"),
            id="reference to nothing",
        ),
        pytest.param(
            {"kb/one.md": 'learn("a", "/x")'},
            ("dangling", "kb/one.md", 1, "invalid pattern '/x'"),
            id="reference that is no pattern",
        ),
        pytest.param(
            {"kb/one.md": 'learn("b")'},
            ("dangling", "kb/one.md", 1, "unknown topic 'b'; valid topics: a"),
            id="reference to no topic",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}learned = ["on*", "two"]\n'},
            ("unmatched", "llm-kb.toml", None, "kb.topic.a.learned: 'two' matches nothing"),
            id="learned",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}learned = ["one#on"]\n', "kb/one.md": "# One\n\nOne.\n"},
            (
                "unmatched",
                "llm-kb.toml",
                None,
                "kb.topic.a.learned: subject 'one' of topic 'a' has no part '#on';"
                " did you mean: one#one; 'one#' lists them",
            ),
            id="learned part",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}disabled = ["two", ".of?"]\n', "kb/.off.md": "x"},
            ("unmatched", "llm-kb.toml", None, "kb.topic.a.disabled: 'two' matches nothing"),
            id="disabled",
        ),
        pytest.param(
            {"kb/a\tb.md": "x"},
            (
                "skipped",
                "kb/a\\tb.md",
                None,
                "its name contains control, invisible or undecodable characters",
            ),
            id="name that cannot be",
        ),
        pytest.param(
            {"kb/review.md": "# Review\n\n## Who\n"},
            ("no-text", "kb/review.md", None, "it has no text below its heading"),
            id="headings alone",
        ),
        pytest.param(
            {"llm-kb.toml": CONFIG.replace("introduction", "description")},
            ("no-introduction", "llm-kb.toml", None, "topic 'a' has no introduction"),
            id="no introduction",
        ),
        pytest.param(
            {"llm-kb.toml": CONFIG.replace('"kb"', '"kb2"'), "kb2/.a.md": "a"},
            (
                "empty-topic",
                "llm-kb.toml",
                None,
                "topic 'a' lists no subjects: those of ",
            ),
            id="nothing listed",
        ),
    ],
)
def test_findings(
    run_llm: RunLlm,
    tmp_path: Path,
    files: dict[str, str | bytes],
    finding: tuple[str, str, int | None, str],
) -> None:
    write_files(tmp_path, {**GOOD, **files})
    level = Rule[finding[0].upper().replace("-", "_")].level
    found = check(run_llm, 1 if level == "error" else 0)
    *place, what = finding
    matching = [f for f in found if list(f[:3]) == place and f[3].startswith(what)]
    assert len(matching) == 1
    assert {f[0] for f in found} <= {finding[0], "empty-topic", "unlisted"}


def test_a_missing_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG})
    what = (
        f"topic 'a' lists no subjects: {tmp_path}/kb: no such directory;"
        " correct that, or `subjects` in the configuration"
    )
    assert check(run_llm, 1) == [("configuration", "llm-kb.toml", None, what)]


def test_a_file_in_place_of_a_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb": "x"})
    ((rule, file, _, what),) = check(run_llm, 1)
    assert (rule, file) == ("configuration", "llm-kb.toml")
    assert what.startswith(f"topic 'a' lists no subjects: {tmp_path}/kb: ")


def test_an_empty_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG})
    (tmp_path / "kb").mkdir()
    place = f"{tmp_path}/kb"
    what = f"topic 'a' lists no subjects: {place} is empty; `llm kb new a/NAME` writes one"
    assert check(run_llm, 0) == [("empty-topic", "llm-kb.toml", None, what)]


def test_links_that_leave(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "out.png": "x"})
    (tmp_path / "kb/link.md").symlink_to(tmp_path / "out.png")
    what = "the link leads outside the topic"
    assert check(run_llm, 1) == [("skipped", "kb/link.md", None, what)]


def test_topics_inside_a_topic(run_llm: RunLlm, tmp_path: Path) -> None:
    topics = {"b": "kb/sub", "c": "kb/sub", "d": "kb/other"}
    config = CONFIG + "".join(
        f'[kb.topic.{id_}]\nsubjects = "{place}"\nintroduction = "x"\n'
        for id_, place in topics.items()
    )
    write_files(tmp_path, {**GOOD, "kb/sub/x.md": "x\n", "kb/other/y.md": "y\n"})
    write_files(tmp_path, {"llm-kb.toml": config})
    assert [what for _, _, _, what in check(run_llm, 0)] == [
        "topics 'a' and 'b' share 1 subject",
        "topics 'a' and 'c' share 1 subject",
        "topics 'a' and 'd' share 1 subject",
        "topics 'b' and 'c' share 1 subject",
    ]
    ignored = config.replace("[kb.topic.b]", 'ignore = ["/sub/", "/other/y.md"]\n[kb.topic.b]')
    write_files(tmp_path, {"llm-kb.toml": ignored})
    what = "topics 'b' and 'c' share 1 subject"
    assert check(run_llm, 0) == [("nested", "llm-kb.toml", None, what)]


def test_a_broken_configuration(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": "[kb]\nmenuu = 1\nauto = 3\n"})
    found = check(run_llm, 1)
    assert {(rule, file) for rule, file, _, _ in found} == {("configuration", "llm-kb.toml")}
    assert len(found) == 2


def test_a_collection_of_skills_as_people_keep_it(run_llm: RunLlm, tmp_path: Path) -> None:
    """A README beside the skills is fine, and so are files that SKILL.md names in its way."""
    skill = "---\nname: pdf\ndescription: Reads PDF.\n---\nFor forms, read FORMS.md.\n"
    write_files(tmp_path, {"llm-kb.toml": f'{CONFIG}layout = "skills"\n', "kb/README.md": "All.\n"})
    write_files(tmp_path, {"kb/pdf/SKILL.md": skill, "kb/pdf/forms.md": "See scripts/fill.py.\n"})
    write_files(tmp_path, {"kb/pdf/scripts/fill.py": "import check\n", "kb/pdf/check.py": "x\n"})
    assert check(run_llm, 0) == []
    write_files(tmp_path, {"kb/pdf/SKILL.md": "Nothing.\n", "kb/xls/skill.md": "x\n"})
    assert check(run_llm, 1) == [
        ("skipped", "kb/xls/skill.md", None, "its name must be SKILL.md, in upper case"),
        ("skill", "kb/pdf/SKILL.md", None, "its front matter has no name and description"),
    ]


SKILL = "---\nname: pdf-forms\ndescription: Fills forms.\n---\n# PDF\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(SKILL, None, id="good"),
        pytest.param(
            SKILL.replace("name:", "title:"), "its front matter has no name", id="no name"
        ),
        pytest.param(
            SKILL.replace("pdf-forms", "forms"),
            "its name 'forms' is not that of its directory, 'pdf-forms', in at most 64 lower-case"
            " letters, digits and single hyphens",
            id="another name",
        ),
        pytest.param(
            SKILL.replace("pdf-forms", "PDF Forms"),
            "its name 'PDF Forms' is not that of its directory, 'pdf-forms', in at most 64"
            " lower-case letters, digits and single hyphens",
            id="name with spaces",
        ),
        pytest.param(
            SKILL.replace("description", "summary"),
            "its front matter has no description",
            id="no description",
        ),
        pytest.param(
            SKILL.replace("Fills forms.", "x" * 1025),
            "its description has 1,025 characters; the most is 1,024",
            id="long description",
        ),
    ],
)
def test_skills_follow_their_specification(
    run_llm: RunLlm, tmp_path: Path, text: str, what: str | None
) -> None:
    write_files(tmp_path, {"llm-kb.toml": f'{CONFIG}layout = "skills"\n'})
    write_files(tmp_path, {"kb/pdf-forms/SKILL.md": text})
    file = "kb/pdf-forms/SKILL.md"
    assert check(run_llm, 0) == ([] if what is None else [("skill", file, None, what)])


def test_without_a_configuration(run_llm: RunLlm, tmp_path: Path) -> None:
    what = "no topics are configured; `llm kb init` proposes some"
    assert check(run_llm, 1) == [("configuration", str(tmp_path), None, what)]


def test_a_configuration_without_topics(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": "[kb]\n"})
    assert check(run_llm, 0) == [
        (
            "empty-topic",
            "llm-kb.toml",
            None,
            "no topics are configured; `llm kb init` proposes some",
        )
    ]


def test_rules_can_be_ignored(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'[kb.check]\nignore = ["dead-link"]\n{CONFIG}'
    text = '[b](b.md) [c](c.md) learn("a", "x")'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": config, "kb/a.md": text})
    assert [rule for rule, _, _, _ in check(run_llm, 1)] == ["dangling"]
    summary = "1 error in 2 subjects; 2 ignored by kb.check.ignore (dead-link)\n"
    assert run_llm(["kb", "check"]).stdout.endswith(f"\n{summary}")
    only = run_llm(["kb", "check", "--kb-cfg", "kb.check.ignore=dangling"])
    assert only.exit_code == 0


def test_a_link_that_no_file_could_have_is_dead(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/two.md": f"[x]({'a' * 5_000}.md) [y](a%00b.md)\n"})
    [(rule, file, line, _)] = check(run_llm, 0)
    assert (rule, file, line) == ("dead-link", "kb/two.md", 1)


def test_each_link_that_leads_to_nothing_is_a_finding(run_llm: RunLlm, tmp_path: Path) -> None:
    text = """See [one](one.md), [up](../README.md#x) and [out](https://example.com/a.md).
[route](/guide.md) [root](@/a.md) [page](page.html) [name]({{ x }}.md) [gone](sub/gone%20one.md)
`[code](never.md)` [twice](sub/gone%20one.md) [also](also.rst) ``[code](never.md)``
```
[fenced](never.md)
```
[below](below.md)
```not a fence``` [beside](beside.md)
- ~~~~
  [item](never.md)
  ~~~~
[last](last.md) [space](<a b.md>) [there](<c d.md> "Title")

    [indented](never.md)

- item

    [in an item](in-item.md)

<a class="x" href="tag.md">tag</a> [by name][defined]

[defined]: defined.md "Title"
[site]: ../../other/x.md
"""
    text += f"[up](../../gone.md) [near](../../{tmp_path.name}/gone.md)"
    text += " [flat](flat.md) [several](same.md)\n"
    write_files(tmp_path, {**GOOD, "README.md": "x\n", "kb/two.md": text, "kb/c d.md": "x\n"})
    flat = {"kb/a/flat.md": "Flat.\n", "kb/a/same.md": "Same.\n", "kb/b/same.md": "Other.\n"}
    write_files(tmp_path, flat)
    expected = [
        ("dead-link", "kb/two.md", 2, "a link leads to nothing: sub/gone one.md"),
        ("dead-link", "kb/two.md", 3, "a link leads to nothing: also.rst"),
        ("dead-link", "kb/two.md", 7, "a link leads to nothing: below.md"),
        ("dead-link", "kb/two.md", 8, "a link leads to nothing: beside.md"),
        ("dead-link", "kb/two.md", 12, "a link leads to nothing: a b.md"),
        ("dead-link", "kb/two.md", 12, "a link leads to nothing: last.md"),
        ("dead-link", "kb/two.md", 18, "a link leads to nothing: in-item.md"),
        ("dead-link", "kb/two.md", 20, "a link leads to nothing: tag.md"),
        ("dead-link", "kb/two.md", 22, "a link leads to nothing: defined.md"),
        ("dead-link", "kb/two.md", 24, "a link leads to nothing: ../../gone.md"),
        ("dead-link", "kb/two.md", 24, f"a link leads to nothing: ../../{tmp_path.name}/gone.md"),
        ("dead-link", "kb/two.md", 24, "a link leads to nothing: flat.md"),
        ("dead-link", "kb/two.md", 24, "a link leads to nothing: same.md"),
        ("unlisted", "README.md", None, "1 text in this directory in no topic"),
    ]
    assert check(run_llm, 0) == expected
    # The pages of ExDoc are all in one directory.
    write_files(tmp_path, {"mix.exs": ""})
    assert check(run_llm, 0) == [each for each in expected if "flat.md" not in each[3]]


def test_anchors_of_links_are_those_of_headings(run_llm: RunLlm, tmp_path: Path) -> None:
    two = """# Two `<x>` Parts

[own](#two-x-parts) [id](#Set) [line](#L3) [top](#top) [again](one.md#how-to-1) [gone](#gone)
[one](one.md#How--To) [made](made.md#x) [outside](../README.md#x) [other](one.md#how)
[a](#my-target) [b](#par) [c](#fig-one) [d](#term) [e](#fn:1) [f](#fnref:1) [g](#^b) [h](#opt)
<a id="set"></a>

(my-target)=
Text.
{: .note #par }
![x](x.png){ #fig-one width=3 } []{#term}Term[^1]

[^1]: tests.md is the page of a footnote.

```{figure} x.png
:name: opt
```
"""
    pages = {"one.md": "# A\n\n## How to\n\nText.\n", "made.md": "::: module\n", "two.md": two}
    write_files(tmp_path, {**GOOD, **{f"kb/{name}": text for name, text in pages.items()}})
    write_files(tmp_path, {"README.md": "x\n"})
    assert [found for found in check(run_llm, 0) if found[0] == "dead-link"] == [
        ("dead-link", "kb/two.md", 3, "a link leads to no heading: #gone"),
        ("dead-link", "kb/two.md", 4, "a link leads to no heading: one.md#how"),
    ]


def test_links_of_wikis_lead_to_subjects(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'{CONFIG}[kb.topic.b]\nintroduction = "B."\nsubjects = "b"\n'
    text = r"""[[one]], [[one|shown]], [[one#part]], [[deep]], [[sub/deep.md]], [[My Page]]
[[b/other]]
| [[one\|in a table]] | `[[code]]` | [[1]] | [[text]](https://example.com) | [[defined]] |
| --- | --- | --- | --- | --- |

[defined]: https://example.com
    ![[picture.png]] [[#here]] [[ -n "$X" ]] [[File:x]]
```
[[fenced]]
```
<!-- [[[cog
[[in a comment]] and [a link](gone.md)
]]] --> <!--[[end]]-->
[[none]], [[none#part]], [[b/none]], [[twice]], [[other]]
"""
    names = ("kb/sub/deep.md", "kb/my-page.md", "b/other.md", "kb/x/twice.md", "kb/y/twice.md")
    write_files(tmp_path, {**GOOD, **{name: f"{name}\n" for name in names}})
    beside = {"kb/x/beside.md": "[[twice]]\n"}
    write_files(tmp_path, {"llm-kb.toml": config, "kb/two.md": text, **beside})
    several = "[[twice]] leads to several: x/twice, y/twice"
    dead = [f"[[{name}]] leads to nothing" for name in ("b/none", "none", "other")]
    assert check(run_llm, 0) == [
        *(("dead-link", "kb/two.md", 14, what) for what in (*dead, several)),
        ("dead-link", "kb/x/beside.md", 1, several),
    ]
    assert "did you mean: x/twice, y/twice" in run_llm(["kb", "learn", "a", "[[twice]]"]).stderr
    learned = [run_llm(["kb", "learn", "a", name]).stdout for name in ("[[one|x]]", "[[deep#]]")]
    assert learned[0] == "One.\n"
    assert "Outline of sub/deep" in learned[1]
    assert "b/other.md" in run_llm(["kb", "learn", "a", "[[b/other]]"]).stdout
    write_files(tmp_path, {"kb/[[one]].md": "In brackets.\n"})
    assert run_llm(["kb", "learn", "a", "[[one]]"]).stdout == "In brackets.\n"


def test_includes_of_every_markup_are_followed(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'{CONFIG}[kb.check]\nignore = ["unlisted"]\n'
    pages = {
        "a.rst": ".. include:: gone.rst\n.. literalinclude:: ../src/x.py\n"
        ".. include:: <isonum.txt>\n",
        "b.adoc": "include::gone.adoc[]\ninclude::{path}/x.adoc[]\ninclude::sub/part.adoc[]\n",
        "c.md": '```py\n--8<-- "src/x.py:main"\n--8<-- "gone.py"\n```\n{{#include gone.rs:1:9}}\n'
        "\\{{#include x.rs}}\n"
        "```{include} sub/part.adoc\n```\n",
        "d.org": '#+INCLUDE: "gone.org" src\n',
        "sub/part.adoc": "Part.\n",
    }
    write_files(tmp_path, {**GOOD, **{f"kb/{name}": text for name, text in pages.items()}})
    write_files(tmp_path, {"llm-kb.toml": config, "src/x.py": "x = 1\n"})
    assert check(run_llm, 0) == [
        ("dead-link", "kb/a.rst", 1, "an include leads to nothing: gone.rst"),
        ("dead-link", "kb/b.adoc", 1, "an include leads to nothing: gone.adoc"),
        ("dead-link", "kb/c.md", 3, "an include leads to nothing: gone.py"),
        ("dead-link", "kb/c.md", 5, "an include leads to nothing: gone.rs:1:9"),
        ("dead-link", "kb/d.org", 1, "an include leads to nothing: gone.org"),
        (
            "included",
            "kb/a.rst",
            None,
            "it includes ../src/x.py, which is in no topic (1 more like it)",
        ),
    ]


def test_a_page_with_many_dead_links_says_how_many(run_llm: RunLlm, tmp_path: Path) -> None:
    text = "".join(f"[[x{number}]]\n" for number in range(203))
    write_files(tmp_path, {**GOOD, "kb/two.md": f"{text}[[one]]\n"})
    found = check(run_llm, 0)
    assert (len(found), found[0][3]) == (201, "3 more in this page")


def test_names_in_brackets_of_which_none_is_a_subject_are_another_markup(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    text = "".join(f"[[RFC{number}]]\n" for number in range(7000, 7025))
    write_files(tmp_path, {**GOOD, "kb/two.md": f"{text}[gone](gone.md)\n"})
    result = run_llm(["kb", "check", "--json"])
    assert [f["what"] for f in json.loads(result.stdout)] == ["a link leads to nothing: gone.md"]
    said = "the 25 [[names]] of a lead to no subject: taken for another markup"
    assert result.stderr == f"llm-kb: {said}\n"
    write_files(tmp_path, {"kb/two.md": "[[RFC7000]]\n"})
    assert [each[3] for each in check(run_llm, 0)] == ["[[RFC7000]] leads to nothing"]


def test_a_path_that_git_once_had_is_a_note(
    run_llm: RunLlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ("src/old.py", "src/dir/a.py", "top.py", "moved.py", "kb/near.txt")
    copy_repository(tmp_path, {**dict.fromkeys(gone, "x\n"), "src/new.py": "x\n"})
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "rm", "-q", *gone], check=True)
    write_files(tmp_path, {"lib/moved.py": "x\n"})
    subprocess.run([*git, "add", "lib"], check=True)
    subprocess.run([*git, "commit", "-qm", "second"], check=True)
    text = """`src/old.py:12`, `src/new.py`, `never/was.py`, src/old.py, `moved.py`, `and/or`
`src/dir/`
`python ./top.py` `near.txt`
```
src/old.py
```
"""
    dated = ("CHANGELOG.md", "adr/0001.md", "rfcs/x.md", "release-plan.md", "docs/decisions/1.md")
    pages = {f"kb/{name}": f"{name}: `src/old.py`\n" for name in dated}
    write_files(tmp_path, {**GOOD, "kb/two.md": text, **pages})
    assert check(run_llm, 0) == [
        ("gone-path", "kb/two.md", 1, "git had src/old.py, which is gone"),
        ("gone-path", "kb/two.md", 2, "git had src/dir, which is gone"),
        ("gone-path", "kb/two.md", 3, "git had near.txt, which is gone"),
        ("gone-path", "kb/two.md", 3, "git had top.py, which is gone"),
    ]
    shallow = tmp_path / "shallow"
    clone = ["git", "clone", "-q", "--depth=1", tmp_path.as_uri(), str(shallow)]
    subprocess.run(clone, check=True)
    write_files(shallow, {**GOOD, "kb/two.md": text})
    monkeypatch.chdir(shallow)
    result = run_llm(["kb", "check"])
    assert (result.exit_code, result.stdout) == (0, "nothing wrong in 2 subjects\n")
    assert result.stderr.startswith(
        f"llm-kb: not all paths that git deleted are known in {shallow}: the clone is shallow\n"
    )


def test_texts_in_no_topic_are_named_by_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "llm-kb.toml": f'{CONFIG}include = ["*.md"]\n'})
    write_files(tmp_path, {f"d{n}/{m}.asciidoc": "x" for n in range(7) for m in range(9 - n)})
    chapters = {f"kb/{n}.chap": "Some of it" for n in range(3)}
    write_files(tmp_path, {**chapters, "kb/y.py": "x", "tests/a.md": "x", "LICENSE.md": "x"})
    write_files(tmp_path, {"e.json": "{}", "kb/z.raw": b"\0\1"})
    assert check(run_llm, 0) == [
        ("unlisted", f"d{n}/0.asciidoc", None, f"{9 - n} texts in d{n}/ in no topic")
        for n in range(5)
    ] + [("unlisted", "d5/0.asciidoc", None, "10 texts in 3 more directories in no topic")]


def test_what_a_configuration_leaves_out_is_not_unlisted(run_llm: RunLlm, tmp_path: Path) -> None:
    old = CONFIG.replace('"kb"', '"."') + 'ignore = ["*", "!*/", "!*.md", "/drafts/"]\n'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": old, "a.rst": "x"})
    assert [finding[:2] for finding in check(run_llm, 0)] == [("unlisted", "a.rst")]
    new = CONFIG.replace('"kb"', '"."') + 'ignore = ["*.rst"]\ndisabled = ["kb/**"]\n'
    write_files(tmp_path, {"llm-kb.toml": new, "b.md": "x"})
    assert check(run_llm, 0) == []


def test_what_git_ignores_is_counted(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, ".gitignore": "gen*\n", "kb/gen.md": "x", "kb/gen/a.md": "x"})
    copy_empty_repository(tmp_path)
    assert check(run_llm, 0) == [("absent", "kb", None, "2 left out: ignored by git")]
    assert "2 left out: ignored by git" in run_llm(["kb", "list", "a"]).stdout
    first = run_llm(["kb", "search", "one"])
    assert "not searched: a: 2 left out: ignored by git" in first.stdout + first.stderr


def test_files_with_the_same_content_are_one_finding(run_llm: RunLlm, tmp_path: Path) -> None:
    text = "The same words. " * 20
    write_files(tmp_path, {**GOOD, "kb/a.md": text, "kb/b.md": text, "kb/sub/c.md": text})
    write_files(tmp_path, {"kb/short.md": "x", "kb/short2.md": "x"})
    (tmp_path / "kb/link.md").symlink_to("a.md")
    what = "its content is also in kb/b.md, kb/sub/c.md"
    assert check(run_llm, 0) == [("duplicate", "kb/a.md", None, what)]


def test_a_notebook_is_measured_as_a_model_reads_it(run_llm: RunLlm, tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "x" * 300_000}}
    cells = [
        {"cell_type": "markdown", "source": "# One\n\nText.\n"},
        {"cell_type": "code", "source": "plot()", "outputs": [picture]},
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})
    write_files(tmp_path, {**GOOD, "kb/n.ipynb": notebook})
    assert check(run_llm, 0) == []
    (record,) = (
        each
        for each in json.loads(run_llm(["kb", "list", "a", "--json"]).stdout)
        if each["path"] == "n.ipynb"
    )
    assert record["tokens"] < 250


def test_all_subjects_disabled_is_not_an_empty_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "llm-kb.toml": f'{CONFIG}disabled = ["**"]\n'})
    what = (
        f"topic 'a' lists no subjects: those of {tmp_path}/kb are all disabled;"
        " `llm kb disable --remove` takes one back"
    )
    assert check(run_llm, 0) == [("empty-topic", "llm-kb.toml", None, what)]
    assert "are all disabled" in run_llm(["kb", "prompt", "-k", "a"]).stderr


def test_files_skipped_for_one_reason_are_one_finding(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "out.png": "x"})
    for number in range(5):
        (tmp_path / f"kb/link{number}.md").symlink_to(tmp_path / "out.png")
    what = "the link leads outside the topic (4 more like it)"
    assert check(run_llm, 1) == [("skipped", "kb/link0.md", None, what)]


def test_what_people_read(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/two.md": "[x](gone.md)", "kb/one.md": 'learn("a", "x")'})
    result = run_llm(["kb", "check"])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "kb/one.md:1: error: no subject of topic 'a' matches 'x' [dangling]",
        f"  {Rule.DANGLING.advice}",
        "kb/two.md:1: warning: a link leads to nothing: gone.md [dead-link]",
        f"  {Rule.DEAD_LINK.advice}",
        "1 error, 1 warning in 2 subjects",
    ]
    assert result.stderr == ""


@pytest.mark.parametrize("color", [True, False])
def test_on_a_terminal_the_place_is_shown_in_its_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, color: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "" if color else "1")
    monkeypatch.setenv("COLUMNS", "40")
    text = '# One\n\n大 before and what follows learn("a", "x") and more of that line\n'
    write_files(tmp_path, {**GOOD, "kb/one.md": text})
    shown, code = run_on_terminal(["kb", "check"])
    assert code == 1
    assert ("\x1b[31m\x1b[1merror" in shown) is color
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert plain == [
        "kb/one.md:3: error: no subject of topic",
        "  'a' matches 'x' [dangling]",
        '3 | …t follows learn("a", "x") and more…',
        "  |            ^^^^^^^^^^^^^^",
        "  A model that follows it gets an error:",
        "  correct it, or write the subject.",
        "",
        "1 error in 1 subject",
    ]


@pytest.mark.parametrize("columns", [5, 40])
def test_on_a_terminal_lines_of_wide_characters_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    wide = "大" * 50
    write_files(tmp_path, {**GOOD, "kb/one.md": f'{wide} learn("a", "{wide}") {wide}\n'})
    shown, _ = run_on_terminal(["kb", "check"])
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    quoted = next(index for index, line in enumerate(plain) if line.startswith("1 | "))
    assert max(map(count_columns, plain[quoted : quoted + 2])) <= max(columns, len("1 | ………"))
