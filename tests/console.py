"""The output of commands for the documentation, written and checked by cog.

Run by cog outside pytest too, so this module isolates what it runs by itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import llm

from llm_kb import addons
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.plugin import register_commands
from llm_kb.references.toolbox import References
from tests.isolation import isolated_environment, make_home
from tests.openai_server import Calls, serve_openai

PROJECT = Path(__file__).resolve().parent.parent
SAMPLE = PROJECT / "sample_kb"
EXAMPLES = PROJECT / "docs" / "examples"

DATE = 1_767_268_800
"""Noon of the first of January 2026, so that it is that day almost everywhere."""

_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def iter_commands(*, hidden: bool = False) -> Iterator[tuple[str, click.Command]]:
    """Yield every command of `llm kb` with its full name, groups before their members.

    Those that no help lists only if `hidden`.
    """
    host = click.Group("llm")
    register_commands(host)
    yield from _walk("llm kb", host.commands["kb"], hidden=hidden)


def _walk(
    name: str, command: click.Command, *, hidden: bool
) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for member in command.list_commands(context):
            found = command.get_command(context, member)
            if found is not None and (hidden or not found.hidden):
                yield from _walk(f"{name} {member}", found, hidden=hidden)


def help_text(name: str, command: click.Command) -> str:
    """Return what `--help` prints, 78 columns wide as in an ordinary terminal."""
    parent = click.Context(
        click.Command(""),
        info_name=name.rpartition(" ")[0],
        help_option_names=["-h", "--help"],  # the host's setting
    )
    context = click.Context(
        command, info_name=name.rpartition(" ")[2], parent=parent, terminal_width=78
    )
    return command.get_help(context)


def transcript(
    *commands: str, project: Path = SAMPLE, setup: str = "", turns: Sequence[str | Calls] = ()
) -> str:
    """Run commands in a copy of a project, each in a shell; return what a terminal shows.

    The copy is in no repository and its files have one date, so that the result is the
    same everywhere. Its path is shown as `~/` and the name of the project. `setup` is a
    command that is run before and not shown. `turns` are what the default model answers.
    """
    with tempfile.TemporaryDirectory() as scratch:
        home, copy = Path(scratch, "home"), Path(scratch, project.name)
        make_home(home)
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for path in copy.rglob("*"):
            os.utime(path, (DATE, DATE))
        environment = isolated_environment(home, os.environ)
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        environment |= {"LLM_MODEL": "wire", "OPENAI_API_KEY": "none"} if turns else {}
        if setup:
            _run(setup, copy, environment)
        with serve_openai(Path(environment["LLM_USER_PATH"])) as server:
            server.script += turns
            shown = "".join(
                "$ " + command.replace("\n", "\n> ") + "\n" + _run(command, copy, environment)
                for command in commands
            )
        return shown.replace(f"{Path(scratch).resolve()}{os.sep}", "~/")


def _run(command: str, directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return re.sub(r"[ \t]+$", "", done.stdout, flags=re.MULTILINE)


def console(*commands: str, example: str | None = None, setup: str = "") -> str:
    """Return a transcript as a fenced block, for cog; in a project of docs/examples if named."""
    project = EXAMPLES / example if example else SAMPLE
    return f"```console\n{transcript(*commands, project=project, setup=setup)}```\n"


def find_transcripts(markdown: str) -> list[str]:
    """Return the console blocks of a document."""
    return _CONSOLE.findall(markdown)


def list_tools() -> list[llm.Tool]:
    """Return every tool that models can be given, in sample_kb, with its text and schema."""
    kb = KnowledgeBase.discover(SAMPLE)
    return [
        kb.learn_tool(),
        kb.search_tool(),
        *References().tools(),
        *(each for each in kb.added_tools(addons.find_tools()) if isinstance(each, llm.Tool)),
    ]
