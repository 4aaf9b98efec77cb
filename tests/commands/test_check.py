"""`llm kb check`: every finding, on a workspace with that problem."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_kb.rendering.plain_text import count_columns
from llm_kb.upkeep.check import DANGLING, DEAD_LINK
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.git_templates import copy_empty_repository
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
            "advice": DANGLING.advice,
        }
    ]


def test_a_file_that_no_search_reads_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, GOOD)
    os.truncate(tmp_path / "kb/one.md", 20_000_001)
    what = "no search reads it: it is larger than 20 MB"
    assert check(run_llm, 0) == [("skipped", "kb/one.md", None, what)]


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
            {
                "llm-kb.toml": f'{CONFIG}learned = ["**"]\n',
                "kb/one.md": "# One\n\n" + "Words.\n" * 2_300,
            },
            ("oversize", "llm-kb.toml", None, "~4,027 tokens are pre-loaded"),
            id="much is pre-loaded",
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
            {"kb/x.min.js": "x\n"},
            ("skipped", "kb/x.min.js", None, "no search reads it: it is written by a machine"),
            id="not searched",
        ),
        pytest.param(
            {
                "llm-kb.toml": f'{CONFIG}title = "T"\n[kb.topic.t]\nsubjects = "t"\n'
                'introduction = "x"\n',
                "t/x.md": "x",
            },
            ("configuration", "llm-kb.toml", None, "topics 'a' and 't' have one title in any case"),
            id="titles that differ in case alone",
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
    is_error = finding[0] in {"unmatched", "invisible", "dangling"} or "control" in finding[3]
    found = check(run_llm, is_error)
    *place, what = finding
    matching = [f for f in found if list(f[:3]) == place and f[3].startswith(what)]
    assert len(matching) == 1
    assert {f[0] for f in found} <= {finding[0], "empty-topic"}


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
    what = "the link leads outside the topic; allow_links_to in your own kb.toml permits it"
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
    write_files(tmp_path, {"kb/xls/skill.md": "x\n"})
    assert check(run_llm, 1) == [
        ("skipped", "kb/xls/skill.md", None, "its name must be SKILL.md, in upper case"),
    ]


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
{{< code-toggle file=x >}}
[[cascade]]
{{< /code-toggle >}}
[[outside]] [[one#Gone]] [[one#A#Part]] [[one#^block]]
"""
    names = ("kb/sub/deep.md", "kb/my-page.md", "b/other.md", "kb/x/twice.md", "kb/y/twice.md")
    write_files(tmp_path, {**GOOD, **{name: f"{name}\n" for name in names}})
    write_files(tmp_path, {"kb/one.md": "One.\n\n## Part\n", "kb/example.md": "[[a.b]] [[c]]\n"})
    beside = {"kb/x/beside.md": "[[twice]]\n"}
    write_files(tmp_path, {"llm-kb.toml": config, "kb/two.md": text, **beside})
    several = "[[twice]] leads to several: x/twice, y/twice"
    dead = [f"[[{name}]] leads to nothing" for name in ("b/none", "none", "other")]
    gone = ("[[one#Gone]] leads to no heading", "[[outside]] leads to nothing")
    assert check(run_llm, 0) == [
        *(("dead-link", "kb/two.md", 14, what) for what in (*dead, several)),
        *(("dead-link", "kb/two.md", 18, what) for what in gone),
        ("dead-link", "kb/x/beside.md", 1, several),
    ]
    missing = run_llm(["kb", "show", "--as-model", "a/[[twice]]"]).stderr
    assert "did you mean: x/twice, y/twice" in missing
    given = ("[[one|x]]", "[[deep#]]")
    learned = [run_llm(["kb", "show", "--as-model", f"a/{name}"]).stdout for name in given]
    assert learned[0] == "One.\n\n## Part\n"
    assert "Outline of sub/deep" in learned[1]
    assert "b/other.md" in run_llm(["kb", "show", "--as-model", "a/[[b/other]]"]).stdout
    write_files(tmp_path, {"kb/[[one]].md": "In brackets.\n"})
    assert run_llm(["kb", "show", "--as-model", "a/[[one]]"]).stdout == "In brackets.\n"


