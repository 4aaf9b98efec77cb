"""`llm kb knowledge`: list, add, remove, schema, annotate."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.commands.knowledge.group import MOST_LISTED
from llm_kb.host.capture_tools import SCHEMAS, make_emit_tool
from tests.capture.repositories import KNOWLEDGE_REF, Repo, make_empty_repo, make_repo
from tests.conftest import RunLlm

KNOWLEDGE = ["kb", "knowledge"]
CONVENTION = [*KNOWLEDGE, "add", "--type", "convention", "--scope", "src/", "--rule", "Use x"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = make_repo(tmp_path / "repo")
    for name in ("src", "m", "s"):
        (made.path / name).mkdir()
    monkeypatch.chdir(made.path)
    return made


def test_a_place_that_does_not_exist_is_reported(repo: Repo, run_llm: RunLlm) -> None:
    result = run_llm([*KNOWLEDGE, "add", "--scope", "nope/", "--rule", "r"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "Added convention: conv-1\n",
        "Warning: 'nope/' is neither in the current commit nor in the work tree\n",
    )
    listed = run_llm([*KNOWLEDGE, "list", "--scope", "other/"])
    assert (listed.stdout, listed.stderr) == ("", "No entries for 'other/', of 1 in all.\n")


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        (["Use x"], "*"),
        (["Use x", "src/"], "src/"),
        (["Use x", "--scope", "src/"], "src/"),
        (["Use x", "src/", "--stability", "permanent"], "src/"),
    ],
)
def test_a_convention_is_added_by_its_rule_alone(
    repo: Repo, run_llm: RunLlm, arguments: list[str], scope: str
) -> None:
    assert run_llm([*KNOWLEDGE, "add", *arguments]).output == "Added convention: conv-1\n"
    (entry,) = repo.note_json()["conventions"]
    assert (entry["scope"], entry["rule"], entry["stability"]) == (scope, "Use x", "permanent")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r", "--rule", "q"], "RULE and PATH stand for --rule and --scope; give either"),
        (["r", "src/", "--scope", "m/"], "RULE and PATH stand for --rule and --scope; give either"),
        (["r", "--module", "m/"], "RULE makes a convention; leave it out with --module"),
        (["r", "--type", "boundary"], "RULE makes a convention; leave it out with --type boundary"),
        (["", "src/"], "RULE is empty"),
    ],
)
def test_a_rule_that_is_given_twice_or_with_another_type_is_refused(
    repo: Repo, run_llm: RunLlm, arguments: list[str], message: str
) -> None:
    refused = run_llm([*KNOWLEDGE, "add", *arguments])
    assert (refused.exit_code, message in refused.stderr) == (2, True)


def test_each_type_is_added_with_its_options(repo: Repo, run_llm: RunLlm) -> None:
    outputs = [
        run_llm([*KNOWLEDGE, "add", *args]).output
        for args in (
            ["--type", "convention", "--scope", "src/", "--rule", "r", "--decided-in", "HEAD"],
            ["--type", "convention", "--scope", "*", "--rule", "q", "--stability", "experimental"],
            ["--type", "boundary", "--module", "m/", "--owns", "o", "--boundary", "b"],
            ["--type", "anti-pattern", "--pattern", "p", "--instead", "i", "--learned-from", "X-1"],
            ["--type", "anti-pattern", "--pattern", "q", "--instead", "i", "--id", "no-q"],
        )
    ]
    assert outputs == [
        "Added convention: conv-1\n",
        "Added convention: conv-2\n",
        "Added boundary: bound-1\n",
        "Added anti-pattern: ap-1\n",
        "Added anti-pattern: no-q\n",
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
            {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": "X-1"},
            {"id": "no-q", "pattern": "q", "instead": "i", "learned_from": repo.head},
        ],
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--type", "rule"], "'rule' is not one of 'convention', 'boundary', 'anti-pattern'"),
        ([], "what kind of entry is it? convention with --scope, --rule; boundary with --module"),
        (
            ["--owns", "x", "--pattern", "y"],
            "--owns belongs to a boundary and --pattern to an anti-pattern: give one kind\n",
        ),
        (["--instead", "x"], "an anti-pattern needs --pattern\n"),
        (["--type", "boundary", "--owns", " "], "a boundary needs --module, --owns, --boundary"),
        (
            ["--type", "convention", "Be", "brief", "now"],
            "unexpected extra argument (now)",
        ),
        (
            ["--rule", "x"],
            "a convention needs --scope\n",
        ),
        (
            [
                "--type",
                "boundary",
                "--module",
                "m",
                "--owns",
                "o",
                "--boundary",
                "b",
                "--rule",
                "r",
            ],
            "--rule: belongs to convention, not to boundary",
        ),
        (
            ["--type", "anti-pattern", "--pattern", "p", "--instead", "i", "--decided-in", "x"],
            "--decided-in: an entry of this type takes --learned-from",
        ),
        (
            ["--type", "convention", "--scope", "s", "--rule", "r", "--learned-from", "x"],
            "--learned-from: an entry of this type takes --decided-in",
        ),
        (["--type", "convention", "--scope", "s", "--rule", "r", "--id", "a b"], "a single word"),
    ],
)
def test_arguments_that_make_no_entry_are_usage_errors(
    repo: Repo, run_llm: RunLlm, args: list[str], message: str
) -> None:
    result = run_llm([*KNOWLEDGE, "add", *args])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_what_already_exists_is_not_added(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*CONVENTION[:-1], "use x."])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Already exists: conv-1 (src/): Use x\n"


def test_near_entries_are_shown(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*CONVENTION[:-1], "use x too"])
    assert result.stdout == "Added convention: conv-2\n"
    assert result.stderr == "Similar: conv-1 (src/): Use x\n"


def test_a_taken_id_is_an_error(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*CONVENTION[:-1], "other", "--id", "conv-1"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: the id 'conv-1' belongs to another entry")


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
    run_llm([*CONVENTION, "--decided-in", "HEAD"])
    result = run_llm([*KNOWLEDGE, *args])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "Conventions:\n"
        "  conv-1  src/ (permanent)\n"
        "    Use x\n"
        f"    decided in {repo.head[:12]}, just now\n"
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
        ["--type", "convention", "--scope", typed, "--rule", "r"],
        ["--type", "boundary", "--module", typed, "--owns", "o", "--boundary", "b"],
    ):
        assert run_llm([*KNOWLEDGE, "add", *args]).exit_code == 0
    listed = json.loads(run_llm([*KNOWLEDGE, "list", "--scope", typed, "--json"]).stdout)
    assert [entry["scope"] for entry in listed["conventions"]] == [stored]
    assert [entry["module"] for entry in listed["boundaries"]] == [stored]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("src/*.py", "'src/*.py' is a pattern; give a directory such as 'src/', a file, or '*'"),
        ("../else", "'../else' is outside the repository"),
    ],
)
def test_what_is_no_place_here_is_refused(
    repo: Repo, run_llm: RunLlm, typed: str, message: str
) -> None:
    for args in (["add", *CONVENTION[3:5], "--rule", "r"], ["list"]):
        result = run_llm([*KNOWLEDGE, *args, "--scope", typed])
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_what_a_model_hands_over_is_relative_to_the_root_wherever_it_runs(
    repo_with_src: Repo, run_llm: RunLlm
) -> None:
    os.chdir(repo_with_src.path / "src")
    assert run_llm([*KNOWLEDGE, "annotate"], input=json.dumps(LIVE)).exit_code == 0
    tool = make_emit_tool()
    assert tool.implementation is not None
    (repo_with_src.path / "docs").mkdir()
    tool.implementation(entry_type="convention", scope="docs/**", rule="r")
    scopes = [entry["scope"] for entry in repo_with_src.note_json()["conventions"]]
    assert scopes == ["src/", "docs/"]


def test_json_is_the_store_to_the_byte(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    result = run_llm([*KNOWLEDGE, "list", "--json"])
    assert result.stdout == repo.note() + "\n"


def test_json_of_a_store_edited_by_hand_is_what_is_kept(repo: Repo, run_llm: RunLlm) -> None:
    run_llm(CONVENTION)
    repo.write_note(repo.note().replace('"rule": "Use x"', '"rule":  "Use \\u0079"'))
    assert run_llm([*KNOWLEDGE, "list", "--json"]).stdout == repo.note() + "\n"


def test_json_moves_no_terminal(repo: Repo, run_llm: RunLlm) -> None:
    run_llm([*CONVENTION[:-1], "Use x"])
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
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No entries.\n")


@pytest.mark.parametrize(
    "args",
    [["list"], ["remove", "x"], CONVENTION[2:], ["pull"], ["push"], ["capture"]],
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
        assert f"git show {KNOWLEDGE_REF}:" in result.stderr
    assert repo.note() == "oops"


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_schemas(run_llm: RunLlm, name: str) -> None:
    assert json.loads(run_llm([*KNOWLEDGE, "schema", name]).stdout) == SCHEMAS[name]
    assert json.loads(run_llm([*KNOWLEDGE, "schema"]).stdout) == SCHEMAS["knowledge"]


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
        ("\n", "Error: standard input is empty\n"),
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
    assert run_llm([*KNOWLEDGE, "list"]).stderr == "No entries.\n"
    for args, input_ in ((CONVENTION[2:], None), (["annotate"], json.dumps(LIVE))):
        result = run_llm([*KNOWLEDGE, *args], input=input_)
        assert result.exit_code == 1
        assert "has no commit yet" in result.stderr


def test_check_and_new_speak_of_the_store_as_what_it_is(repo: Repo, run_llm: RunLlm) -> None:
    repo.write_note("oops")
    result = run_llm(["kb", "check"])
    assert f"{KNOWLEDGE_REF}: error: the knowledge store under {KNOWLEDGE_REF}" in result.output
    assert "[damaged-store]" in result.output
    assert "Move or rename it" not in result.output
    result = run_llm(["kb", "show", "repo-knowledge/conventions"])
    assert f"no subjects: {KNOWLEDGE_REF}: the knowledge store" in result.stderr
    result = run_llm(["kb", "new", "repo-knowledge/x"])
    assert result.exit_code == 1
    assert "`llm kb knowledge add` adds an entry" in result.stderr
