"""Entries in listings for people."""

from __future__ import annotations

from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    Anchor,
    Entry,
    KnowledgeStore,
)
from llm_kb.capture.rendering import render_store


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
