"""The hints of commands for empty results and mistyped names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands.workspaces import write_files
from tests.conftest import RunLlm
from tests.scripted import Script

CONFIG = """
[kb.topic.docs]
subjects = "docs"

[kb.topic.empty]
subjects = "nowhere"
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path) -> Path:
    """A topic with subjects, and one whose directory is missing."""
    files = ["docs/index.md", "docs/patterns/celery.md", "docs/a/celery.md", "docs/.hidden.md"]
    write_files(tmp_path, {"llm-kb.toml": CONFIG, **dict.fromkeys(files, "x\n")})
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ["kb", "show", "celery"],
            "'celery' names subjects, not a topic: write docs/a/celery or docs/patterns/celery",
        ),
        (
            ["kb", "show", "--as-model", "CELERY"],
            "'CELERY' names subjects, not a topic: write docs/a/celery or docs/patterns/celery",
        ),
        (["-k", "index", "hi"], "'index' names subjects, not a topic: write docs/index"),
        (["-k", "ind*", "hi"], "'ind*' names subjects, not a topic: write docs/**/ind*"),
        (["-f", "kb:cel*", "hi"], "'cel*' names subjects, not a topic: write docs/**/cel*"),
        (["-k", "[*", "hi"], "unknown topic '[*'; valid topics: docs, empty"),
        (
            ["-k", "repo-knowledge/src", "hi"],
            "nothing is in it yet ('llm kb knowledge add' adds an entry)",
        ),
        (
            ["kb", "show", "patterns/celery"],
            "'patterns/celery' names subjects, not a topic: write docs/patterns/celery",
        ),
        (["kb", "show", "--as-model", "dosc"], "valid topics: docs, empty; did you mean 'docs'?"),
        (["-k", "dosc/index", "hi"], "valid topics: docs, empty; did you mean 'docs'?"),
        (["kb", "show", "docs/patterns/celry"], "did you mean: patterns/celery, a/celery"),
        (
            ["-k", "docs/pat*", "hi"],
            "did you mean: pat*/** ('*' stops at '/', '**' goes on)",
        ),
        (
            ["-k", "docs/cel*", "hi"],
            "did you mean: **/cel*, a/celery, patterns/celery ('*' stops at '/', '**' goes on)",
        ),
        (
            ["-k", "docs/in*.md", "hi"],
            "no subject of topic 'docs' matches 'in*.md'; did you mean: in*",
        ),
        (
            ["-k", "docs/patterns", "hi"],
            "did you mean: patterns/**, patterns/celery ('*' stops at '/', '**' goes on)",
        ),
    ],
    ids=" ".join,
)
def test_what_is_like_a_mistyped_name_is_suggested(
    run_llm: RunLlm, arguments: list[str], hint: str
) -> None:
    result = run_llm(arguments)
    assert result.exit_code == 1
    assert result.stderr.endswith(f"{hint}\n")


@pytest.mark.parametrize("name", ["Documentation/index", "documentation/index", "DOCS/index"])
def test_a_title_names_a_topic_wherever_an_id_does(
    run_llm: RunLlm, script: Script, tmp_path: Path, name: str
) -> None:
    config = CONFIG.replace("[kb.topic.docs]", '[kb.topic.docs]\ntitle = "Documentation"')
    write_files(tmp_path, {"llm-kb.toml": config, "docs/index.md": "Welcome.\n"})
    for option, value in (("-k", name), ("-f", f"kb:{name}")):
        assert run_llm(["-m", "scripted", option, value, "hi"]).exit_code == 0
        assert "Welcome." in script.last.system + script.last.prompt
    assert run_llm(["kb", "show", name]).stdout == "Welcome.\n"


@pytest.mark.parametrize("name", ["hidden", "zzz", "elery"])
def test_hidden_subjects_and_parts_of_names_are_not_suggested(run_llm: RunLlm, name: str) -> None:
    result = run_llm(["kb", "show", name])
    assert result.stderr == f"Error: unknown topic {name!r}; valid topics: docs, empty\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prompt", "--preloaded"], "llm-kb: nothing is pre-loaded; -k or `learned` does that\n"),
    ],
    ids=" ".join,
)
def test_silence_never_stands_for_nothing_found(
    run_llm: RunLlm, arguments: list[str], said: str
) -> None:
    result = run_llm(["kb", *arguments])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)


def test_an_empty_prompt_has_a_reason(run_llm: RunLlm, tmp_path: Path) -> None:
    write_files(tmp_path, {"llm-kb.toml": CONFIG.replace('"docs"', '"kbb"')})
    (tmp_path / "nowhere").mkdir()
    fix = "correct that, or `subjects` in the configuration"
    assert run_llm(["kb", "prompt"]).stderr == (
        "llm-kb: there is nothing to learn:"
        f" topic 'docs' lists no subjects: {tmp_path}/kbb: no such directory; {fix};"
        f" topic 'empty' lists no subjects: {tmp_path}/nowhere is empty;"
        " `llm kb new empty/NAME` writes one\n"
    )
    (tmp_path / "kbb").write_text("")
    (tmp_path / "nowhere/.hidden.md").write_text("hidden")
    assert run_llm(["-T", "learn", "hi"]).stderr == (
        "Error: there is nothing to learn:"
        f" topic 'docs' lists no subjects: {tmp_path}/kbb: not a directory; {fix};"
        f" topic 'empty' lists no subjects: those of {tmp_path}/nowhere are hidden;"
        " `llm kb list empty --all` shows them\n"
    )
    write_files(tmp_path, {"llm-kb.toml": "[kb]\n"})
    none = "llm-kb: no topics are configured; `llm kb add` makes one\n"
    assert run_llm(["kb", "prompt"]).stderr == none


def test_a_topic_without_listed_subjects_says_so_once(run_llm: RunLlm, tmp_path: Path) -> None:
    (tmp_path / "nowhere").mkdir()
    said = f"no subjects: {tmp_path}/nowhere is empty; `llm kb new empty/NAME` writes one\n"
    assert run_llm(["kb", "list", "empty"]).output == said
    (tmp_path / "nowhere").rmdir()
    fix = "correct that, or `subjects` in the configuration"
    shown = f"no subjects: {tmp_path}/nowhere: no such directory; {fix}\n"
    assert run_llm(["kb", "list", "empty"]).output == shown


def test_commands_in_advice_work_as_they_are_pasted(
    tmp_path: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    (tmp_path / "llm-kb.toml").unlink()
    write_files(
        tmp_path,
        {
            "docs/it's.md": "# Its\n",
            "docs/-x [1].md": "Text.\n" * 70_000,
        },
    )
    said = ""
    for arguments in (
        ["kb", "init"],
        ["kb", "new", "docs/it's"],
        ["kb", "new", "docs/-x [1]"],
        ["kb", "prompt", "-k", "docs/it's#none"],
    ):
        said += run_llm(arguments).stderr
    advised = re.findall(r"(?:^ +|`)(llm kb [^`\n]+)", said, re.MULTILINE)
    assert [command.split()[2] for command in advised] == [
        "edit",
        "edit",
        "show",
    ]
    for command in advised:
        result = run_llm(shlex.split(command)[1:])
        assert (result.exit_code, result.exception) == (0, None), (command, result.stderr)
