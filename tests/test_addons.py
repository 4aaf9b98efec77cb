"""Add-ons: each can be taken out, and the core names none of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import llm_kb
from llm_kb import addons, hookspecs
from llm_kb.knowledge_base.api import KnowledgeBase

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
