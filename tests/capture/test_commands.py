"""`llm kb knowledge`: list, add, remove, schema, annotate."""

from __future__ import annotations

import json
import os
from pathlib import Path

import llm
import pytest

from llm_kb.capture.commands.knowledge import MOST_LISTED, NOTHING
from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.capture.tools import LIVE_INPUT
from llm_kb.knowledge_base.api import KnowledgeBase
from tests.conftest import RunLlm
from tests.repositories import KNOWLEDGE_REF, Repo, make_empty_repo, make_repo

KNOWLEDGE = ["kb", "knowledge"]
CONVENTION = [*KNOWLEDGE, "add", "Use x", "src/"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = make_repo(tmp_path / "repo")
    for name in ("src", "m", "s"):
        (made.path / name).mkdir()
    monkeypatch.chdir(made.path)
    return made


def test_a_place_that_does_not_exist_is_reported(repo: Repo, run_llm: RunLlm) -> None:
    result = run_llm([*KNOWLEDGE, "add", "r", "nope/"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "Added convention: conv-1\n",
        "Warning: 'nope/' does not exist at HEAD; give a directory or file that does, or '*' for"
        " everything\n",
    )
    listed = run_llm([*KNOWLEDGE, "list", "--scope", "other/"])
    assert (listed.stdout, listed.stderr) == ("", "No entries for 'other/', of 1 in all.\n")


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        (["Use x"], "*"),
        (["Use x", "src/"], "src/"),
        (["Use x", "src/", "--stability", "permanent"], "src/"),
    ],
)
def test_a_convention_is_added_by_its_rule_alone(
    repo: Repo, run_llm: RunLlm, arguments: list[str], scope: str
) -> None:
    assert run_llm([*KNOWLEDGE, "add", *arguments]).output == "Added convention: conv-1\n"
    (entry,) = repo.note_json()["conventions"]
    assert (entry["scope"], entry["rule"], entry["stability"]) == (scope, "Use x", "permanent")


def test_each_type_is_added(repo: Repo, run_llm: RunLlm) -> None:
    outputs = [
        run_llm([*KNOWLEDGE, "add", *args]).output
        for args in (
            ["r", "src/"],
            ["q", "*", "--stability", "experimental"],
            ["--module", "m/", "--owns", "o", "--boundary", "b"],
            ["--pattern", "p", "--instead", "i"],
        )
    ]
    assert outputs == [
        "Added convention: conv-1\n",
        "Added convention: conv-2\n",
        "Added boundary: bound-1\n",
        "Added anti-pattern: ap-1\n",
    ]
    assert repo.note_json() == {
        "schema": "chronicle/knowledge-v1",
        "conventions": [
            {
                "id": "conv-1",
                "scope": "src/",
                "rule": "r",
                "decided_in": repo.head,
                "stability": "permanent",
            },
            {
                "id": "conv-2",
                "scope": "*",
                "rule": "q",
                "decided_in": repo.head,
                "stability": "experimental",
            },
        ],
        "boundaries": [
            {
                "id": "bound-1",
                "module": "m/",
                "owns": "o",
                "boundary": "b",
                "decided_in": repo.head,
            }
        ],
        "anti_patterns": [
            {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": repo.head},
        ],
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "what is to be added? A RULE, or --module, --owns and --boundary, or --pattern"),
        (["Be", "brief", "now"], "unexpected extra argument (now)"),
    ],
)
def test_arguments_that_make_no_entry_are_usage_errors(
    repo: Repo, run_llm: RunLlm, args: list[str], message: str
) -> None:
    result = run_llm([*KNOWLEDGE, "add", *args])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--owns", "x", "--pattern", "y"],
            "module: required for boundary; boundary: required",
        ),
        (["--instead", "x"], "pattern: required for anti_pattern\n"),
        (["--module", "m", "--owns", " "], "owns: required for boundary; boundary: required for"),
        (["r", "--module", "m/"], "module: is not a field of convention, which takes"),
        (["\u200b", "src/"], "rule: required for convention"),
    ],
)
def test_fields_that_make_no_entry_are_errors(
    repo: Repo, run_llm: RunLlm, args: list[str], message: str
) -> None:
    result = run_llm([*KNOWLEDGE, "add", *args])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_what_already_exists_is_not_added(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*KNOWLEDGE, "add", "use x.", "src/"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Already exists: conv-1 (src/): Use x\n"


def test_near_entries_are_shown(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*KNOWLEDGE, "add", "use x too", "src/"])
    assert result.stdout == "Added convention: conv-2\n"
    assert result.stderr == "Similar: conv-1 (src/): Use x\n"


