"""`llm kb new` and `llm kb edit`: the right file, and no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.files.layouts import place_subject
from llm_kb.subjects.topics import Layout
from tests.conftest import RunLlm
from tests.preloaded import Process
from tests.terminal import run_on_terminal


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    """The directory of the topic `project`, which is not there yet."""
    (tmp_path / "llm-kb.toml").write_text(
        '[kb.topic.project]\nsubjects = "kb"\ndisabled = ["secret"]\nignore = ["*.log.md"]\n'
        '[kb.topic.skills]\nsubjects = "skills"\nlayout = "skills"\n'
    )
    return tmp_path / "kb"


@pytest.mark.parametrize(
    ("slug", "file", "text"),
    [
        ("code-quality", "code-quality.md", "# Code quality\n\n"),
        ("a/b/c", "a/b/c.md", "# C\n\n"),
        (".internal-notes", ".internal-notes.md", "# Internal notes\n\n"),
        (".hidden/x", ".hidden/x.md", "# X\n\n"),
        ("ruff.toml", "ruff.toml", ""),
        ("notes.MD", "notes.MD", "# Notes\n\n"),
        ("v1.2", "v1.2.md", "# V1.2\n\n"),
        ("über uns", "über uns.md", "# Über uns\n\n"),
    ],
)
def test_a_subject_is_written(
    topic: Path, run_llm: RunLlm, slug: str, file: str, text: str
) -> None:
    result = run_llm(["kb", "new", f"project/{slug}"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{topic / file}\n", "")
    assert (topic / file).read_text() == text


def test_a_skill_gets_its_directory(topic: Path, run_llm: RunLlm) -> None:
    path = topic.parent / "skills" / "review" / "SKILL.md"
    assert run_llm(["kb", "new", "skills/review"]).stdout == f"{path}\n"
    assert path.read_text() == (
        "---\nname: review\ndescription: What it is for, and when to use it.\n---\n\n# Review\n\n"
    )


@pytest.mark.parametrize(
    "slug",
    [
        "..",
        "../x",
        "a/../b",
        "a//b",
        "/x",
        "x/",
        ".",
        "...",
        "a/./b",
        "a\\b",
        "a*",
        "a?b",
        "a[b]",
        "C:x",
        "a\nb",
        "a\x1bb",
        " a",
        "a ",
        "a|b",
        ".git/x",
        "a/node_modules/b",
        ".#x",
        "x~/y",
        "a/" * 101 + "b",
    ],
)
def test_an_unsafe_slug_is_refused(topic: Path, run_llm: RunLlm, slug: str) -> None:
    with pytest.raises(KbError):
        place_subject(slug, Layout.FILES)
    result = run_llm(["kb", "new", f"project/{slug}"])
    assert (result.exit_code, result.stderr.startswith("Error: ")) == (1, True)
    assert not topic.exists()


@pytest.mark.parametrize("slug", ["a", "a.md", "a.txt", ".a"])
def test_an_existing_subject_is_never_overwritten(topic: Path, run_llm: RunLlm, slug: str) -> None:
    topic.mkdir()
    (topic / "a.md").write_text("mine")
    (topic / "a.txt").write_text("mine")
    (topic / ".a.md").write_text("mine")
    result = run_llm(["kb", "new", f"project/{slug}"])
    assert result.exit_code == 1
    assert f"exists already; use `llm kb edit project/{slug}`\n" in result.stderr
    assert {path.read_text() for path in topic.iterdir()} == {"mine"}


def test_a_link_does_not_lead_out(topic: Path, tmp_path: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (tmp_path / "outside").mkdir()
    (topic / "out").symlink_to(tmp_path / "outside")
    (topic / "x.md").symlink_to(tmp_path / "outside" / "x.md")
    for slug, reason in (("out/x", "outside the directory"), ("x", "exists already")):
        result = run_llm(["kb", "new", f"project/{slug}"])
        assert (result.exit_code, reason in result.stderr) == (1, True)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_in_the_way_of_a_directory_is_told(topic: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (topic / "a").touch()
    result = run_llm(["kb", "new", "project/a/b"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: cannot write '{topic}/a': Not a directory\n",
    )


@pytest.mark.parametrize("slug", ["secret", "x.log.md"])
def test_a_subject_no_model_will_see_is_told(topic: Path, run_llm: RunLlm, slug: str) -> None:
    result = run_llm(["kb", "new", f"project/{slug}"])
    assert (result.exit_code, result.stderr) == (
        0,
        f"llm-kb: {slug} is ignored or disabled in topic project: no model will see it\n",
    )


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("new", "project", "'project' names no page: llm kb new project/SLUG"),
        ("new", "project/", "'project/' names no page: llm kb new project/SLUG"),
        ("new", "/x", "unknown topic ''; valid topics: project, skills"),
        ("edit", "project", "no subject of topic 'project' matches ''"),
        ("edit", "", "unknown topic ''; valid topics: project, skills"),
    ],
)
def test_what_names_no_subject(
    topic: Path, run_llm: RunLlm, command: str, name: str, said: str
) -> None:
    assert run_llm(["kb", command, name]).stderr.endswith(f"Error: {said}\n")


def test_a_topic_or_a_part_alone_names_its_only_subject(topic: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (topic / "quality.md").write_text("# Quality\n")
    for name in ("project", "project/quality#quality"):
        result = run_llm(["kb", "edit", name, "-y", "--shorter"], input="Text.\n")
        assert (result.exit_code, result.stdout) == (0, f"{topic}/quality.md\n")
    again = run_llm(["kb", "new", "project/quality#quality"])
    assert "exists already; use `llm kb edit 'project/quality#quality'`" in again.stderr


@pytest.mark.parametrize("command", ["new", "edit"])
def test_an_unknown_topic_is_told(topic: Path, run_llm: RunLlm, command: str) -> None:
    result = run_llm(["kb", command, "nope/x"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: unknown topic 'nope'; valid topics: project, skills\n",
    )


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that notes which file it was given, arguments of its own included."""
    noted = tmp_path / "noted"
    script = tmp_path / "my editor"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {noted}\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{script}' --wait")
    monkeypatch.setenv("EDITOR", "false")
    return noted


