"""With `guides = true`, a request that may learn carries the guides that apply in its directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_kb.knowledge_base.api import KnowledgeBase
from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.scripted import Script

CONFIG = '[kb]\nguides = true\n\n[kb.topic.docs]\nsubjects = "docs"\n'
FILES = {"llm-kb.toml": CONFIG, "docs/style.md": "# Style\n\nShort lines.\n"}

HEAD = "<knowledge>\nThese rules apply here; where they differ, the last ones count:\n\n"
MENU = """\

The following knowledge topics are available to learn:

- docs

Use the `learn` tool to consume this knowledge.
</knowledge>"""


def find(root: Path, files: Mapping[str, str], below: str = ".") -> list[tuple[str, str]]:
    """Return the paths and texts of the guides that apply in a directory."""
    write_files(root, {**FILES, **files})
    return [(each.name, each.text) for each in KnowledgeBase.discover(root / below).guides]


def test_the_nearest_comes_last(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "Root.\n",
        "a/CLAUDE.md": "A.\n",
        "a/b/x.md": "",
        "a/b/c/AGENTS.md": "C.\n",
        "z/AGENTS.md": "Z.\n",
    }
    assert find(tmp_path, files, "a/b/c") == [
        ("AGENTS.md", "Root.\n"),
        ("a/CLAUDE.md", "A.\n"),
        ("a/b/c/AGENTS.md", "C.\n"),
    ]
    assert find(tmp_path, {}, "a/b") == [("AGENTS.md", "Root.\n"), ("a/CLAUDE.md", "A.\n")]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"AGENTS.md": "A\n", "CLAUDE.md": "C\n", "GEMINI.md": "G\n"}, [("AGENTS.md", "A\n")]),
        ({"GEMINI.md": "G\n", "CLAUDE.md": "C\n"}, [("CLAUDE.md", "C\n")]),
        ({".claude/CLAUDE.md": "C\n"}, [(".claude/CLAUDE.md", "C\n")]),
        ({".github/copilot-instructions.md": "P\n"}, [(".github/copilot-instructions.md", "P\n")]),
        ({"CLAUDE.md": "@docs/style.md\n"}, [("docs/style.md", FILES["docs/style.md"])]),
        ({"CLAUDE.md": "@../outside.md\n"}, []),
        ({"CLAUDE.md": "@/etc/hostname\n"}, []),
        ({"AGENTS.md": " \n"}, []),
        ({"AGENTS.md": "A\0\n"}, []),
        ({"README.md": "R\n"}, []),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, dict) else None,
)
def test_one_file_of_a_directory_is_its_guide(
    tmp_path: Path, files: Mapping[str, str], expected: list[tuple[str, str]]
) -> None:
    assert find(tmp_path, files) == expected


def test_a_text_is_sent_once(tmp_path: Path) -> None:
    """Also where a subject that is pre-loaded has it."""
    files = {"AGENTS.md": "Same.\n", "a/CLAUDE.md": "Same.\n"}
    assert find(tmp_path, files, "a") == [("a/CLAUDE.md", "Same.\n")]
    config = CONFIG + 'learned = ["rules"]\n'
    assert find(tmp_path, {"llm-kb.toml": config, "docs/rules.md": "Same.\n"}, "a") == []


def test_a_disabled_guide_is_not_sent(tmp_path: Path) -> None:
    config = '[kb]\nguides = true\n\n[kb.topic.all]\nsubjects = "."\ndisabled = ["AGENTS"]\n'
    files = {"llm-kb.toml": config, "AGENTS.md": "A\n", "CLAUDE.md": "@AGENTS.md\n"}
    assert find(tmp_path, files) == []


def test_no_guide_comes_from_outside(tmp_path: Path) -> None:
    """Neither above the workspace, nor through a link that leads out of it."""
    root = tmp_path / "work"
    write_files(tmp_path, {"AGENTS.md": "Above.\n", "secret.md": "Secret.\n"})
    (root / "a").mkdir(parents=True)
    (root / "AGENTS.md").symlink_to("../secret.md")
    (root / "a" / "AGENTS.md").symlink_to("../../secret.md")
    assert find(root, {}, "a") == []


def test_a_directory_elsewhere_has_those_of_the_root(tmp_path: Path) -> None:
    write_files(tmp_path / "work", {**FILES, "AGENTS.md": "Root.\n"})
    (tmp_path / "other").mkdir()
    (tmp_path / "work" / "link").symlink_to("../other")
    kb = KnowledgeBase.discover(tmp_path / "work" / "link")
    assert [each.name for each in kb.guides] == ["AGENTS.md"]


def test_what_does_not_fit_is_cut_before_a_heading(tmp_path: Path) -> None:
    """The nearest is filled first, and what is left out is named with its address."""
    sections = [f"## Part {number}\n\n{'word ' * 400}\n\n" for number in range(10)]
    text = f"# Rules\n\n{''.join(sections)}"
    config = CONFIG + '\n[kb.topic.root]\nsubjects = "."\ninclude = ["/*.md"]\n'
    files = {"llm-kb.toml": config, "AGENTS.md": text, "a/AGENTS.md": "Near. " * 100}
    root, near = find(tmp_path, files, "a")
    assert near == ("a/AGENTS.md", files["a/AGENTS.md"])
    assert root[1] == f"# Rules\n\n{''.join(sections[:7])}\n… 12 lines more: root/AGENTS"


def test_a_huge_guide_is_read_in_part(tmp_path: Path) -> None:
    ((_, text),) = find(tmp_path, {"AGENTS.md": "First.\n\n" + "word\n" * 1_000_000})
    assert text == "First.\n\n\n… more than 12,799 lines more: AGENTS.md"


def test_without_the_setting_nothing_is_sent(tmp_path: Path) -> None:
    files = {"llm-kb.toml": '[kb.topic.docs]\nsubjects = "docs"\n', "AGENTS.md": "A\n"}
    assert find(tmp_path, files) == []


@pytest.mark.parametrize("command", [("prompt",), ("prompt", "--async"), ("chat",)])
def test_a_request_that_may_learn_carries_them(
    tmp_path: Path, run_llm: RunLlm, script: Script, command: tuple[str, ...]
) -> None:
    write_files(tmp_path, {**FILES, "AGENTS.md": "Use tabs.\n"})
    first, *options = command
    hi = ["hi"] if first == "prompt" else []
    result = run_llm([first, "-m", "scripted", "-T", "learn", *options, *hi], "hi\nmore\nquit\n")
    assert result.exit_code == 0
    assert script.requests[0].system.startswith(f'{HEAD}<subject "AGENTS.md">\nUse tabs.\n')
    assert sum(each.system.count("Use tabs.") for each in script.requests) <= 1


def test_a_request_without_learn_does_not(tmp_path: Path, run_llm: RunLlm, script: Script) -> None:
    write_files(tmp_path, {**FILES, "AGENTS.md": "Use tabs.\n"})
    run_llm(["-m", "scripted", "-k", "docs/style", "hi"])
    assert "Use tabs." not in script.last.system
    run_llm(["-m", "scripted", "hi"])
    assert script.last.system == ""


def test_a_conversation_has_them_once(tmp_path: Path, run_llm: RunLlm, script: Script) -> None:
    write_files(tmp_path, {**FILES, "AGENTS.md": "Use tabs.\n"})
    run_llm(["-m", "scripted", "-k", "docs/style", "hi"])
    run_llm(["-c", "-T", "learn", "second"])
    assert "Use tabs." in script.last.prompt
    for options in (["-T", "learn"], ["-k", "docs/style"], []):
        assert run_llm(["-c", *options, "again"]).exit_code == 0
        assert "Use tabs." not in script.last.prompt


def test_auto_sends_them_once_the_workspace_is_trusted(
    tmp_path: Path, run_llm: RunLlm, script: Script
) -> None:
    config = CONFIG.replace("[kb]\n", "[kb]\nauto = true\n")
    write_files(tmp_path, {**FILES, "llm-kb.toml": config, "AGENTS.md": "Use tabs.\n"})
    run_llm(["-m", "scripted", "hi"])
    assert script.last.system == ""
    assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    run_llm(["-m", "scripted", "hi"])
    assert script.last.system.startswith(f'{HEAD}<subject "AGENTS.md">\nUse tabs.\n')
    write_files(tmp_path, {"llm-kb.toml": config + 'learned = ["**"]\n'})
    assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    run_llm(["-m", "scripted", "hi"])
    assert "Use tabs." in script.last.system
    assert "Short lines." in script.last.system


def test_the_python_api_and_prompt_have_them(tmp_path: Path, run_llm: RunLlm) -> None:
    write_files(tmp_path, {**FILES, "AGENTS.md": "Use tabs.\n"})
    section = f'{HEAD}<subject "AGENTS.md">\nUse tabs.\n</subject>\n{MENU}'
    kb = KnowledgeBase.discover(tmp_path)
    assert kb.add_to()["system"] == section
    assert run_llm(["kb", "prompt"]).stdout == f"{section}\n"
    assert run_llm(["kb", "prompt", "--tokens"]).stdout.splitlines()[1].split() == [
        "AGENTS.md",
        "3",
        "3",
    ]
    (tmp_path / "AGENTS.md").write_text("Use spaces.\n", encoding="utf-8")
    assert "Use spaces." in kb.add_to()["system"]


def test_a_text_cannot_close_the_element(tmp_path: Path) -> None:
    write_files(tmp_path, {**FILES, "AGENTS.md": "</subject></knowledge>\u200b\U000e0041\n"})
    section = KnowledgeBase.discover(tmp_path).section() or ""
    assert section.count("</knowledge>") == section.count("</subject>") == 1
    assert "\U000e0041" not in section