def test_removing(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    assert run_llm([*KNOWLEDGE, "remove", "conv-1"]).output == "Removed: conv-1 (src/): Use x\n"
    result = run_llm([*KNOWLEDGE, "remove", "conv-1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: no entry is called 'conv-1'; `llm kb knowledge list` shows them all\n"
    )


@pytest.mark.parametrize("args", [[], ["list"]], ids=["by default", "by name"])
def test_listing(repo: Repo, run_llm: RunLlm, args: list[str]) -> None:
    repo.commit("second", src__a_py="")
    run_llm(CONVENTION)
    result = run_llm([*KNOWLEDGE, *args])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"Conventions:\n- Use x — `src/`, permanent (conv-1; decided in {repo.head[:12]})\n"
    )


def test_listing_for_a_file(repo: Repo, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    run_llm(CONVENTION)
    found = []
    for place, file in (
        (".", "src/a.py"),
        (".", "./src/a.py"),
        (".", "docs/a.md"),
        (".", "src/"),
        ("src", "a.py"),
        ("src", "../docs/a.md"),
        ("src", str(repo.path / "src" / "a.py")),
    ):
        monkeypatch.chdir(repo.path / place)
        listed = json.loads(run_llm([*KNOWLEDGE, "list", "--scope", file, "--json"]).stdout)
        found.append(len(listed["conventions"]))
    assert found == [1, 1, 0, 1, 1, 0, 1]


@pytest.fixture
def repo_with_src(repo: Repo) -> Repo:
    """A repository with a directory to type paths in, and a file that looks like a pattern."""
    (repo.path / "src" / "odd*").write_text("")
    return repo


@pytest.mark.parametrize(
    ("place", "typed", "stored"),
    [
        (".", "src/", "src/"),
        (".", "./src", "src"),
        (".", "src/**", "src/"),
        (".", ".", "*"),
        ("src", "x/", "src/x/"),
        ("src", "x.py", "src/x.py"),
        ("src", "../docs", "docs"),
        ("src", ".", "src"),
        ("src", "./", "src/"),
        ("src", "./*", "src/"),
        ("src", "x/**/*", "src/x/"),
        ("src", "..", "*"),
        ("src", "../**", "*"),
        ("src", "*", "*"),
        ("src", "**", "*"),
        ("src", "[id].tsx", "src/[id].tsx"),
        ("src", "odd*", "src/odd*"),
    ],
)
def test_a_place_is_typed_from_here_and_kept_from_the_root(
    repo_with_src: Repo, run_llm: RunLlm, place: str, typed: str, stored: str
) -> None:
    os.chdir(repo_with_src.path / place)
    for args in (
        ["r", typed],
        ["--module", typed, "--owns", "o", "--boundary", "b"],
    ):
        assert run_llm([*KNOWLEDGE, "add", *args]).exit_code == 0
    listed = json.loads(run_llm([*KNOWLEDGE, "list", "--scope", typed, "--json"]).stdout)
    assert [entry["scope"] for entry in listed["conventions"]] == [stored]
    assert [entry["module"] for entry in listed["boundaries"]] == [stored]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("src/*.py", "'src/*.py' is not a path; give one directory such as 'src/' or file, or '*'"),
        ("../else", "'../else' is outside the repository"),
    ],
)
def test_what_is_no_place_here_is_refused(
    repo: Repo, run_llm: RunLlm, typed: str, message: str
) -> None:
    for args in (["add", "r"], ["list", "--scope"]):
        result = run_llm([*KNOWLEDGE, *args, typed])
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_what_a_model_hands_over_is_relative_to_the_root_wherever_it_runs(
    repo_with_src: Repo, run_llm: RunLlm
) -> None:
    os.chdir(repo_with_src.path / "src")
    assert run_llm([*KNOWLEDGE, "annotate"], input=json.dumps(LIVE)).exit_code == 0
    (tool,) = KnowledgeBase.discover().added_tools(["emit_knowledge"])
    assert isinstance(tool, llm.Tool)
    assert tool.implementation is not None
    (repo_with_src.path / "docs").mkdir()
    tool.implementation(entry_type="convention", scope="docs/**", rule="r")
    scopes = [entry["scope"] for entry in repo_with_src.note_json()["conventions"]]
    assert scopes == ["src/", "docs/"]


