"""`llm kb add`, `remove`, `learned` and `disable`: edits of the right file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunLlm
from tests.terminal import run_on_terminal

WRITTEN = """\
# The project
[kb.topic.project]
subjects = "kb/project"  # where
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The workspace's file, with a topic whose directory is there."""
    (tmp_path / "kb" / "project").mkdir(parents=True)
    path = tmp_path / "llm-kb.toml"
    path.write_text(WRITTEN)
    return path


def test_a_topic_is_added(file: Path, run_llm: RunLlm) -> None:
    args = ["kb", "add", "skills", ".claude/skills", "--title", 'A "B"']
    result = run_llm([*args, "--introduction", "Two\nlines."])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        (
            f"Added topic skills to {file}\n"
            f"{file.parent}/.claude/skills does not exist yet; "
            "'llm kb new skills/SLUG' creates it\n"
        ),
    )
    assert file.read_text() == (
        f"{WRITTEN}\n"
        "[kb.topic.skills]\n"
        'title = "A \\"B\\""\n'
        'introduction = "Two\\nlines."\n'
        'subjects = ".claude/skills"\n'
    )


def test_a_directory_is_named_from_the_workspace(
    file: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent / "kb")
    (file.parent / "kb" / "style").mkdir()
    (file.parent / "kb" / "style" / "a.md").write_text("12345678")
    said = f"Added topic style to {file}\nIt has 1 subject, ~2 tokens\n"
    assert run_llm(["kb", "add", "style", "style"]).stderr == said
    assert file.read_text() == f'{WRITTEN}\n[kb.topic.style]\nsubjects = "kb/style"\n'


def test_a_directory_of_skills_is_recognised(file: Path, run_llm: RunLlm) -> None:
    skill = file.parent / "skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# PDF\n")
    (skill.parent / "forms.md").write_text("# Forms\n")
    assert run_llm(["kb", "add", "skills", "skills"]).stderr == (
        f"Added topic skills to {file}\nIt has 1 subject, ~2 tokens\n"
    )
    assert 'layout = "skills"\n' in file.read_text()


def test_files_with_passwords_are_no_subjects(file: Path, run_llm: RunLlm) -> None:
    for name in (".env", ".netrc", ".npmrc", ".notes.md", "a.md"):
        (file.parent / "kb/project" / name).write_text("machine login password")
    shown = run_llm(["kb", "list", "project", "--all", "--json"]).stdout
    assert [each["slug"] for each in json.loads(shown)] == ["a", "notes"]
    result = run_llm(["kb", "show", "project/.env"])
    assert result.stderr == "Error: no subject of topic 'project' matches '.env'\n"


def test_a_topic_of_the_user_may_be_anywhere(
    file: Path, user_dir: Path, tmp_path: Path, run_llm: RunLlm
) -> None:
    (tmp_path / "notes").mkdir()
    assert run_llm(["kb", "add", "notes", "notes", "--user"]).stderr == (
        f"Added topic notes to {user_dir}/kb.toml\nIt has 0 subjects, ~0 tokens\n"
    )
    assert (user_dir / "kb.toml").read_text() == (
        f'[kb.topic.notes]\nsubjects = "{tmp_path}/notes"\n'
    )
    assert file.read_text() == WRITTEN


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        pytest.param(
            ["project", "kb"],
            1,
            "Error: topic 'project' exists already;"
            " 'llm kb new project/SLUG' writes a subject of it\n",
            id="exists",
        ),
        pytest.param(
            ["a b", "kb"],
            1,
            "Error: {file}, left as it is: kb.topic: found the topic id 'a b'; allowed: up to "
            "100 letters, digits, '.', '_' and '-', starting with a letter or a digit\n",
            id="bad id",
        ),
        pytest.param(
            ["x", "../outside"],
            1,
            "Error: {file}, left as it is: kb.topic.x.subjects: found '../outside'; allowed: a"
            " relative path inside the workspace, without '~' or '..' (other directories belong in"
            " the user layer's kb.toml: 'llm kb add --user')\n",
            id="outside",
        ),
        pytest.param(
            ["x", "llm-kb.toml"],
            2,
            "Error: Invalid value for 'DIRECTORY': Directory 'llm-kb.toml' is a file.\n",
            id="a file",
        ),
        pytest.param(
            ["x", "kb", "--title", "a\x1b[2J"],
            1,
            "Error: {file}, left as it is: kb.topic.x.title: found 'a\\x1b[2J'; "
            "allowed: a string without control characters\n",
            id="control characters",
        ),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    file: Path, run_llm: RunLlm, args: list[str], code: int, error: str
) -> None:
    result = run_llm(["kb", "add", *args])
    assert result.exit_code == code
    assert result.stderr.endswith(error.format(file=file))
    assert file.read_text() == WRITTEN