def test_a_page_with_many_dead_links_says_how_many(run_llm: RunLlm, tmp_path: Path) -> None:
    text = "".join(f"[[x{number}]]\n" for number in range(203))
    write_files(tmp_path, {**GOOD, "kb/two.md": f"{text}[[one]]\n"})
    found = check(run_llm, 0)
    assert (len(found), found[0][3]) == (201, "3 more in this page")


def test_what_git_ignores_is_counted(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, ".gitignore": "gen*\n", "kb/gen.md": "x", "kb/gen/a.md": "x"})
    copy_empty_repository(tmp_path)
    assert check(run_llm, 0) == []
    assert "2 left out: ignored by git" in run_llm(["kb", "list", "a"]).stdout
    first = run_llm(["kb", "search", "one"])
    assert "not searched: a: 2 left out: ignored by git" in first.stdout + first.stderr


def test_headings_inside_and_escaped_signs_are_no_dead_links(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    text = r"""# G

> # Quoted Heading

- # List Heading
- 1. ## Numbered

!!! note

    ## Admonition Heading

[a](#quoted-heading) [b](#list-heading) [c](#numbered) [d](#admonition-heading)
[e](a&amp;b.md) \[f](none.md) [g\](none.md) [[x](h.md)] [i](#gone)
"""
    write_files(tmp_path, {**GOOD, "kb/two.md": text, "kb/a&b.md": "x\n"})
    assert check(run_llm, 0) == [
        ("dead-link", "kb/two.md", 13, "a link leads to no heading: #gone"),
        ("dead-link", "kb/two.md", 13, "a link leads to nothing: h.md"),
    ]


def test_an_import_may_lead_to_another_topic(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'{CONFIG}[kb.topic.b]\nintroduction = "B."\nsubjects = ".github"\n'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": config, ".github/rules.md": "Rules.\n"})
    write_files(tmp_path, {"kb/CLAUDE.md": "@../.github/rules.md\n@../README.md\n"})
    write_files(tmp_path, {"README.md": "In no topic.\n"})
    what = "an import leads to no subject: @../README.md"
    assert check(run_llm, 0) == [("dead-link", "kb/CLAUDE.md", 2, what)]


def test_only_what_is_wrong_in_this_project_fails(
    run_llm: RunLlm, tmp_path: Path, user_dir: Path
) -> None:
    write_files(tmp_path, GOOD)
    notes = tmp_path.parent / "notes"
    write_files(notes, {"a.md": 'learn("a", "x")\n'})
    own = CONFIG.replace("topic.a", "topic.mine").replace('"kb"', f'"{notes}"')
    write_files(user_dir, {"kb.toml": own})
    [finding] = json.loads(run_llm(["kb", "check", "--json"]).stdout)
    assert (finding["rule"], finding["level"]) == ("dangling", "warning")
    assert run_llm(["kb", "check"]).exit_code == 0
    write_files(tmp_path, {"kb/one.md": 'learn("a", "x")\n'})
    assert run_llm(["kb", "check"]).exit_code == 1


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
        " `llm kb disable --undo` takes one back"
    )
    assert check(run_llm, 0) == [("empty-topic", "llm-kb.toml", None, what)]
    assert "are all disabled" in run_llm(["kb", "prompt", "-k", "a"]).stderr


def test_files_skipped_for_one_reason_are_one_finding(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "out.png": "x"})
    for number in range(5):
        (tmp_path / f"kb/link{number}.md").symlink_to(tmp_path / "out.png")
    [(rule, file, _, what)] = check(run_llm, 1)
    assert (rule, file) == ("skipped", "kb/link0.md")
    assert what.endswith("permits it (4 more like it)")


def test_what_people_read(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/two.md": "[x](gone.md)", "kb/one.md": 'learn("a", "x")'})
    result = run_llm(["kb", "check"])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "kb/one.md:1: error: no subject of topic 'a' matches 'x' [dangling]",
        f"  {DANGLING.advice}",
        "kb/two.md:1: warning: a link leads to nothing: gone.md [dead-link]",
        f"  {DEAD_LINK.advice}",
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
        "  A model gets an error: correct it, or",
        "  write the subject.",
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
