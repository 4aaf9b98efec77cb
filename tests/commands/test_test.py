"""`llm kb test`: a project's own questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.commands.test import Question, render_new
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm

QUESTIONS = """
among_four = {}

[[question]]
ask = "how many approvals does a change need?"
answer = "docs/review#approvals"

[[question]]
ask = "which colour has the walrus?"
answer = ["docs/walrus", "docs/review"]

[[question]]
ask = "quarterly mortgage interest"
answer = []

[[question]]
ask = "who feeds the walrus?"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """Two subjects, one of which answers in its second part."""
    write_files(
        tmp_path,
        {
            "llm-kb.toml": '[kb.topic.docs]\nsubjects = "docs"\n',
            "docs/review.md": "# Review\n\n## Approvals\n\nA change needs two approvals.\n",
            "docs/walrus.md": "# Walrus\n\nIts colour is grey.\n",
            "questions.toml": QUESTIONS.format(100),
        },
    )
    return tmp_path


def test_each_question_is_asked_and_counted(run_llm: RunLlm) -> None:
    result = run_llm(["kb", "test"])

    assert result.stdout == (
        "  1  how many approvals does a change need?\n"
        "  1  which colour has the walrus?\n"
        "  -  quarterly mortgage interest\n"
        "  ?  who feeds the walrus?\n"
    )
    assert (result.exit_code, result.stderr) == (
        0,
        "llm-kb: 3 questions, 3 (100 %) found first, 3 (100 %) among four"
        " (demanded: 100 %), 1 without an answer in the file\n",
    )