def test_a_broken_file_is_named_before_a_directory_is_counted(file: Path, run_llm: RunLlm) -> None:
    file.write_text("a b c")
    result = run_llm(["kb", "add", "x", "kb"])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {file} is not valid TOML: line 1, column 3: ")


def test_without_a_workspace_add_says_what_to_do(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "add", "x", "y"])
    assert (result.exit_code, result.stderr) == (
        1,
        (
            "Error: there is no llm-kb.toml here or above; run 'llm kb init' first, "
            "or use --user for a topic of your own\n"
        ),
    )


def test_a_topic_is_removed_and_its_files_stay(file: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "remove", "project", "-y"])
    assert (result.exit_code, result.stderr) == (
        0,
        f"Removed topic project from {file}; its files are where they were\n",
    )
    assert file.read_text() == "# The project\n"
    assert (file.parent / "kb" / "project").is_dir()


def test_removing_asks_on_a_terminal_only(file: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "remove", "project"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: there is no terminal to ask on: "
        f"Remove topic project from {file}? Pass -y to say yes\n",
    )
    shown, code = run_on_terminal(["kb", "remove", "project"], "n\n")
    assert (f"Remove topic project from {file}? [y/N]:" in shown, code) == (True, 1)
    assert file.read_text() == WRITTEN
    shown, code = run_on_terminal(["kb", "remove", "project"], "y\n")
    assert code == 0
    assert file.read_text() == "# The project\n"