@pytest.mark.parametrize("slug", ["a", "a.md", "notes", ".notes", ".notes.md", "d$(touch x)"])
def test_edit_opens_the_file_of_a_slug(
    topic: Path, editor: Path, run_llm: RunLlm, slug: str
) -> None:
    topic.mkdir()
    for name in ("a.md", ".notes.md", "d$(touch x).md"):
        (topic / name).touch()
    assert run_llm(["kb", "edit", f"project/{slug}"]).exit_code == 0
    name = slug if slug.endswith(".md") else f"{slug}.md"
    name = ".notes.md" if "notes" in name else name
    assert editor.read_text() == f"--wait\n{topic / name}\n"


def test_new_opens_no_editor_without_a_terminal(topic: Path, editor: Path, run_llm: RunLlm) -> None:
    assert run_llm(["kb", "new", "project/a"]).stderr == ""
    assert not editor.exists()


def test_edit_names_what_is_near(topic: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (topic / "quality.md").touch()
    result = run_llm(["kb", "edit", "project/qualty"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: no subject of topic 'project' matches 'qualty'; did you mean: quality\n",
    )


def test_edit_does_not_choose_between_two(topic: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (topic / "config.md").touch()
    (topic / "config.toml").touch()
    result = run_llm(["kb", "edit", "project/config"])
    assert (result.exit_code, result.stderr) == (
        1,
        (
            "Error: 'project/config' names several subjects: "
            "project/config.md, project/config.toml\n"
        ),
    )


@pytest.mark.parametrize("editor", [None, ""])
def test_without_terminal_and_editor_the_file_is_named(
    topic: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, editor: str | None
) -> None:
    if editor is not None:
        monkeypatch.setenv("EDITOR", editor)
    topic.mkdir()
    (topic / "a.md").touch()
    result = run_llm(["kb", "edit", "project/a"])
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: there is no terminal to edit on; the file is {topic}/a.md\n",
    )


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("false", "'false', failed with status 1\n"),
        ("/no/such", "'/no/such', failed with status 127\n"),
        ("'open", '"\'open", failed with status 2\n'),
    ],
)
def test_an_editor_that_fails_is_told(
    topic: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, value: str, error: str
) -> None:
    topic.mkdir()
    (topic / "a.md").touch()
    monkeypatch.setenv("EDITOR", value)
    result = run_llm(["kb", "edit", "project/a"])
    assert result.exit_code == 1
    assert result.stderr.endswith(f"Error: the editor of $VISUAL or $EDITOR, {error}")


@pytest.mark.parametrize("value", ["~/ed", "A=b ~/ed", "~/ed --wait"])
def test_an_editor_is_what_a_shell_takes(
    topic: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, home: Path, value: str
) -> None:
    topic.mkdir()
    (topic / "a$(b).md").touch()
    (home / "ed").write_text('#!/bin/sh\nfor last; do :; done\necho Text. > "$last"\n')
    (home / "ed").chmod(0o755)
    monkeypatch.setenv("VISUAL", "  ")
    monkeypatch.setenv("EDITOR", value)
    assert run_llm(["kb", "edit", "project/a$(b)"]).exit_code == 0
    assert (topic / "a$(b).md").read_text() == "Text.\n"


def test_new_opens_the_editor_on_a_terminal(topic: Path, editor: Path) -> None:
    shown, code = run_on_terminal(["kb", "new", "project/a"])
    said = "llm-kb: models know it as project/a; next: llm kb check\n"
    assert (shown, code) == (f"{topic}/a.md\n{said}", 0)
    assert editor.read_text() == f"--wait\n{topic}/a.md\n"


