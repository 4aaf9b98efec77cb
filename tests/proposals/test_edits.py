"""Exact changes of a text."""

from __future__ import annotations

import pytest

from llm_kb.errors import KbError
from llm_kb.proposals.edits import Edit, apply_edits, find_flaw

PAGE = "# Deploy\n\nRun it.\n\n## Rollback\n\nPress blue.\n\n## After\n\nWait.\n"


def apply(text: str | None, **edit: str) -> str:
    """Return the text of a Markdown file after one edit."""
    return apply_edits("a.md", text, [Edit(reason="r", **edit)])


@pytest.mark.parametrize(
    ("text", "edit", "after"),
    [
        pytest.param(None, {"new": "# New"}, "# New\n", id="new"),
        pytest.param("A b.\n", {"old": "b", "new": "c"}, "A c.\n", id="replaced"),
        pytest.param("A b c.\n", {"old": " b"}, "A c.\n", id="removed"),
        pytest.param("A.\n", {"new": "  B"}, "A.\n\n  B\n", id="added, white space kept"),
        pytest.param("A.", {"new": "B\n"}, "A.\n\nB\n", id="added without a line end"),
        pytest.param(
            PAGE,
            {"new": "Wait.", "part": "rollback"},
            PAGE.replace("blue.\n", "blue.\n\nWait.\n"),
            id="added to a part",
        ),
        pytest.param(
            f"{PAGE}\nRun it.\n",
            {"old": "Run it.", "new": "Go.", "part": "after"},
            f"{PAGE}\nGo.\n",
            id="replaced in a part",
        ),
        pytest.param(
            "A\r\nb\r\nc\r\n", {"old": "A\nb", "new": "x\ny"}, "x\r\ny\r\nc\r\n", id="line ends"
        ),
        pytest.param("\ufeffA\nb\n", {"old": "A\n", "new": "c\n"}, "\ufeffc\nb\n", id="mark"),
    ],
)
def test_what_is_meant_is_changed(text: str | None, edit: dict[str, str], after: str) -> None:
    assert apply(text, **edit) == after


@pytest.mark.parametrize(
    ("text", "edit", "problem"),
    [
        (None, {"old": "a", "new": "b"}, "there is no such subject"),
        (None, {"new": "b", "part": "p"}, "there is no such subject"),
        (None, {"new": " \n"}, "there is no such subject"),
        ("a b a\n", {"old": "a", "new": "c"}, "`old` occurs 2 times in the subject"),
        ("aaa\nb\n", {"old": "aa", "new": "c"}, "`old` occurs"),
        ("a b\n", {"old": "c", "new": "d"}, "`old` does not occur in the subject"),
        ("a b\n", {}, "`new` is missing"),
        (PAGE, {"old": "Wait.", "part": "rollback"}, "does not occur in part '#rollback'"),
        (PAGE, {"new": "## Rollback\n\nx", "part": "rollback"}, "repeats its heading"),
        (PAGE, {"new": "x", "part": "rollbak"}, "no part '#rollbak'; did you mean: rollback"),
    ],
)
def test_what_does_not_fit_is_refused(text: str | None, edit: dict[str, str], problem: str) -> None:
    with pytest.raises(KbError, match=problem.replace("(", r"\(")):
        apply(text, **edit)


def test_edits_follow_each_other() -> None:
    edits = [Edit(reason="1", old="b", new="c"), Edit(reason="2", old="c", new="d")]
    assert apply_edits("a.md", "a b\n", edits) == "a d\n"


@pytest.mark.parametrize(
    "text",
    [
        "a\u200bb", "a\u034fb", "a\u180cb", "a\u200db",
        "a\x1b[2J", "a\u202eb", "a\U000e0041", "a\rb", "a\u3164b", "a\U000e0101",
        "a" + "\ufe01\ufe02", "a\x00b", "h\ufe00a\ufe01", "\ufff0\ufff8",
        " \u200c \u200d", "❤\ufe0f",
    ],
)  # fmt: skip
def test_characters_that_nobody_sees_are_refused(text: str) -> None:
    assert "nobody sees" in find_flaw(text)


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1" * 18, "github_pat_" + "A" * 22, "sk-ant-" + "a" * 20, "sk-proj-" + "b" * 20,
        "AKIA" + "ABCD" * 4, "xoxb-" + "1" * 12, "AIza" + "x" * 35, "sk_live_" + "a" * 24,
        "-----BEGIN OPENSSH PRIVATE " + "KEY-----",
    ],
)  # fmt: skip
def test_keys_known_by_their_beginning_are_refused(token: str) -> None:
    assert "seems to have a key" in find_flaw(f"The key is {token}.")


@pytest.mark.parametrize(
    "text", ["Plain\r\ntext\t", "❤ 👩 می\u200cخواهم", "The prefix is ghp_ or sk-."]
)
def test_usual_texts_have_no_flaw(text: str) -> None:
    assert find_flaw(text) == ""