def test_an_unknown_topic_is_told_with_those_there_are(
    file: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    for args in (["remove", "nope", "-y"], ["preload", "nope/x"], ["disable", "nope/x"]):
        result = run_llm(["kb", *args])
        assert (result.exit_code, result.stderr) == (
            1,
            "Error: unknown topic 'nope'; valid topics: notes, project\n",
        )


SENT = "sent with every prompt that uses -T learn or -k"


@pytest.mark.parametrize(
    ("command", "name", "effect"),
    [("preload", "learned", SENT), ("disable", "disabled", "kept from every model")],
)
def test_patterns_are_added_and_taken_out(
    file: Path, run_llm: RunLlm, command: str, name: str, effect: str
) -> None:
    (file.parent / "kb/project/a").mkdir()
    (file.parent / "kb/project/a/x.md").touch()
    (file.parent / "kb/project/.b.md").touch()
    result = run_llm(["kb", command, "project/a/*", "project/b", "project/b"])
    assert (result.exit_code, result.stderr) == (
        0,
        f"a/*, b are now {effect} ({file})\n",
    )
    again = run_llm(["kb", command, "project/b"])
    assert again.stderr == f"a/*, b are already {effect} ({file})\n"
    assert file.read_text() == f'{WRITTEN}{name} = ["a/*", "b"]\n'
    assert run_llm(["kb", command, "project/a/*", "--undo"]).exit_code == 0
    assert file.read_text() == f'{WRITTEN}{name} = ["b"]\n'
    result = run_llm(["kb", command, "project/zz", "--undo"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: 'zz' is not in kb.topic.project.{name}; it holds: b\n",
    )
    result = run_llm(["kb", command, "project/b", "--undo"])
    assert result.stderr == f"nothing of project is now {effect} ({file})\n"
    assert file.read_text() == f"{WRITTEN}{name} = []\n"


def test_several_topics_are_all_there_before_any_is_changed(file: Path, run_llm: RunLlm) -> None:
    (file.parent / "kb/project/b.md").touch()
    result = run_llm(["kb", "preload", "project/b", "nope/x"])
    assert (result.exit_code, result.stderr, file.read_text()) == (
        1,
        "Error: unknown topic 'nope'; valid topics: project\n",
        WRITTEN,
    )


def test_a_part_is_pre_loaded_and_not_disabled(file: Path, run_llm: RunLlm) -> None:
    (file.parent / "kb/project/b.md").write_text("# B\n")
    assert run_llm(["kb", "preload", "project/b#b"]).exit_code == 0
    assert file.read_text() == f'{WRITTEN}learned = ["b#b"]\n'
    assert run_llm(["kb", "disable", "project/b#b"]).stderr == (
        "Error: a part cannot be disabled alone; its subject can: llm kb disable project/b\n"
    )


@pytest.mark.parametrize("command", ["preload", "disable"])
def test_a_mistyped_name_is_not_written_and_a_glob_for_later_is(
    file: Path, run_llm: RunLlm, command: str
) -> None:
    for name in ("review.md", "style.md"):
        (file.parent / "kb/project" / name).touch()
    result = run_llm(["kb", command, "project/style", "project/revew"])
    assert (result.exit_code, result.stderr, file.read_text()) == (
        1,
        "Error: no subject of topic 'project' matches 'revew'; did you mean: review\n",
        WRITTEN,
    )
    said = run_llm(["kb", command, "project/style", "project/zz/*"]).stderr.splitlines()
    reason = "no subject of topic 'project' matches 'zz/*'"
    assert said[:-1] == [f"llm-kb: warning: nothing to match yet: {reason}"]
    said = run_llm(["kb", command, "project/style"]).stderr.splitlines()
    assert said[1:] == []  # disabled already, it is there all the same
    said = run_llm(["kb", command, "project/zz/*", "--undo"]).stderr.splitlines()
    assert said[1:] == []


def test_a_bad_pattern_changes_nothing(file: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "preload", "project/../x"])
    assert (result.exit_code, result.stderr.startswith("Error: invalid pattern '../x': ")) == (
        1,
        True,
    )
    assert file.read_text() == WRITTEN


def test_a_topic_of_the_user_is_edited_where_it_is(
    file: Path, user_dir: Path, home: Path, run_llm: RunLlm
) -> None:
    (home / "notes").mkdir()
    (home / "notes/todo.md").touch()
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    run_llm(["kb", "preload", "notes/todo"])
    assert (user_dir / "kb.toml").read_text() == (
        '[kb.topic.notes]\nsubjects = "~/notes"\nlearned = ["todo"]\n'
    )
    assert file.read_text() == WRITTEN


def test_what_is_pre_loaded_reaches_the_section(file: Path, run_llm: RunLlm) -> None:
    (file.parent / "kb" / "project" / "style.md").write_text("Be brief.\n")
    run_llm(["kb", "preload", "project/style"])
    assert '<subject "style">\nBe brief.\n</subject>' in run_llm(["kb", "prompt"]).stdout


def test_a_topic_we_bring_is_tuned_in_the_nearest_file(file: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "preload", "repo-knowledge/conventions"])
    assert (result.exit_code, result.stderr) == (
        0,
        f"conventions is now {SENT} ({file})\n",
    )
    shown = run_llm(["kb", "config"]).stdout
    line = 'learned = ["conventions"]'
    table = f"[kb.topic.repo-knowledge]\n{line:<40}  # workspace\n"
    assert table in shown


def test_references_are_tuned_in_the_users_file(
    file: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    assert run_llm(["kb", "preload", "topic-x/README"]).exit_code == 0
    assert (user_dir / "kb.toml").read_text() == '[kb.topic.topic-x]\nlearned = ["README"]\n'
    assert file.read_text() == WRITTEN


def test_an_edit_after_which_the_layers_do_not_fit_is_told(
    file: Path, user_dir: Path, run_llm: RunLlm
) -> None:
    user = user_dir / "kb.toml"
    user.write_text('[kb.topic.project]\nlearned = ["x"]\n')
    result = run_llm(["kb", "remove", "project", "-y"])
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        0,
        f"llm-kb: the configuration as a whole is not valid now: {user}: kb.topic.project.subjects:"
        " missing; topic 'project' needs the directory of its subjects",
    )


