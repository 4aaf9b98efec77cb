"""`llm kb connect`: the rule and the skill that tell coding agents about the knowledge base.

The entries of MCP clients are in `tests/host/mcp/test_clients.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # the host's, without stubs

from llm_kb.upkeep.agent_files import MARKS
from tests.conftest import RunLlm
from tests.golden_files import Golden

CONFIG = """\
[kb.topic.project]
title = "Working here"
introduction = "How we work."
subjects = "kb"
"""
SKILL = ".agents/skills/project-knowledge/SKILL.md"
COPY = ".claude/skills/project-knowledge/SKILL.md"
WRITE = ["kb", "connect", "agents", "-y"]
CHECK = ["kb", "connect", "agents", "--check"]
UNDO = ["kb", "connect", "agents", "--undo", "-y"]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a topic, in the current directory, and no script on PATH."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "review.md").write_text("Two people read each change.\n")
    (tmp_path / "llm-kb.toml").write_text(CONFIG)
    monkeypatch.setenv("PATH", os.defpath)
    return tmp_path


def read_tree(root: Path) -> dict[str, str]:
    """Return the text of every file, by its path."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in files}


def test_rule_and_skill_are_shown_and_written(
    workspace: Path, run_llm: RunLlm, golden: Golden
) -> None:
    result = run_llm(WRITE)
    assert result.exit_code == 0, result.output
    golden("agents_block.md", (workspace / "AGENTS.md").read_text())
    golden("agents_skill.md", (workspace / SKILL).read_text())
    assert (workspace / COPY).read_text() == (workspace / SKILL).read_text()
    for written in ((workspace / "AGENTS.md").read_text(), (workspace / SKILL).read_text()):
        assert result.stdout.count("".join(f"+{line}\n" for line in written.splitlines())) == 1


def test_nothing_is_written_without_a_yes(workspace: Path, run_llm: RunLlm) -> None:
    before = read_tree(workspace)
    result = run_llm(["kb", "connect", "agents"])
    assert (result.exit_code, read_tree(workspace)) == (1, before)
    assert "Pass -y to say yes" in result.stderr


def test_second_run_changes_nothing(workspace: Path, run_llm: RunLlm) -> None:
    run_llm(WRITE)
    before = read_tree(workspace)
    for command in (WRITE, CHECK):
        result = run_llm(command)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "Everything is up to date.\n"
    assert read_tree(workspace) == before


def test_files_with_other_line_ends_are_up_to_date(workspace: Path, run_llm: RunLlm) -> None:
    """As git checks them out where it converts line ends."""
    (workspace / "AGENTS.md").write_bytes(b"# Rules\r\n")
    run_llm(WRITE)
    lines = (workspace / "AGENTS.md").read_bytes().split(b"\n")
    assert all(line.endswith(b"\r") for line in lines[:-1])
    for path in (path for path in workspace.rglob("*.md") if "agents" in str(path).lower()):
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert run_llm(CHECK).stderr == "Everything is up to date.\n"


def test_files_of_a_machine_with_the_script_are_up_to_date(
    workspace: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch, own_directory: Path
) -> None:
    (own_directory / "llm-kb").touch(0o755)
    with monkeypatch.context() as context:
        context.setenv("PATH", str(own_directory))
        run_llm(WRITE)
    assert "`llm-kb search" in (workspace / SKILL).read_text()
    assert run_llm(CHECK).exit_code == 0


def test_check_reports_what_differs(workspace: Path, run_llm: RunLlm) -> None:
    result = run_llm(CHECK)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: not up to date: AGENTS.md, {SKILL}, {COPY}\nllm kb connect agents\n"
    )
    run_llm(WRITE)
    (workspace / "llm-kb.toml").write_text(CONFIG.replace("How we work.", "What we decided."))
    result = run_llm(CHECK)
    assert result.stderr == f"Error: not up to date: {SKILL}, {COPY}\nllm kb connect agents\n"
    run_llm(WRITE)
    assert "What we decided" in (workspace / COPY).read_text()


ALL = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"]
IMPORT = "@AGENTS.md\n"