def test_fewer_than_demanded_is_a_failure_that_says_what_was_found(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    (tmp_path / "docs/review.md").write_text("# Review\n\n## Approvals\n\nTwo.\n")
    (tmp_path / "docs/other.md").write_text("# Other\n\nA change may need many approvals.\n")
    (tmp_path / "docs/walrus.md").write_text("# Walrus\n\nIt swims.\n")
    text = (
        QUESTIONS.format(100)
        .replace('"docs/walrus", ', "")
        .replace("docs/review#approvals", "docs/walrus")
    )
    (tmp_path / "questions.toml").write_text(text)

    result = run_llm(["kb", "test"])

    assert (result.exit_code, result.stdout.splitlines()[:2]) == (
        1,
        [
            "not  how many approvals does a change need?",
            "     answered by docs/walrus; first is docs/other#other",
        ],
    )
    (tmp_path / "questions.toml").write_text(text.replace("100", "10"))
    assert run_llm(["kb", "test"]).exit_code == 0


def test_the_results_as_json(run_llm: RunLlm) -> None:
    report = json.loads(run_llm(["kb", "test", "--json"]).stdout)

    assert {key: report[key] for key in ("questions", "first", "among_four", "enough")} == {
        "questions": 3,
        "first": 3,
        "among_four": 3,
        "enough": True,
    }
    assert report["results"][0]["rank"] == 1
    assert report["results"][0]["found"][0] == "docs/review#review"  # the whole page
    assert report["results"][3]["answer"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no questions; `llm kb test --help` shows how to write one"),
        ("[[question]]\n", "question[0].ask"),
        (
            '[[question]]\nask = "x"\nanswer = 3\n',
            "question[0].answer: found the number 3; allowed: a string",
        ),
        ('[[question]]\nask = "x"\nanswer = "docs/nope"\n', "docs"),
        ('[[question]]\nask = "x"\nanswer = "docs/review#nope"\n', "nope"),
        ('[[question]]\nask = "x"\nanswer = "other/review"\n', "other"),
        ("among_four = 101\n", "allowed: a whole number from 0 to 100"),
        ("hook = 'sh'\n", "unknown key"),
        ("x" * 1_000_001, "is larger than 1,000,000 bytes"),
        ("[[", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_message(
    run_llm: RunLlm, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "questions.toml").write_text(text)

    result = run_llm(["kb", "test"])

    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_all_wrong_answers_are_one_message_with_the_numbers_of_their_questions(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    wrong = '[[question]]\nask = "x"\nanswer = ["docs/review", "docs/nope", "other/review"]\n'
    (tmp_path / "questions.toml").write_text(f"{QUESTIONS.format(100)}\n{wrong}")

    several = run_llm(["kb", "test"])

    path = tmp_path / "questions.toml"
    assert (several.exit_code, several.stdout) == (1, "")
    assert several.stderr == (
        f"Error: {path}: 2 problems\n"
        "  - question[4].answer: no subject of topic 'docs' matches 'nope'\n"
        "  - question[4].answer: unknown topic 'other'; valid topics: docs\n"
    )
    path.write_text('[[question]]\nask = "x"\n' + wrong.replace(', "other/review"', ""))
    assert run_llm(["kb", "test"]).stderr == (
        f"Error: {path}: question[1].answer: no subject of topic 'docs' matches 'nope'\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[question]]\nask = "x"\n' * 1_001, "question: found 1,001; allowed: at most 1,000"),
        (
            f'[[question]]\nask = "x"\nanswer = {["docs/review"] * 101}\n',
            "question[0].answer: found 101 answers; allowed: at most 100",
        ),
    ],
    ids=["questions", "answers"],
)
def test_questions_and_answers_are_limited(
    run_llm: RunLlm, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "questions.toml").write_text(text)
    result = run_llm(["kb", "test"])
    assert (result.exit_code, problem in result.stderr) == (1, True)


def test_without_a_file_it_is_said_how_to_begin(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "questions.toml").unlink()

    result = run_llm(["kb", "test"])

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: '{tmp_path / 'questions.toml'}' has no questions; `llm kb test --help` shows how"
        " to write one, and --from-used adds the searches that found nothing\n"
    )


def test_a_link_out_of_the_workspace_is_not_followed_to_the_secrets_of_another_user(
    run_llm: RunLlm, tmp_path: Path
) -> None:
    """A questions file is data of the workspace: what it leads to is read as such, or refused."""
    secret = tmp_path.parent / "secret"
    secret.write_text("password = hunter2\n")
    (tmp_path / "questions.toml").unlink()
    (tmp_path / "questions.toml").symlink_to(secret)

    result = run_llm(["kb", "test"])

    assert (result.exit_code, "hunter2" in result.output) == (1, False)


def test_codes_for_a_terminal_are_shown_as_codes(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "questions.toml").write_text(
        '[[question]]\nask = "a\\u202eb walrus"\nanswer = []\n'
    )

    assert "a\\u202eb walrus" in run_llm(["kb", "test"]).stdout


def test_searches_that_found_nothing_become_questions_to_be_answered() -> None:
    known = [Question(text="known", answers=())]

    added = render_new(["known", 'what "is"\nit?', 'what "is" it?', ""], known)

    assert added == (
        '\n[[question]]\nask = "what \\"is\\" it?"\n'
        '# answer = "TOPIC/SUBJECT#PART"    # [] if nothing should be found\n'
    )


def test_a_search_with_hidden_characters_is_added_once() -> None:
    added = render_new(["a\u202eb"], [])
    asked = json.loads(added.splitlines()[2].removeprefix("ask = "))
    assert asked == "a\\u202eb"
    assert render_new(["a\u202eb"], [Question(text=asked, answers=())]) == ""


def test_without_a_log_there_are_no_searches_to_add(run_llm: RunLlm, tmp_path: Path) -> None:
    before = (tmp_path / "questions.toml").read_text()

    result = run_llm(["kb", "test", "--from-used"])

    assert (result.exit_code, result.stderr.startswith("Error: the log of llm")) == (1, True)
    assert (tmp_path / "questions.toml").read_text() == before


def test_a_search_of_ones_own_that_found_nothing_becomes_a_question(
    run_llm: RunLlm, tmp_path: Path, user_dir: Path
) -> None:
    before = (tmp_path / "questions.toml").read_text()
    run_llm(["kb", "search", "zeppelin mooring"])
    run_llm(["kb", "search", "approvals"])
    (user_dir / "logs-off").touch()
    run_llm(["kb", "search", "a secret zeppelin"])

    result = run_llm(["kb", "test", "--from-used"])

    assert (result.exit_code, "1 question added" in result.stderr) == (0, True)
    added = (tmp_path / "questions.toml").read_text().removeprefix(before)
    assert added.splitlines()[:3] == ["", "[[question]]", 'ask = "zeppelin mooring"']


def test_without_a_workspace_there_is_nothing_to_test(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "llm-kb.toml").unlink()

    result = run_llm(["kb", "test"])

    assert (result.exit_code, "there is no workspace here" in result.stderr) == (1, True)