@pytest.mark.parametrize("topic", ["llm-kb", "topic-x"])
def test_nothing_is_disabled_of_what_is_in_no_directory(
    file: Path, user_dir: Path, run_llm: RunLlm, topic: str
) -> None:
    result = run_llm(["kb", "disable", f"{topic}/README"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: the subjects of topic {topic!r} are not in a directory of yours; 'enable = false'"
        " leaves all of it out\n",
    )
    assert (file.read_text(), (user_dir / "kb.toml").exists()) == (WRITTEN, False)


def test_a_name_with_brackets_disables_only_its_subject(file: Path, run_llm: RunLlm) -> None:
    directory = file.parent / "pages"
    directory.mkdir()
    for name in ("[b]", "b", "c"):
        (directory / f"{name}.md").write_text("x\n")
    file.write_text('[kb.topic.pages]\nsubjects = "pages"\n')
    assert run_llm(["kb", "disable", "pages/[b]"]).stderr.startswith("[[]b] is now kept from")
    listed = run_llm(["kb", "list", "pages"]).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["b", "c"]
    run_llm(["kb", "disable", "pages/[b]", "--undo"])
    assert file.read_text().endswith("disabled = []\n")


def test_edits_can_fix_layers_that_do_not_fit(file: Path, run_llm: RunLlm) -> None:
    file.write_text(f'{WRITTEN}[kb.topic.repo-knowledge]\ndisabled = ["a", "b"]\n')
    result = run_llm(["kb", "disable", "repo-knowledge/a", "--undo"])
    assert (result.exit_code, "not valid now" in result.stderr) == (0, True)
    result = run_llm(["kb", "disable", "repo-knowledge/b", "--undo"])
    assert (result.exit_code, "not valid" in result.stderr) == (0, False)
    assert run_llm(["kb", "config"]).exit_code == 0


def test_a_topic_inside_another_one_is_left_out_of_it(tmp_path: Path, run_llm: RunLlm) -> None:
    config = tmp_path / "llm-kb.toml"
    config.write_text(
        '[kb.topic.docs]\nsubjects = "docs"\n[kb.topic.b]\nsubjects = "."\nignore = ["/docs/"]\n'
    )
    (tmp_path / "docs/guides [1]").mkdir(parents=True)
    (tmp_path / "docs/guides [1]/a.md").write_text("# A\n")
    shown = run_llm(["kb", "add", "guides", "docs/guides [1]"]).stderr
    assert "Topic docs leaves it out from now on (ignore: /guides [[]1]/)\n" in shown
    assert shown.endswith("It has 1 subject, ~1 tokens\n")
    rules = [line for line in config.read_text().splitlines() if line.startswith("ignore")]
    assert rules == ['ignore = ["/guides [[]1]/"]', 'ignore = ["/docs/"]']
    assert "nested" not in run_llm(["kb", "check"]).stdout


def test_a_topic_that_another_layer_has_off_is_added(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").write_text("[kb.topic.notes]\nenable = false\n")
    (tmp_path / "kb").mkdir()
    result = run_llm(["kb", "add", "notes", "kb", "--user"])
    assert result.exit_code == 0
    assert result.stderr.endswith("another layer has it off; 'llm kb config' shows which\n")


def test_a_topic_around_another_one_is_named_at_once(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.guides]\nsubjects = "docs/guides"\n')
    (tmp_path / "docs/guides").mkdir(parents=True)
    (tmp_path / "docs/guides/a.md").write_text("# A\n")
    shown = run_llm(["kb", "add", "docs", "docs"]).stderr
    assert shown.endswith(
        "1 subject of guides and docs is found twice: remove a topic ('llm kb remove'), or use"
        " `ignore` in the configuration\n"
    )
    shown = run_llm(["kb", "disable", "guides/a"]).stderr
    assert shown.endswith(
        "llm-kb: warning: docs still has guides/a: llm kb disable docs/guides/a\n"
    )
    assert "docs still" not in run_llm(["kb", "disable", "docs/guides/a"]).stderr


def test_a_topic_takes_what_it_includes_and_a_higher_layer_replaces_that(
    file: Path, run_llm: RunLlm
) -> None:
    for name in ("book/a.asc", "book/b.asc", "book/drafts/c.asc", "book/d.png", "book/e.rst"):
        (file.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (file.parent / name).write_text("= A chapter\n")
    args = ["kb", "add", "book", "book", "--include", "*.asc", "--ignore", "drafts/"]
    assert run_llm(args).stderr.endswith("It has 2 subjects, ~6 tokens\n")
    assert file.read_text().endswith('include = ["*.asc"]\nignore = ["drafts/"]\n')

    def list_slugs(value: str) -> list[str]:
        listed = run_llm(["kb", "list", "book", "--json", "--kb-cfg", f"kb.topic.book.{value}"])
        return [row["slug"] for row in json.loads(listed.stdout)]

    assert list_slugs('include=["*.rst"]') == ["e"]
    assert list_slugs('include+=["*.rst"]') == ["a", "b", "e"]
    fragment = file.parent / "only.toml"
    fragment.write_text('[kb.topic.book]\ninclude = ["a.*"]\n')
    listed = run_llm(["kb", "list", "book", "--json", "--kb-cfg", str(fragment)]).stdout
    assert [row["slug"] for row in json.loads(listed)] == ["a"]
