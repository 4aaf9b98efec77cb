"""The import contract holds, and starting `llm` stays as cheap as it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from importlinter.application import use_cases
from importlinter.configuration import configure

from llm_kb import plugin
from llm_kb.files.fields import decode_toml
from tests.budget import PACKAGE, measure
from tests.conftest import RunLlm, RunLlmProcess
from tests.isolation import isolated_environment, make_home

PROJECT = Path(__file__).parent.parent

MODULES_AT_START = {"llm_kb", "llm_kb.plugin"}

HEAVY = {"httpx", "httpx2", "numpy", "pathspec", "sqlite3", "tomli", "tomlkit", "tomllib", "yaml"}

BUDGET = {
    "addons": 94,
    "capture": 1_912,
    "commands": 1_128,
    "config": 882,
    "errors": 111,
    "files": 1_704,
    "hookspecs": 61,
    "host": 1_354,
    "knowledge_base": 1_510,
    "plugin": 217,
    "proposals": 459,
    "references": 4_658,
    "rendering": 1_460,
    "search": 1_574,
    "subjects": 634,
    "terminal": 262,
    "texts": 2_744,
    "upkeep": 1_031,
    "documents": 375,
    "core": 14_783,
    "all": 22_187,
    "functions": 2_099,
    "records": 99,
    "constants": 338,
    "files in all": 179,
}
"""The most code lines of each room, of the core (all but the add-ons) and of the package, and the
most of what else is counted; see `tests/budget.py`.

Whoever removes something lowers it with `python -m tests.budget`, in the same commit. A row is
raised only by what another one gave in that commit: a feature enters with the lines that leave.
"""

RUN = """
import json, sys
from click.testing import CliRunner
import llm.cli
loaded = [sorted(sys.modules)]
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(llm.cli.cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    loaded.append(sorted(sys.modules))
print(json.dumps(loaded))
"""


COMMANDS_OF_THE_HOST = [["--version"], ["models"], ["logs", "path"], ["prompt", "--help"]]

PROMPT = ["prompt", "-m", "echo", "--no-stream", "hello"]


@pytest.fixture(scope="module")
def modules_added(tmp_path_factory: pytest.TempPathFactory) -> list[set[str]]:
    """What this plugin adds to the loaded modules: at start, after each command, and a prompt.

    In a workspace that has a configuration.
    """
    workspace, home = tmp_path_factory.mktemp("workspace"), tmp_path_factory.mktemp("home")
    (workspace / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n', encoding="utf-8")
    make_home(home)
    without, with_us = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", RUN, json.dumps([*COMMANDS_OF_THE_HOST, PROMPT])],
                cwd=workspace,
                env={**isolated_environment(home, os.environ), "LLM_LOAD_PLUGINS": plugins},
                stdout=subprocess.PIPE,
                encoding="utf-8",
                check=True,
            ).stdout
        )
        for plugins in ("llm-echo", "llm-echo,llm-kb")
    )
    return [set(ours) - set(bare) for ours, bare in zip(with_us, without, strict=True)]


def test_the_import_contract_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    configure()
    assert use_cases.lint_imports(config_filename="pyproject.toml", cache_dir=None)


def test_no_room_is_larger_than_its_budget() -> None:
    sizes = measure()
    rooms = {each.stem for each in PACKAGE.iterdir() if each.suffix == ".py" or each.is_dir()}
    assert rooms - {"__init__", "__pycache__"} <= set(BUDGET), "a room without a row"
    assert {name: sizes[name] for name, most in BUDGET.items() if sizes[name] > most} == {}


def test_the_picture_of_the_house_is_the_contract() -> None:
    """And every room has a row in the table below it."""
    project = decode_toml((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        contract
        for contract in project["tool"]["importlinter"]["contracts"]  # type: ignore[index]
        if contract.get("containers") == ["llm_kb"]
    ]
    design = (PROJECT / "docs" / "design.md").read_text(encoding="utf-8")
    house = design.partition("## The house\n")[2].partition("\n## ")[0]
    picture = house.partition("```text\n")[2].partition("```")[0]
    floors = re.findall(r"^\| (.*?) +\|  ", picture, re.MULTILINE)
    assert [re.sub(r" +([:|]) ", r" \1 ", floor) for floor in floors] == contract["layers"]
    rooms = set(re.findall(r"\w+", " ".join(contract["layers"])))
    assert set(re.findall(r"^\| `(\w+)` \|", house, re.MULTILINE)) == rooms


def test_starting_llm_imports_two_modules_and_so_do_commands_that_are_not_ours(
    modules_added: list[set[str]],
) -> None:
    assert modules_added[:-1] == [MODULES_AT_START] * 5


def test_a_prompt_that_uses_no_knowledge_loads_nothing_heavy(
    modules_added: list[set[str]],
) -> None:
    """Also where a workspace has a configuration: it is looked at, not parsed."""
    added = modules_added[-1]
    assert {name.partition(".")[0] for name in added} & HEAVY == set()
    assert "llm_kb.knowledge_base" not in added


def test_importing_the_plugin_alone_pulls_in_nothing_heavy() -> None:
    """Measured without `llm`, which has loaded some of these for itself."""
    code = (
        "import sys, types\n"
        "llm = types.ModuleType('llm')\n"
        "llm.hookimpl = lambda function: function\n"
        "sys.modules['llm'] = llm\n"
        "import llm_kb.plugin\n"
        "print('\\n'.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & HEAVY == set()


def test_the_plugin_names_every_hook_that_it_has() -> None:
    """One that is not named is never called, and nothing says so."""
    marked = [name for name, each in vars(plugin).items() if hasattr(each, "llm_impl")]
    assert dir(plugin) == sorted(marked)


@pytest.mark.parametrize("name", [*chain(*plugin.COMMANDS.values())])
def test_every_subcommand_is_where_the_group_says(run_llm: RunLlm, name: str) -> None:
    result = run_llm(["kb", name, "--help"])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli kb {name} ")


def test_the_installed_llm_runs_the_group(run_llm_process: RunLlmProcess, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "style.md").write_text("Short lines.\n", encoding="utf-8")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n', encoding="utf-8")
    done = run_llm_process(["kb", "show", "team/style"], cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("Short lines.\n", "", 0)