@pytest.mark.parametrize(
    ("client", "existing", "marked"),
    [
        ("claude", {}, ["AGENTS.md"]),
        ("claude", {"AGENTS.md": ""}, ["AGENTS.md"]),
        ("claude", dict.fromkeys(ALL, "# Mine\n"), ["CLAUDE.md"]),
        ("claude", {".claude/CLAUDE.md": "x"}, [".claude/CLAUDE.md"]),
        ("claude", {".claude/CLAUDE.md": "@../AGENTS.md"}, ["AGENTS.md"]),
        ("claude", {"CLAUDE.md": IMPORT}, ["AGENTS.md"]),
        ("codex", {"CLAUDE.md": "# Mine\n"}, ["AGENTS.md"]),
        ("qwen", dict.fromkeys(ALL, "# Mine\n"), ["AGENTS.md"]),
        ("gemini", {}, ["GEMINI.md"]),
        ("gemini", {"AGENTS.md": "", "GEMINI.md": f"# G\n{IMPORT}"}, ["AGENTS.md"]),
        ("agents", {}, ["AGENTS.md"]),
        ("agents", dict.fromkeys(ALL, "# Mine\n"), ALL),
        ("agents", {"CLAUDE.md": IMPORT, "GEMINI.md": "# G"}, ["AGENTS.md", "GEMINI.md"]),
        ("agents", {"CLAUDE.md": f"`{IMPORT[:-1]}`"}, ["AGENTS.md", "CLAUDE.md"]),
    ],
)
def test_the_rule_goes_into_each_file_that_is_read(
    workspace: Path, run_llm: RunLlm, client: str, existing: dict[str, str], marked: list[str]
) -> None:
    for name, text in existing.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    before = read_tree(workspace)
    assert run_llm(["kb", "connect", client, "--rule", "-y"]).exit_code == 0
    after = read_tree(workspace)
    assert sorted(name for name, text in after.items() if MARKS.begin in text) == sorted(marked)
    assert run_llm(["kb", "connect", client, "--rule", "--check"]).exit_code == 0
    run_llm(["kb", "connect", client, "--undo", "-y"])
    assert read_tree(workspace) == before


def test_a_linked_file_of_rules_gets_the_rule_once(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / "AGENTS.md").write_text("# Mine\n")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    run_llm(WRITE)
    assert (workspace / "AGENTS.md").read_text().count(MARKS.begin) == 1
    assert (workspace / "CLAUDE.md").is_symlink()
    run_llm(UNDO)
    assert (workspace / "CLAUDE.md").read_text() == "# Mine\n"


@pytest.mark.parametrize(
    "text",
    ["", "\n", "x", "x\n", "x\n\n\n", "x\r\n", "a\r\nb", "a\r\n\r\nb\r\n", "  \n"],
)
def test_what_was_written_is_taken_out_to_the_byte(
    workspace: Path, run_llm: RunLlm, text: str
) -> None:
    (workspace / "AGENTS.md").write_bytes(text.encode())
    assert run_llm(WRITE).exit_code == 0
    assert MARKS.begin.encode() in (workspace / "AGENTS.md").read_bytes()
    run_llm(UNDO)
    assert (workspace / "AGENTS.md").read_bytes() == text.encode()


def test_a_fence_that_is_not_closed_is_an_error(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / "AGENTS.md").write_text("```\nopen\n")
    result = run_llm(WRITE)
    assert result.stderr == "Error: 'AGENTS.md' ends in a fence that is not closed; close it\n"
    assert (workspace / "AGENTS.md").read_text() == "```\nopen\n"


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_block_that_is_an_example_in_a_fence_is_not_the_block(
    workspace: Path, run_llm: RunLlm, fence: str
) -> None:
    text = f"# How\n\n{fence}\n{MARKS.begin}\nold\n{MARKS.end}\n{fence}\n"
    (workspace / "AGENTS.md").write_text(text)
    run_llm(WRITE)
    assert (workspace / "AGENTS.md").read_text().startswith(text)
    assert (workspace / "AGENTS.md").read_text().count(MARKS.begin) == 2
    run_llm(UNDO)
    assert (workspace / "AGENTS.md").read_text() == text


@pytest.mark.parametrize("command", [WRITE, UNDO], ids=["write", "undo"])
def test_what_goes_of_a_persons_is_shown(
    workspace: Path, run_llm: RunLlm, command: list[str]
) -> None:
    run_llm(WRITE)
    block, skill = workspace / "AGENTS.md", workspace / SKILL
    block.write_text(block.read_text().replace(MARKS.end, f"MY RULE\n{MARKS.end}"))
    skill.write_text(f"{skill.read_text()}MY STEP\n")
    result = run_llm(command)
    assert ("-MY RULE\n" in result.stdout, "-MY STEP\n" in result.stdout) == (True, True)
    assert "MY" not in "".join(read_tree(workspace).values())


@pytest.mark.parametrize("title", ["\ufffe", "a\uffffb", "\U0001f600", "\u2028", "---"])
def test_a_title_never_breaks_the_front_matter(
    workspace: Path, run_llm: RunLlm, title: str
) -> None:
    (workspace / "llm-kb.toml").write_text(CONFIG.replace("Working here", f"T {title}"))
    run_llm(WRITE)
    front = yaml.safe_load((workspace / SKILL).read_text().split("\n---\n")[0])
    assert "something: T " in front["description"]


