"""The kinds of topics: each can be taken away, and another one added, by a file and a row."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import llm_kb
from llm_kb.knowledge_base import kinds

PACKAGE = Path(llm_kb.__file__).parent

USE = """
from llm_kb import KnowledgeBase
from llm_kb.commands import check, config, init, new, reading, search
from llm_kb.upkeep import first_topics, usage
kb = KnowledgeBase.discover()
print(kb.learn("team", "a"), [p.topic for p in kb.find_passages("walrus").passages])
"""


@pytest.mark.parametrize("room", ["references", "capture"])
def test_a_kind_is_taken_away_with_its_row(tmp_path: Path, room: str) -> None:
    """What the kind has of its own goes as well: its room, its commands and its tools."""
    shutil.copytree(PACKAGE, tmp_path / "llm_kb", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "llm_kb" / room)
    table = tmp_path / "llm_kb/knowledge_base/kinds.py"
    module = {"references": "fetched", "capture": "captured"}[room]
    lines = table.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not re.search(rf"import {module}$|{module}\.KIND", line)]
    assert len(kept) == len(lines) - 2  # its import and its row
    table.write_text("".join(kept))
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


def test_no_room_knows_a_kind_but_its_own_commands_and_tools() -> None:
    own = re.compile(
        r"knowledge_base/kinds|host/(?:reference|capture)_|host/hooks|host/mcp/|references/|capture/"
        r"|commands/(?:references|knowledge|mcp|review)"
    )
    imports = re.compile(r"^\s*(?:from|import) llm_kb\.(?:references|capture)\b", re.MULTILINE)
    assert [
        place
        for path in PACKAGE.rglob("*.py")
        if not own.match(place := path.relative_to(PACKAGE).as_posix())
        and imports.search(path.read_text("utf-8"))
    ] == []


def test_the_ids_of_kinds_do_not_meet() -> None:
    ids = [kind.ids for kind in kinds.GIVEN]
    assert len(set(ids)) == len(ids) == len(kinds.KINDS) - 1
    for kind in kinds.GIVEN:
        assert [other.ids for other in kinds.GIVEN if other.covers(kind.ids)] == [kind.ids]
