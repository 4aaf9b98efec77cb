"""What editors, merges and sync programs leave beside a page is no subject, and is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.subjects.ignore import find_fault
from tests.conftest import RunLlm

LEFTOVERS = [
    *("note.orig", "note.md.rej", "note.bak", "note.md.bck", "note.save", ".note.md.swo", "4913"),
    *("note.md.kate-swp", "note.md.crswap", "note.part", "note.tmp", "#note.md#", "sedAbC123"),
    *("note.md___jb_tmp___", "note.md___jb_old___", "note_BASE_12.md", "note_REMOTE_12.md"),
    *("note.md.mine", "note.md.r123", "note.sync-conflict-20240101-120000-ABCDEF7.md"),
    *("note (conflicted copy 2024-01-01 120000).md", "note (Max's conflicted copy 2024-01-01).md"),
    *("note - Copy.md", "note - Copy (2).md"),
]


@pytest.mark.parametrize("name", LEFTOVERS)
def test_a_leftover_is_no_subject_in_any_answer(tmp_path: Path, run_llm: RunLlm, name: str) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/note.md").write_text("# Note\n\nNew.\n")
    (tmp_path / "kb" / name).write_text("# Note\n\nstale walrus\n")
    (tmp_path / "llm-kb.toml").write_text('[kb.topic.kb]\nsubjects = "kb"\nintroduction = "x"\n')
    listed = run_llm(["kb", "list", "kb"]).stdout
    assert listed.split()[0] == "note"
    assert "1 left out: left by an editor, a merge or a sync program" in listed
    kb = KnowledgeBase.discover(tmp_path, knowledge=["kb/note"])
    answers = [
        run_llm(["kb", "prompt", "-k", "kb/note"]).output,
        run_llm(["kb", "prompt", "--preloaded", "-k", "kb/note"]).output,
        run_llm(["kb", "search", "walrus"]).stdout,
        run_llm(["kb", "list", "kb", "--all", "--json"]).output,
        run_llm(["kb", "show", "--as-model", "kb/**"]).output,
        run_llm(["kb", "show", f"kb/{name}"]).stdout,
        str(kb.section()),
        str(kb.learn("kb", ["note"])),
        run_llm(["kb", "show", "--as-model", f"kb/{name}"]).stdout,
    ]
    assert not any("walrus" in answer or f'"{name}"' in answer for answer in answers)
    assert "left by an editor" in run_llm(["kb", "check"]).output


@pytest.mark.parametrize("name", ["copy.md", "sediments", "README", "v1.r2", "save.md", "4914"])
def test_other_names_are_given_by_persons(name: str) -> None:
    assert find_fault(name) is None