def test_text_around_the_block_stays_and_lines_in_it_are_reported(
    workspace: Path, run_llm: RunLlm
) -> None:
    file = workspace / "AGENTS.md"
    file.write_text("# Mine\n")
    run_llm(WRITE)
    written = file.read_text() + "\nBelow.\n"
    file.write_text(written.replace("Before you change code", "Never"))
    run_llm(WRITE)
    assert file.read_text() == written


def test_what_was_written_can_be_removed(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / "CLAUDE.md").write_text("# Mine\n\nBelow.\n")
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "settings.json").write_text("{}")
    before = read_tree(workspace)
    run_llm(WRITE)
    result = run_llm(UNDO)
    assert (result.exit_code, read_tree(workspace)) == (0, before)
    assert not (workspace / ".agents").exists()
    assert not (workspace / ".claude" / "skills").exists()
    assert run_llm(UNDO).stderr == "Nothing to take out.\n"


def test_file_with_nothing_but_the_block_is_removed(workspace: Path, run_llm: RunLlm) -> None:
    before = read_tree(workspace)
    run_llm(WRITE)
    run_llm(UNDO)
    assert read_tree(workspace) == before


def test_skill_of_someone_else_is_kept(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / SKILL).parent.mkdir(parents=True)
    (workspace / SKILL).write_text("theirs\n")
    before = read_tree(workspace)
    result = run_llm(WRITE)
    assert (result.exit_code, read_tree(workspace)) == (1, before)
    assert result.stderr == (
        f"Error: {SKILL!r} was written by someone else; move it, then try again\n"
    )
    run_llm(UNDO)
    assert read_tree(workspace) == before


def test_linked_directory_of_skills_is_written_once(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "skills").symlink_to("../.agents/skills")
    run_llm(WRITE)
    assert (workspace / COPY).read_text() == (workspace / SKILL).read_text()
    run_llm(UNDO)
    assert not (workspace / SKILL).exists()


def test_description_is_one_line_of_yaml_whatever_topics_say(
    workspace: Path, run_llm: RunLlm
) -> None:
    evil = '[kb.topic.x]\ntitle = "a\\" # b: </knowledge> {0} \\u202e"\nsubjects = "kb"\n'
    (workspace / "llm-kb.toml").write_text(evil + f'introduction = "{"long " * 400}"\n')
    result = run_llm(WRITE)
    assert result.exit_code == 0, result.output
    text = (workspace / SKILL).read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    assert front.keys() == {"name", "description"}
    assert 'something: a" # b: <\\/knowledge> {0} (long long' in front["description"]
    assert len(front["description"]) <= 1024


def test_topics_of_the_user_stay_out_of_the_project(
    workspace: Path, run_llm: RunLlm, user_dir: Path, own_directory: Path
) -> None:
    (own_directory / "mine").mkdir()
    mine = f'[kb.topic.mine]\ntitle = "Secret plans"\nsubjects = "{own_directory}/mine"\n'
    (user_dir / "kb.toml").write_text(mine)
    run_llm(WRITE)
    assert "Secret plans" not in (workspace / SKILL).read_text()


def test_without_topics_there_is_no_rule(workspace: Path, run_llm: RunLlm) -> None:
    (workspace / "llm-kb.toml").unlink()
    result = run_llm(WRITE)
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: no topics are configured here, so there is no rule\nllm kb init\n",
    )


def test_skill_is_no_subject_and_no_page(workspace: Path, run_llm: RunLlm) -> None:
    """It is about the topics; a person's skill of that name counts."""
    (workspace / "llm-kb.toml").write_text(
        '[kb.topic.skills]\nsubjects = ".agents/skills"\nlayout = "skills"\n'
        '[kb.topic.files]\nsubjects = ".claude"\n'
    )
    for place in (".agents/skills/other", ".claude"):
        (workspace / place).mkdir(parents=True)
        (workspace / place / "SKILL.md").write_text("The walrus.\n")
    run_llm(WRITE)
    listed = [run_llm(["kb", "list", topic, "--all"]).stdout for topic in ("skills", "files")]
    assert [text.split()[0] for text in listed] == ["other", "SKILL"]
    assert [len(text.splitlines()) for text in listed] == [1, 1]
    assert "project-knowledge" not in run_llm(["kb", "search", "knowledge project"]).stdout
    assert "project-knowledge" not in run_llm(["kb", "check"]).output
    (workspace / "llm-kb.toml").unlink()
    run_llm(["kb", "init"])
    assert "project-knowledge" not in (workspace / "llm-kb.toml").read_text()
    (workspace / SKILL).write_text("---\nname: mine\n---\n")
    assert "project-knowledge" in run_llm(["kb", "list", "skills", "--all"]).output