def test_a_slug_that_leads_upwards_is_named_so() -> None:
    with pytest.raises(KbError) as caught:
        place_subject("../../x", Layout.FILES)
    assert str(caught.value) == (
        "cannot make a subject '../../x': '..' cannot be the name of a subject"
    )


def test_a_text_that_is_piped_in_is_written(topic: Path, run_llm: RunLlm) -> None:
    result = run_llm(["kb", "new", "project/piped"], input="# Piped\n\nText.\n")
    assert (result.exit_code, result.stdout) == (0, f"{topic}/piped.md\n")
    assert (topic / "piped.md").read_text() == "# Piped\n\nText.\n"
    edited = run_llm(["kb", "edit", "project/piped", "-y"], input="New text, as long.\n")
    assert edited.stdout == f"{topic}/piped.md\n"
    assert (topic / "piped.md").read_text() == "New text, as long.\n"


EDIT = ["kb", "edit", "project/a"]
LONG = "One.\nTwo.\nThree.\n"


@pytest.fixture
def page(topic: Path) -> Path:
    """A subject of three lines."""
    topic.mkdir()
    (topic / "a.md").write_text(LONG)
    return topic / "a.md"


@pytest.mark.parametrize(("typed", "after"), [("y\n", "One.\n2.\nThree.\n"), ("n\n", LONG)])
def test_a_piped_text_is_shown_before_it_replaces_another(
    page: Path, typed: str, after: str
) -> None:
    shown, _ = run_on_terminal(EDIT, typed, piped="One.\n2.\nThree.\n")
    assert shown.startswith(
        f"@@ line 2 @@\n One.\n-Two.\n+2.\n Three.\nReplace the text of {page}? [y/N]: "
    )
    assert page.read_text() == after


def test_without_a_terminal_a_piped_text_replaces_nothing(
    page: Path,
) -> None:
    piped = Process(EDIT, stdin=subprocess.PIPE)
    said = f"Error: nothing was written: there is no terminal to ask on; -y replaces {page}\n"
    assert (piped.communicate("Other.\n" * 9), piped.returncode) == (("", said), 1)
    assert page.read_text() == LONG


@pytest.mark.parametrize("text", ["", " \n\n"])
@pytest.mark.parametrize("options", [[], ["-y"], ["-y", "--shorter"]])
def test_an_empty_text_replaces_nothing(page: Path, text: str, options: list[str]) -> None:
    said = f"Error: the text is empty; {page} stays as it is\n"
    piped = Process([*EDIT, *options], stdin=subprocess.PIPE)
    assert (piped.communicate(text), piped.returncode) == (("", said), 1)
    assert page.read_text() == LONG


def test_a_text_that_loses_more_than_half_is_marked(page: Path, run_llm: RunLlm) -> None:
    shown, _ = run_on_terminal(EDIT, "n\n", piped="One.\n")
    assert "WARNING: more than half is lost: 17 bytes become 5\n" in shown
    refused = run_llm([*EDIT, "-y"], input="One.\n")
    assert (refused.exit_code, page.read_text()) == (1, LONG)
    assert refused.stderr == (
        f"Error: 17 bytes become 5 in {page}: pass --shorter if that is meant\n"
    )
    assert run_llm([*EDIT, "-y", "--shorter"], input="One.\n").exit_code == 0
    assert page.read_text() == "One.\n"


@pytest.mark.parametrize("command", ["new", "edit"])
def test_what_is_not_text_is_not_written(topic: Path, run_llm: RunLlm, command: str) -> None:
    topic.mkdir()
    (topic / "guide.md").write_text("guide")
    name = "guide" if command == "edit" else "tool"
    result = run_llm(["kb", command, f"project/{name}"], input="\x7fELF\0")
    assert (result.exit_code, result.stderr.count("that is not text")) == (1, 1)
    assert [(path.name, path.read_text()) for path in topic.iterdir()] == [("guide.md", "guide")]


def test_a_piped_text_leaves_a_topic_through_no_link(topic: Path, run_llm: RunLlm) -> None:
    topic.mkdir()
    (topic.parent / "outside.md").write_text("x\n")
    (topic / "link.md").symlink_to(topic.parent / "outside.md")
    assert run_llm(["kb", "edit", "project/link"], input="New.\n").exit_code == 1
    assert (topic.parent / "outside.md").read_text() == "x\n"


def test_beside_the_readme_a_better_place_is_named(tmp_path: Path, run_llm: RunLlm) -> None:
    (tmp_path / "README.md").write_text("# R\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n")
    run_llm(["kb", "init"])
    result = run_llm(["kb", "new", "overview/deployment"])
    assert result.stderr == (
        "llm-kb: this is the project's own directory; docs/deployment would be in"
        f" {tmp_path}/docs\n"
    )
    assert run_llm(["kb", "new", "docs/deployment"]).stderr == ""
