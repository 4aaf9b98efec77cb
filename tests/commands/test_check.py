"""`llm kb check`: every finding, on a workspace with that problem."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_kb.commands.check import MANY
from llm_kb.upkeep.rules import Rule
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
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
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "llm-kb: nothing wrong in 1 subject\n"
    assert check(run_llm, 0) == []


def test_a_file_that_no_search_reads_is_named(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, GOOD)
    os.truncate(tmp_path / "kb/one.md", 20_000_001)
    found = [finding for finding in check(run_llm, 0) if finding[0] == "not-searched"]
    assert found == [("not-searched", "kb/one.md", None, "larger than 20 MB")]


def test_the_sample_is_clean(run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2] / "sample_kb")
    assert check(run_llm, 0) == []


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        pytest.param(
            {"kb/one.md": b"\0"},
            ("binary", "kb/one.md", None, "not a text file"),
            id="binary",
        ),
        pytest.param(
            {"kb/one.md": b"\xff"},
            ("undecodable", "kb/one.md", None, "1 byte not valid in UTF-8, shown as \ufffd"),
            id="undecodable",
        ),
        pytest.param(
            {"llm-kb.toml": f"[kb]\nmax_result_chars = 3\n{CONFIG}"},
            ("oversize", "kb/one.md", None, "5 characters in it have no heading"),
            id="oversize",
        ),
        pytest.param(
            {"kb/one.md": "a\nb\u202ec\n"},
            ("invisible", "kb/one.md", 2, "1 bidirectional control: U+202E"),
            id="bidirectional",
        ),
        pytest.param(
            {"llm-kb.toml": CONFIG.replace("What", "W\u200bhat")},
            (
                "zero-width",
                "llm-kb.toml",
                None,
                "1 character without width in kb.topic.a.introduction: U+200B",
            ),
            id="invisible in the configuration",
        ),
        pytest.param(
            {"kb/.notes.md": "Hidden.\n"},
            ("unmentioned", "kb/.notes.md", None, "no listed subject mentions 'notes'"),
            id="hidden and not mentioned",
        ),
        pytest.param(
            {"kb/.notes.md": "See `more`.\n", "kb/.more.md": "See `notes`.\n"},
            ("unmentioned", "kb/.more.md", None, "no listed subject mentions 'more'"),
            id="mentioned by one that nothing mentions",
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
            ("unknown-topic", "kb/one.md", 1, "unknown topic 'b'; valid topics: a"),
            id="reference to no topic",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}learned = ["on*", "two"]\n'},
            ("unmatched", "llm-kb.toml", None, "kb.topic.a.learned: 'two' matches nothing"),
            id="learned",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}learned = ["one#on"]\n', "kb/one.md": "# One\n"},
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
            {"kb/two.md": 'learn("a", "one#gone")', "kb/one.md": "# One\n"},
            ("dangling", "kb/two.md", 1, "subject 'one' of topic 'a' has no part '#gone'"),
            id="reference to no part",
        ),
        pytest.param(
            {"llm-kb.toml": f'{CONFIG}disabled = ["two", ".of?"]\n', "kb/.off.md": "x"},
            ("unmatched", "llm-kb.toml", None, "kb.topic.a.disabled: 'two' matches nothing"),
            id="disabled",
        ),
        pytest.param(
            {"kb/two[1].md": "x"},
            ("unsafe-name", "kb/two[1].md", None, "its name contains glob characters"),
            id="name",
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
            {"llm-kb.toml": CONFIG.replace("introduction", "description")},
            ("no-introduction", "llm-kb.toml", None, "topic 'a' has no introduction"),
            id="no introduction",
        ),
        pytest.param(
            {"llm-kb.toml": CONFIG.replace('"kb"', '"kb2"'), "kb2/.a.md": "a"},
            ("empty-topic", "llm-kb.toml", None, "topic 'a' has no subject that is listed"),
            id="nothing listed",
        ),
        pytest.param(
            {"llm-kb.toml": f"[kb]\nmenu_budget = 20\n{CONFIG}"},
            ("over-budget", "llm-kb.toml", None, "the menu takes about"),
            id="menu over its budget",
        ),
        pytest.param(
            {
                "llm-kb.toml": f'[kb]\nmenu = "subjects"\nmenu_budget = 60\n{CONFIG}',
                "kb/two.md": "# Two, and a long summary of what it says\n" * 2,
            }
            | {f"kb/{number}.md": "# A summary\n" for number in range(9)},
            (
                "over-budget",
                "llm-kb.toml",
                None,
                "to fit into 60 tokens, ",
            ),
            id="menu that was cut",
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
    found = check(run_llm, 1 if level.value == "error" else 0)
    *place, what = finding
    matching = [f for f in found if list(f[:3]) == place and f[3].startswith(what)]
    assert len(matching) == 1
    assert {f[0] for f in found} <= {finding[0], "empty-topic", "unmentioned"}


def test_a_missing_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG})
    what = f"{tmp_path}/kb: no such directory"
    assert check(run_llm, 1) == [("no-directory", "llm-kb.toml", None, what)]


def test_a_file_in_place_of_a_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG, "kb": "x"})
    ((rule, file, _, what),) = check(run_llm, 1)
    assert (rule, file) == ("no-directory", "llm-kb.toml")
    assert what.startswith(f"{tmp_path}/kb: ")


def test_an_empty_directory(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG})
    (tmp_path / "kb").mkdir()
    what = "topic 'a' has no subject that is listed"
    assert check(run_llm, 0) == [("empty-topic", "llm-kb.toml", None, what)]


def test_links_that_leave(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "out.md": "x"})
    (tmp_path / "kb/link.md").symlink_to(tmp_path / "out.md")
    what = "the link leads outside the topic"
    assert check(run_llm, 1) == [("skipped", "kb/link.md", None, what)]


def test_shared_slugs_and_names_alike(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/one.toml": "a = 1\n", "kb/ONE.md": "x"})
    found = check(run_llm, 0)
    assert [(rule, file) for rule, file, _, _ in found] == [
        ("ambiguous", "kb/one.md"),
        ("ambiguous", "kb/one.toml"),
        ("unsafe-name", "kb/ONE.md"),
        ("unsafe-name", "kb/one.md"),
    ]


@pytest.mark.parametrize("name", ["learned", "disabled"])
def test_a_pattern_that_is_there_twice(run_llm: RunLlm, tmp_path: Path, name: str) -> None:
    config = f'{CONFIG}{name} = ["two", "on*", "two"]\n'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": config, "kb/two.md": "x\n", "kb/c.md": "x\n"})
    what = f"kb.topic.a.{name}: 'two' is there 2 times"
    assert check(run_llm, 0) == [("repeated", "llm-kb.toml", None, what)]
    section = run_llm(["kb", "prompt", "--preloaded"]).stdout
    assert section.count('<subject "two">') == (name == "learned")


def test_topics_inside_a_topic(run_llm: RunLlm, tmp_path: Path) -> None:
    topics = {"b": "kb/sub", "c": "kb/sub", "d": "kb/other"}
    config = CONFIG + "".join(
        f'[kb.topic.{id_}]\nsubjects = "{place}"\nintroduction = "x"\n'
        for id_, place in topics.items()
    )
    write_files(tmp_path, {**GOOD, "kb/sub/x.md": "x\n", "kb/other/y.md": "y\n"})
    write_files(tmp_path, {"llm-kb.toml": config})
    assert [(rule, what) for rule, _, _, what in check(run_llm, 0)] == [
        ("nested", "all subjects of topic 'b' are in 'a' too"),
        ("nested", "all subjects of topic 'c' are in 'a' too"),
        ("nested", "all subjects of topic 'c' are in 'b' too"),
        ("nested", "all subjects of topic 'd' are in 'a' too"),
    ]
    ignored = config.replace("[kb.topic.b]", 'ignore = ["/sub/", "/other/y.md"]\n[kb.topic.b]')
    write_files(tmp_path, {"llm-kb.toml": ignored})
    assert [what for _, _, _, what in check(run_llm, 0)] == [
        "all subjects of topic 'c' are in 'b' too"
    ]


@pytest.mark.parametrize("outer_first", [True, False])
def test_a_file_of_two_topics_is_reported_once(
    run_llm: RunLlm, tmp_path: Path, outer_first: bool
) -> None:
    places = ["kb", "kb/sub"] if outer_first else ["kb/sub", "kb"]
    config = "".join(
        f'[kb.topic.t{number}]\nsubjects = "{place}"\nintroduction = "x"\n'
        for number, place in enumerate(places)
    )
    write_files(tmp_path, {"llm-kb.toml": config, "kb/one.md": "x\n", "kb/sub/a.rst": "x\n"})
    write_files(tmp_path, {"kb/sub/a.md": 'learn("t0", "nope")\n'})
    for number in range(5):
        (tmp_path / f"kb/sub/{number}.dat").write_bytes(b"\0\xff")
    found = [(rule, file) for rule, file, _, _ in check(run_llm, 1)]
    assert sorted(found) == [
        ("ambiguous", "kb/sub/a.md"),
        ("ambiguous", "kb/sub/a.rst"),
        ("binary", "kb" if outer_first else "kb/sub"),
        ("dangling", "kb/sub/a.md"),
        ("nested", "llm-kb.toml"),
    ]


def test_many_hidden_subjects_of_a_directory_are_one_finding(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    write_files(tmp_path, {**GOOD, "kb/.ci/x/a.yml": "a: 1\n"})
    write_files(tmp_path, {f"kb/.ci/{n}.yml": "a: 1\n" for n in range(4)})
    assert check(run_llm, 0) == [
        ("unmentioned", "kb/.ci", None, "no listed subject mentions 4 subjects, such as 'ci/0'"),
        ("unmentioned", "kb/.ci/x/a.yml", None, "no listed subject mentions 'ci/x/a'"),
    ]


def test_a_broken_configuration(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": "[kb]\nmenuu = 1\nauto = 3\n"})
    found = check(run_llm, 1)
    assert {(rule, file) for rule, file, _, _ in found} == {("configuration", "llm-kb.toml")}
    assert len(found) == 2


def test_hidden_subjects_that_are_pre_loaded_need_no_mention(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    config = f'{CONFIG}learned = ["notes"]\n'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": config, "kb/.notes.md": "See `more`.\n"})
    write_files(tmp_path, {"kb/.more.md": "x\n"})
    assert check(run_llm, 0) == []


def test_pictures_of_a_skill_need_no_mention(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'{CONFIG}layout = "skills"\n'
    skill = "---\nname: draw\ndescription: Draws.\n---\nUse `./fonts`.\n"
    write_files(tmp_path, {"llm-kb.toml": config, "kb/draw/SKILL.md": skill})
    write_files(tmp_path, {"kb/draw/logo.png": b"\0", "kb/draw/fonts/licence.txt": "Free.\n"})
    assert check(run_llm, 0) == []


def test_a_collection_of_skills_as_people_keep_it(run_llm: RunLlm, tmp_path: Path) -> None:
    """A README beside the skills is fine, and so are files that SKILL.md names in its way."""
    skill = "---\nname: pdf\ndescription: Reads PDF.\n---\nFor forms, read FORMS.md.\n"
    write_files(tmp_path, {"llm-kb.toml": f'{CONFIG}layout = "skills"\n', "kb/README.md": "All.\n"})
    write_files(tmp_path, {"kb/pdf/SKILL.md": skill, "kb/pdf/forms.md": "See scripts/fill.py.\n"})
    write_files(tmp_path, {"kb/pdf/scripts/fill.py": "import check\n", "kb/pdf/check.py": "x\n"})
    assert check(run_llm, 0) == []
    write_files(tmp_path, {"kb/pdf/SKILL.md": "Nothing.\n", "kb/xls/skill.md": "x\n"})
    assert check(run_llm, 0) == [
        ("skill", "kb/pdf/SKILL.md", None, "it has no front matter with a name and a description"),
        ("skill", "kb/xls/skill.md", None, "its name must be SKILL.md, in upper case"),
        ("unmentioned", "kb/pdf/forms.md", None, "no listed subject mentions 'pdf/forms'"),
    ]


def test_without_a_configuration(run_llm: RunLlm, tmp_path: Path) -> None:
    what = "there is no llm-kb.toml here or above, and no topic of your own"
    assert check(run_llm, 1) == [("no-configuration", str(tmp_path), None, what)]


def test_a_configuration_without_topics(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": "[kb]\n"})
    assert check(run_llm, 0) == [("no-topics", "llm-kb.toml", None, "no topics are configured")]


def test_rules_can_be_ignored(run_llm: RunLlm, tmp_path: Path) -> None:
    config = f'[kb.check]\nignore = ["binary", "unmentoined"]\n{CONFIG}'
    write_files(tmp_path, {**GOOD, "llm-kb.toml": config, "kb/a": b"\0", "kb/b": b"\0"})
    what = "kb.check.ignore: 'unmentoined' is not a rule; did you mean 'unmentioned'?"
    assert check(run_llm, 1) == [("unmatched", "llm-kb.toml", None, what)]
    summary = "llm-kb: 1 error in 3 subjects; 2 ignored by kb.check.ignore (binary)\n"
    assert run_llm(["kb", "check"]).stderr == summary
    only = run_llm(["kb", "check", "--kb-cfg", "kb.check.ignore=unmatched"])
    assert only.exit_code == 0


def test_what_people_read(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {**GOOD, "kb/two.md": b"\xff", "kb/one.md": 'learn("a", "x")'})
    result = run_llm(["kb", "check"])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "kb/one.md:1: error: no subject of topic 'a' matches 'x' [dangling]",
        f"  why: {Rule.DANGLING.why}",
        f"  fix: {Rule.DANGLING.fix}",
        "kb/two.md: warning: 1 byte not valid in UTF-8, shown as \ufffd [undecodable]",
        f"  why: {Rule.UNDECODABLE.why}",
        f"  fix: {Rule.UNDECODABLE.fix}",
    ]
    assert result.stderr == "llm-kb: 1 error and 1 warning in 2 subjects\n"


def test_long_work_shows_progress_on_a_terminal(tmp_path: Path) -> None:
    write_files(tmp_path, GOOD)
    few, code = run_on_terminal(["kb", "check"])
    assert (few.splitlines()[-1], code) == ("llm-kb: nothing wrong in 1 subject", 0)
    assert "checking" not in few
    write_files(tmp_path, {f"kb/{number}.md": "x\n" for number in range(MANY)})
    many, _ = run_on_terminal(["kb", "check"])
    assert "checking a" in many
    assert many.splitlines()[-1] == f"llm-kb: nothing wrong in {MANY + 1} subjects"
