"""Add-ons: each can be taken out, and the core names none of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import grimp
import pytest
from click.testing import CliRunner

import llm_kb
from llm_kb import addons, hookspecs
from llm_kb.config.layers import Key, find_tables
from llm_kb.files.fields import read_flag
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_kinds
from llm_kb.plugin import make_group
from llm_kb.subjects.topics import Kind
from tests.conftest import RunLlm
from tests.scripted import Script

PACKAGE = Path(llm_kb.__file__).parent

USE = """
import pkgutil, sys
from importlib import import_module
import llm_kb
for each in pkgutil.walk_packages(llm_kb.__path__, "llm_kb."):
    if not each.name.endswith("__main__"):
        import_module(each.name)
kb = llm_kb.KnowledgeBase.discover()
print(kb.learn("team", "a"), [p.topic for p in kb.find_passages("walrus").passages])
"""


@pytest.mark.parametrize("name", addons.BUILT_IN)
def test_an_add_on_is_taken_out_with_its_folder_and_its_line(tmp_path: Path, name: str) -> None:
    """All other modules can be imported then, and used."""
    shutil.copytree(PACKAGE, tmp_path / "llm_kb", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "llm_kb" / name)
    file = tmp_path / "llm_kb/addons.py"
    text, number = re.subn(rf'^    "{name}",\n', "", file.read_text(), flags=re.MULTILINE)
    assert number == 1
    file.write_text(text)
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("A walrus.\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')

    used = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}){USE}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (used.stdout, used.stderr) == ("A walrus.\n ['team']\n", "")


def list_names(name: str) -> Iterator[str]:
    """Yield what the core must not name: the room of an add-on, its tools, kinds and settings."""
    yield f"llm_kb.{name}"
    kb = KnowledgeBase.discover()
    for add_on, tools in addons.gather(hookspecs.tools):
        if add_on == name:
            yield from (tools.name, *(text.name for text, _ in tools.open(kb)))
    yield from (key for add_on, (key, _) in addons.gather(hookspecs.settings) if add_on == name)
    yield from (kind.ids for add_on, (kind, _) in addons.gather(hookspecs.kinds) if add_on == name)


class Entry:
    """An entry point of another package."""

    def __init__(self, name: str, **hooks: Callable[..., object]) -> None:
        self.name = name
        self._module = types.ModuleType(name)
        for hook, function in hooks.items():
            setattr(self._module, hook, hookspecs.hookimpl(function))

    def load(self) -> types.ModuleType:
        return self._module


class Unloadable(Entry):
    def load(self) -> types.ModuleType:
        raise ImportError("no module named 'gone'")


def fail(*_: object) -> object:
    raise ValueError("broken")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install add-ons of another package, in a process that has looked for none yet."""
    caches = (addons.open_all, addons.find_tools, find_tables, find_kinds)

    def clear() -> None:
        for each in caches:
            each.cache_clear()
        addons.left_out.clear()

    def install(*entries: Entry) -> None:
        clear()
        monkeypatch.setattr(addons, "entry_points", lambda group: entries)

    yield install
    clear()


def tool_set(name: str, **given: Any) -> hookspecs.ToolSet:
    return hookspecs.ToolSet(name=name, open=lambda _: [], **given)


BROKEN = {
    "not there": (Unloadable("x"), "no module named"),
    "too new": (Entry("x", flights=lambda: ()), "it is too new, and uses flights"),
    "other arguments": (Entry("x", texts=lambda wrong: []), "wrong"),
    "raises": (Entry("x", tools=fail), "broken"),
    "no list": (Entry("x", tools=lambda: 5), "not iterable"),
    "other things": (Entry("x", tools=lambda: ["search"]), "has no attribute 'name'"),
    "a name that is taken": (Entry("x", tools=lambda: [tool_set("learn")]), "learn is taken"),
    "a call that raises": (
        Entry("x", tools=lambda: [tool_set("man", is_offered=fail)]), "broken"
    ),
    "a kind that raises": (Entry("x", kinds=lambda: [(Kind(ids="man"), fail)]), "broken"),
    "a kind that is taken": (
        Entry("x", kinds=lambda: [(Kind(ids="llm-kb"), fail)]), "llm-kb is taken"
    ),
    "a setting that is taken": (
        Entry("x", settings=lambda: [("kb.auto", Key(read_flag))]), "kb.auto is taken"
    ),
    "a setting without a key": (Entry("x", settings=lambda: ["kb.man.offer"]), "replace"),
    "no path": (Entry("x", skills=lambda: ["a.md"]), "has no attribute 'stem'"),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_add_on_is_named_and_left_out(  # noqa: PLR0917 - a row of a table
    tmp_path: Path,
    run_llm: RunLlm,
    install: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    entry: Entry,
    reason: str,
) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("# A\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.team]\nsubjects = "kb"\n')
    install(entry)
    result = run_llm(["kb", "list"])
    said = result.stderr + capsys.readouterr().err
    assert (result.exit_code, result.stdout.split()[0]) == (0, "team")
    assert said.count("llm-kb: left out of add-on 'x': ") == 1
    assert reason in said


def test_a_command_of_a_name_that_is_taken_is_left_out(install: Callable[..., None]) -> None:
    shown = click.Command("shown", help="Show it", callback=lambda: click.echo("shown"))
    install(Entry("x", commands=lambda: [click.Command("list"), shown, "no command"]))
    group, run = make_group("kb"), CliRunner().invoke
    helped = run(group, ["--help"])
    assert "\nAdd-ons:\n  shown        Show it\n" in helped.stdout
    assert "left out of add-on 'x': 'the name list is taken'" in helped.stderr
    assert helped.stderr.count("left out of add-on 'x'") == 2
    assert run(group, ["shown"]).stdout == "shown\n"


def test_no_entry_point_is_read_where_nothing_of_ours_is_asked_for(
    run_llm: RunLlm, script: Script, install: Callable[..., None]
) -> None:
    read: list[str] = []

    class Watched(Entry):
        def load(self) -> types.ModuleType:
            read.append(self.name)
            return super().load()

    install(Watched("x"))
    script.say("done").say("done")
    for arguments in (["hi"], ["-T", "llm_version", "hi"]):
        assert run_llm(["-m", "scripted", *arguments]).exit_code == 0
    assert read == []
    assert run_llm(["kb", "list"]).exit_code == 0
    assert read == ["x"]


@pytest.mark.parametrize("name", addons.BUILT_IN)
def test_the_core_does_not_name_an_add_on(name: str) -> None:
    core = [
        path
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in addons.BUILT_IN
    ]
    found = {
        (path.relative_to(PACKAGE).as_posix(), each)
        for path in core
        for each in list_names(name)
        if each in path.read_text(encoding="utf-8")
    }
    assert found == set()


@pytest.mark.parametrize("name", addons.BUILT_IN)
def test_nothing_imports_an_add_on_which_imports_neither_plugin_nor_commands(name: str) -> None:
    graph = grimp.build_graph("llm_kb", exclude_type_checking_imports=True)
    room = f"llm_kb.{name}"
    inside = {room, *graph.find_descendants(room)}
    importers = {each for own in inside for each in graph.find_modules_that_directly_import(own)}
    imported = {each for own in inside for each in graph.find_modules_directly_imported_by(own)}
    assert importers - inside == set()
    assert [each for each in imported if re.match(r"llm_kb\.(plugin|commands)\b", each)] == []
