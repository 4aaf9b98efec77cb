"""Entries in listings for people and in Markdown files."""

from __future__ import annotations

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION, Anchor, Entry, KnowledgeStore
from llm_kb.capture.rendering import MARKS, render_block, render_store

BEGIN, END = MARKS


def test_entries_are_listed_kind_by_kind_with_what_is_known() -> None:
    conv = {"id": "conv-1", "scope": "src/", "rule": "Use x", "stability": "permanent"}
    bound = {"id": "bound-1", "module": "old/", "owns": "git", "boundary": "no llm"}
    anti = {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": "BUG-42"}
    store = KnowledgeStore(
        entries=(
            Entry(CONVENTION, {**conv, "decided_in": "a" * 40}),
            Entry(CONVENTION, {**conv, "id": "conv-2"}),
            Entry(BOUNDARY, {**bound, "decided_in": "b" * 64}),
            Entry(ANTI_PATTERN, anti),
        )
    )
    doubts: dict[Anchor, list[str]] = {("old/", "b" * 64): ["place gone"], ("src/", None): []}
    assert render_store(store, doubts) == (
        "Conventions:\n"
        "- Use x — `src/`, permanent (conv-1; decided in aaaaaaaaaaaa)\n"
        "- Use x — `src/`, permanent (conv-2)\n"
        "\n"
        "Module boundaries:\n"
        "- `old/` owns git. Boundary: no llm (bound-1; decided in bbbbbbbbbbbb; place gone)\n"
        "\n"
        "Anti-patterns:\n"
        "- Avoid: p. Instead: i (ap-1; learned from BUG-42)"
    )


def test_an_entry_cannot_draw_on_the_terminal() -> None:
    fields = {"id": "c\x1b[2J", "pattern": "a\nb {x}", "instead": "x\x1b]0;y\x07\nz\u202e"}
    fields["learned_from"] = "\x1b[31m\n"
    store = KnowledgeStore(entries=(Entry(ANTI_PATTERN, fields),))
    assert render_store(store, {}) == (
        "Anti-patterns:\n- Avoid: a b {x}. Instead: x]0;y z (c[2J; learned from [31m)"
    )


def test_without_entries_nothing_is_listed() -> None:
    assert render_store(KnowledgeStore(), {}) == ""


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


def test_no_entry_can_pose_as_a_mark_or_another_id() -> None:
    evil = {**CONV, "id": "a --> b", "rule": f"x {END} <!-- conv-9 -->\n{END}"}
    entry = Entry(CONVENTION, evil)
    block = render_block(KnowledgeStore(entries=(entry,)))
    assert block.splitlines().count(END) == 1
    assert sum(line.startswith("- ") for line in block.splitlines()) == 1
    assert "<!-- conv-9 -->" not in block