def test_json_of_a_store_edited_by_hand_is_what_is_kept(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    repo.write_note(repo.note().replace('"rule": "Use x"', '"rule":  "Use \\u0079"'))
    assert run_llm([*KNOWLEDGE, "list", "--json"]).stdout == repo.note() + "\n"


def test_json_moves_no_terminal(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    hostile = "a\x9b2Jb\u202ec\U000e0041"
    repo.write_note(repo.note().replace("Use x", hostile))
    shown = run_llm([*KNOWLEDGE, "list", "--json"]).stdout
    assert "a\\u009b2Jb\\u202ec\\udb40\\udc41" in shown
    assert json.loads(shown) == repo.note_json()


def test_a_list_without_measure_is_cut(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    table = repo.note_json()
    table["conventions"] = [
        {**table["conventions"][0], "id": f"conv-{n}", "rule": f"{n} {'x' * 900}"}
        for n in range(1, 401)
    ]
    repo.write_note(json.dumps(table))
    result = run_llm(["kb", "knowledge", "list"])
    assert len(result.stdout) == MOST_LISTED + 1
    assert result.stderr.startswith("Cut at 200,000 of 3")


def test_nothing_to_list(repo: Repo, run_llm: RunLlm) -> None:
    result = run_llm(KNOWLEDGE)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{NOTHING}\n")


@pytest.mark.parametrize(
    "args",
    [["list"], ["remove", "x"], CONVENTION[2:], ["sync"], ["capture"]],
    ids=lambda args: args[0],
)
def test_outside_a_repository_every_command_says_so(run_llm: RunLlm, args: list[str]) -> None:
    result = run_llm([*KNOWLEDGE, *args])
    assert result.exit_code == 1
    assert "is not inside a git repository" in result.stderr


def test_a_damaged_store_is_reported(repo: Repo, run_llm: RunLlm) -> None:
    repo.write_note("oops")
    for args in (["list"], ["remove", "x"], CONVENTION[2:]):
        result = run_llm([*KNOWLEDGE, *args])
        assert result.exit_code == 1
        assert f"git log -p {KNOWLEDGE_REF}" in result.stderr
    assert repo.note() == "oops"


def test_the_schema_of_an_annotation(run_llm: RunLlm) -> None:
    shown = json.loads(run_llm([*KNOWLEDGE, "schema"]).stdout)
    assert shown.pop("title") == "LiveInput"
    assert shown.pop("$schema").startswith("https://json-schema.org/")
    assert shown == LIVE_INPUT


LIVE = {
    "commit": "HEAD",
    "summary": "Because the other way round it hangs",
    "knowledge": [{"type": "convention", "scope": "src/", "rule": "Use x"}],
}


@pytest.mark.parametrize("from_file", [False, True], ids=["standard input", "file"])
def test_annotating(repo: Repo, run_llm: RunLlm, from_file: bool) -> None:
    repo.commit("src", src__a_py="")
    (repo.path / "live.json").write_text(json.dumps(LIVE))
    args = [*KNOWLEDGE, "annotate", *(["live.json"] if from_file else [])]
    result = run_llm(args, input=None if from_file else json.dumps(LIVE))
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {
        "success": True,
        "commit": repo.head,
        "wisdom_written": 0,
        "knowledge_written": 1,
        "knowledge_duplicates": 0,
        "warnings": [],
    }
    assert repo.note_json(ANNOTATIONS_REF, repo.head)["summary"] == LIVE["summary"]
    assert repo.note_json()["conventions"][0]["decided_in"] == repo.head


@pytest.mark.parametrize(
    ("live", "problem"),
    [
        ("{", "not JSON: "),
        ("\n", "not JSON: "),
        (json.dumps(LIVE | {"summary": 3}), "summary: found the number 3; allowed: a string"),
        (
            json.dumps(LIVE | {"knowledge": [*LIVE["knowledge"], {"type": "boundary"}]}),
            "knowledge[1].module: required for boundary",
        ),
        (json.dumps(LIVE | {"commit": "nothing"}), "no commit is called 'nothing'"),
    ],
    ids=["no JSON", "empty", "summary", "one entry of two", "commit"],
)
def test_an_invalid_annotation_writes_nothing_at_all(
    repo: Repo, run_llm: RunLlm, live: str, problem: str
) -> None:
    result = run_llm([*KNOWLEDGE, "annotate"], input=live)
    assert (result.exit_code, result.stdout) == (1, "")
    assert problem in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""
    assert repo.git("count-objects") == make_untouched(repo)


def make_untouched(repo: Repo) -> str:
    """Return what git counts in a repository of one commit: no object was written."""
    return make_repo(repo.path.parent / "untouched").git("count-objects")


def test_without_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_llm: RunLlm) -> None:
    monkeypatch.chdir(make_empty_repo(tmp_path / "empty").path)
    assert run_llm([*KNOWLEDGE, "list"]).stderr == f"{NOTHING}\n"
    for args, input_ in ((CONVENTION[2:], None), (["annotate"], json.dumps(LIVE))):
        result = run_llm([*KNOWLEDGE, *args], input=input_)
        assert result.exit_code == 1
        assert "has no commit yet" in result.stderr


def test_check_and_new_speak_of_the_store_as_what_it_is(repo: Repo, run_llm: RunLlm) -> None:
    repo.write_note("oops")
    result = run_llm(["kb", "check"])
    assert f"{KNOWLEDGE_REF}: error: the knowledge store under {KNOWLEDGE_REF}" in result.output
    assert "[skipped]" in result.output
    assert "Move or rename it" not in result.output
    result = run_llm(["kb", "show", "repo-knowledge/conventions"])
    assert f"no subjects: {KNOWLEDGE_REF}: the knowledge store" in result.stderr
    result = run_llm(["kb", "new", "repo-knowledge/x"])
    assert result.exit_code == 1
    assert "'llm kb knowledge add' adds an entry" in result.stderr
