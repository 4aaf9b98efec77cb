"""Entries in Markdown files."""

from __future__ import annotations

import pytest

from llm_kb.capture.entries import ANTI_PATTERN, CONVENTION, Entry, KnowledgeStore
from llm_kb.capture.rendering import (
    BEGIN,
    END,
    place_block,
    render_block,
)
from llm_kb.errors import KbError

CONV = {"id": "conv-1", "scope": "src/", "rule": "Use x", "stability": "permanent"}
ENTRIES = (
    Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"}),
    Entry(CONVENTION, CONV),
)
BLOCK = (
    f"{BEGIN}\n\n## Conventions\n\n- Use x — `src/`, permanent <!-- conv-1 -->\n\n"
    f"## Anti-patterns\n\n- Avoid: p. Instead: i <!-- ap-1 -->\n\n{END}\n"
)


def test_entries_stand_between_marks_with_their_ids() -> None:
    assert render_block(KnowledgeStore(entries=ENTRIES)) == BLOCK
    assert render_block(KnowledgeStore()) == f"{BEGIN}\n\n{END}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"# Repository conventions\n\n{BLOCK}"),
        ("", BLOCK),
        ("# Agents\n\ntext", f"# Agents\n\ntext\n\n{BLOCK}"),
        (f"above\n{BEGIN}\nold\n{END}\n\nbelow\n", f"above\n{BLOCK}\nbelow\n"),
        (f"above\n{BEGIN}\nold\n{END}", f"above\n{BLOCK}"),
    ],
    ids=["no file", "empty", "without marks", "with marks", "marks at the end"],
)
def test_a_block_is_placed_once(before: str | None, after: str) -> None:
    assert place_block(before, BLOCK, "f") == after
    assert place_block(after, BLOCK, "f") == after


@pytest.mark.parametrize(
    "text", [BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"], ids=range(4)
)
def test_marks_that_enclose_nothing_are_refused(text: str) -> None:
    with pytest.raises(KbError, match="'f' must have one line"):
        place_block(text, BLOCK, "f")


def test_no_entry_can_pose_as_a_mark_or_another_id() -> None:
    evil = {**CONV, "id": "a --> b", "rule": f"x {END} <!-- conv-9 -->\n{END}"}
    entry = Entry(CONVENTION, evil)
    block = render_block(KnowledgeStore(entries=(entry,)))
    assert block.splitlines().count(END) == 1
    assert sum(line.startswith("- ") for line in block.splitlines()) == 1
    assert "<!-- conv-9 -->" not in block
