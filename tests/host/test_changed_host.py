"""A host that renames what we take: plain requests go on, ours end with one line."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import llm
import pytest

from llm_kb.errors import KbError
from llm_kb.host import llm_internals
from llm_kb.host.hooks import load_fragments
from llm_kb.plugin import wrap_callback
from tests.conftest import RunLlm
from tests.scripted import Script

PACKAGE = Path(llm_internals.__file__).parents[1]
HOST = Path(llm.__file__).parent

PUBLIC = {
    "Attachment", "Fragment", "NeedsKeyException", "PauseChain", "Template", "Tool", "ToolOutput",
    "Toolbox", "UnknownModelError", "get_async_model", "get_embedding_model", "get_model",
    "user_dir",
}  # fmt: skip
"""The names of `llm` that its documentation has."""

INTERNAL = {
    "_get_conversation_tools", "load_conversation", "load_template", "log_to_db", "logs_db_path",
    "logs_on", "template_dir", "migrate", "model_copy", "system_fragments", "turns",
    "turn_fragments",
}  # fmt: skip
"""What else we take; `llm_internals` says of each what happens without it."""


def find_taken() -> set[str]:
    """Return every name that a module of the package takes from the host when it runs."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        typed = {
            id(node)
            for block in ast.walk(tree)
            for part in (
                block.body
                if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
                else (getattr(block, "annotation", None), getattr(block, "returns", None))
            )
            if part is not None
            for node in ast.walk(part)
        }
        for node in ast.walk(tree):
            if id(node) in typed:
                continue
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "llm":
                found |= {alias.name for alias in node.names}
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "llm":
                found.add(node.attr)
    return found


def test_every_name_of_the_host_is_known() -> None:
    assert find_taken() <= PUBLIC


def test_every_internal_name_is_explained() -> None:
    documented = llm_internals.__doc__ or ""
    assert {name for name in INTERNAL - {"system_fragments"} if name not in documented} == set()


def rename(name: str, directory: Path) -> None:
    """Put a copy of the host into a directory, with other names for what an expression matches."""
    shutil.copytree(HOST, directory / "llm", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (directory / "llm").rglob("*.py"):
        text = path.read_text()
        path.write_text(re.sub(rf"(?<!string\.)\b(?:{name})\b", r"\g<0>_renamed", text))


PROBE = """
import json, sys, traceback
import llm.cli
from click.testing import CliRunner

for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(llm.cli.cli, ["-m", "echo", *arguments, "hi"])
    if result.exception and not isinstance(result.exception, SystemExit):
        traceback.print_exception(result.exception)
    print(json.dumps([result.exit_code, result.stdout, result.stderr]))
"""


def run(directory: Path, *each: Sequence[str]) -> list[tuple[int, str, str]]:
    """Run `llm` from that copy; return status, output and errors for each list of arguments."""
    path = os.pathsep.join([str(directory), str(PACKAGE.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "LLM_LOAD_PLUGINS": "llm-kb,llm-echo"}
    command = [sys.executable, "-c", PROBE, json.dumps(each)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A topic with a subject, and a saved template of it."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("About walruses.")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\n')
    return tmp_path


GROUPS = {
    "conversations and templates": INTERNAL & {"load_conversation", "_get_conversation_tools"},
    "templates alone": INTERNAL & {"load_template", "template_dir", "model_copy"},
    "arguments": INTERNAL & {"system_fragments"},
    "the log": INTERNAL & {"logs_on", "logs_db_path", "log_to_db", "migrate", "turns"},
    "fragments and templates": PUBLIC & {"Fragment", "Template", "PauseChain"},
    "tools": PUBLIC & {"Tool", "Toolbox"},
    "models and the user": PUBLIC - {"Fragment", "Template", "PauseChain", "Tool", "Toolbox"},
}
"""Names that are renamed together: a process for each name would take minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_a_renamed_name_breaks_no_request_of_others(
    group: str, workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("host")
    rename("|".join(sorted(GROUPS[group])), copy)
    plain = [[], ["-T", "llm_time"]]
    asking = [["-T", "learn"], ["-k", "p"], ["-f", "kb:p/a"], ["-t", "kb:p"]]
    results = run(copy, *plain, *asking)
    assert [status for status, _, _ in results[:2]] == [0, 0]
    for status, _, errors in results[2:]:
        told = [line for line in errors.splitlines() if line.startswith(("Error", "llm-kb"))]
        assert (status, len(told)) in {(0, 0), (1, 1)}, errors


@pytest.mark.slow
def test_a_template_of_others_goes_on_with_one_line(
    workspace: Path, user_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("host")
    rename("load_template", copy)
    (user_dir / "templates").mkdir(parents=True)
    (user_dir / "templates/kind.yaml").write_text("system: Be kind.\n")
    ((status, output, errors),) = run(copy, ["-t", "kind"])
    assert (status, "Be kind." in output) == (0, True)
    assert errors.startswith("llm-kb: left out: this version of llm-kb does not fit llm ")
    assert len(errors.splitlines()) == 1


def test_a_model_s_own_error_is_not_taken_for_a_changed_host(user_dir: Path) -> None:
    def fail(**_: object) -> None:
        raise TypeError("Client.__init__() got an unexpected keyword argument 'proxies'")

    with pytest.raises(TypeError, match="'proxies'"):
        wrap_callback(fail, "chat")(no_log=True)
    with pytest.raises(click.ClickException, match="has no argument 'no_log' of its commands"):
        wrap_callback(lambda: None, "chat")(no_log=True)


def test_an_unreadable_log_forgets_no_exclusion_in_silence(
    workspace: Path, user_dir: Path, run_llm: RunLlm, script: Script
) -> None:
    """A conversation's `learn` is left out when what it excluded cannot be read."""
    (workspace / "kb/b.md").write_text("B")
    script.say("first").say("second")
    excluding = 'kb.topic.p.disabled+="a"'
    run_llm(["-m", "scripted", "-T", "learn", "--kb-cfg", excluding, "hi"])
    with sqlite3.connect(user_dir / "logs.db") as log:
        log.execute("alter table turn_fragments rename column fragment_id to fragment")
    result = run_llm(["-c", "hi"])
    assert "cannot be read" in result.stderr
    assert "excluded earlier in this conversation is forgotten; give it again" in result.stderr
    assert script.last.tool_names == ()


def test_outside_a_request_nothing_counts_as_sent(workspace: Path) -> None:
    """Python's `llm.get_tools()`, and commands that take tools by themselves, send no section."""
    (workspace / "llm-kb.toml").write_text('[kb.topic.p]\nsubjects = "kb"\nlearned = ["a"]\n')
    tool = llm.get_tools()["learn"]
    assert isinstance(tool, llm.Tool)
    learn = tool.implementation
    assert learn is not None
    assert learn(topic="p").startswith("# Topic: p\n\n## Available subjects:\n\n- a\n")
    assert learn(topic="p", subjects=["a"]) == "About walruses."


def test_outside_a_request_what_was_saved_is_sent(workspace: Path) -> None:
    (fragment,) = load_fragments("@p/a")
    assert isinstance(fragment, llm.Fragment)
    assert (fragment.source, "About walruses." in fragment) == ("kb:@p/a", True)
    (menu,) = load_fragments("@p")
    assert "- p" in str(menu)
    with pytest.raises(KbError, match="gone"):
        load_fragments("@p/gone")
