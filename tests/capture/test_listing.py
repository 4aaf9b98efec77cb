"""Entries as people list them."""

from __future__ import annotations

import pytest

from llm_kb.capture.entries import ANTI_PATTERN, BOUNDARY, CONVENTION
from llm_kb.capture.rendering import MAX_COMMITS, Facts, render_age, render_tables
from llm_kb.capture.store_format import Anchor, make_table
from llm_kb.rendering.plain_text import one_line

DAY = 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (DAY, "1 day ago"),
        (13 * DAY, "1 week ago"),
        (65 * DAY, "2 months ago"),
        (800 * DAY, "2 years ago"),
    ],
)
def test_ages(seconds: int, expected: str) -> None:
    assert render_age(seconds) == expected


def test_entries_are_listed_kind_by_kind_with_what_is_known() -> None:
    conv = {"id": "conv-1", "scope": "src/", "rule": "Use x", "stability": "permanent"}
    bound = {"id": "bound-1", "module": "old/", "owns": "git", "boundary": "no llm"}
    anti = {"id": "ap-1", "pattern": "p", "instead": "i", "learned_from": "BUG-42"}
    tables = [
        make_table(CONVENTION, [{**conv, "decided_in": "a" * 40}, {**conv, "id": "conv-2"}]),
        make_table(BOUNDARY, [{**bound, "decided_in": "b" * 64}]),
        make_table(ANTI_PATTERN, [anti]),
    ]
    facts: dict[Anchor, Facts] = {
        (None, "BUG-42"): Facts(),
        ("src/", "a" * 40): Facts(recorded_at=0, place_exists=True, touched=1),
        ("src/", None): Facts(place_exists=True),
        ("old/", "b" * 64): Facts(recorded_at=DAY, place_exists=False, touched=MAX_COMMITS),
    }
    assert render_tables(tables, facts, 3 * DAY) == (
        "Conventions:\n"
        "  conv-1  src/ (permanent)\n"
        "    Use x\n"
        "    decided in aaaaaaaaaaaa, 3 days ago; touched by 1 commit since\n"
        "  conv-2  src/ (permanent)\n"
        "    Use x\n"
        "\n"
        "Module boundaries:\n"
        "  bound-1  old/\n"
        "    owns: git\n"
        "    boundary: no llm\n"
        "    decided in bbbbbbbbbbbb, 2 days ago; its place no longer exists; "
        "touched by 5000+ commits since\n"
        "\n"
        "Anti-patterns:\n"
        "  ap-1\n"
        "    avoid: p\n"
        "    instead: i\n"
        "    learned from BUG-42"
    )


@pytest.mark.parametrize("more", ["", "ä"], ids=["ASCII", "more than ASCII"])
def test_an_entry_cannot_draw_on_the_terminal(more: str) -> None:
    fields = {"id": "c\x1b[2J", "pattern": f"a\nb{more}", "instead": "x\x1b]0;y\x07\nz"}
    fields["learned_from"] = "\x1b[31m\n"
    facts: dict[Anchor, Facts] = {(None, fields["learned_from"]): Facts()}
    assert render_tables([make_table(ANTI_PATTERN, [fields])], facts, 0) == (
        f"Anti-patterns:\n  c[2J\n    avoid: a b{more}\n    instead: x]0;y z\n    learned from [31m"
    )


@pytest.mark.parametrize(
    "character", [*map(chr, range(0x180)), "\u2028", "\u202e", "\ud83d"], ids=ascii
)
def test_what_does_not_print_is_made_a_line(character: str) -> None:
    pattern = f"a  {character}b"
    rows = [{"id": "ap-1", "pattern": pattern, "instead": "i"}]
    shown = pattern if pattern.isprintable() else one_line(pattern)
    assert render_tables([make_table(ANTI_PATTERN, rows)], {(None, None): Facts()}, 0) == (
        f"Anti-patterns:\n  ap-1\n    avoid: {shown}\n    instead: i"
    )


def test_without_entries_nothing_is_listed() -> None:
    assert render_tables([make_table(CONVENTION, [])], {}, 0) == ""
