"""The entries that apply to a file or directory."""

from __future__ import annotations

import pytest

from llm_kb.capture.entries import (
    ANTI_PATTERN,
    BOUNDARY,
    CONVENTION,
    Entry,
    KnowledgeStore,
    covers,
)


@pytest.mark.parametrize(
    ("scope", "file", "expected"),
    [
        ("*", "any/file.rs", True),
        ("src/", "src/a.rs", True),
        ("src/", "src", True),
        ("src/", "srcs/a.rs", False),
        ("src", "src/a.rs", True),
        ("src", "src", True),
        ("src", "srcs", False),
        ("src/a.rs", "src/a.rs", True),
        ("src/a.rs", "src/a.rs.bak", False),
        ("./src/", "src/a.rs", True),
        ("src/", "./src/a.rs", True),
        ("", "a", True),
        ("src/**", "src/b/a.rs", True),
        ("src/*", "src/a.rs", True),
        ("src/**/*", "./src/a.rs", True),
        ("./src/**", "src/a.rs", True),
        ("src/**", "src", True),
        ("src/**", "srcs/a.rs", False),
        ("**", "any/file.rs", True),
        ("src/*.rs", "src/a.rs", False),
        (".", "any/file.rs", True),
        ("./", "./any/file.rs", True),
        ("..", "any/file.rs", False),
    ],
)
def test_scopes(scope: str, file: str, expected: bool) -> None:
    assert covers(scope, file) is expected


def test_boundaries_go_by_module_and_anti_patterns_always_hold() -> None:
    stable = {"rule": "r", "stability": "permanent"}
    here = Entry(CONVENTION, {"id": "conv-1", "scope": "src/git/", **stable})
    there = Entry(CONVENTION, {"id": "conv-2", "scope": "docs/", **stable})
    module = Entry(BOUNDARY, {"id": "b", "module": "src/git", "owns": "o", "boundary": "b"})
    always = Entry(ANTI_PATTERN, {"id": "ap-1", "pattern": "p", "instead": "i"})
    store = KnowledgeStore(entries=(here, there, module, always), extra={"x": 1})
    expected = KnowledgeStore(entries=(here, module, always), extra={"x": 1})
    assert store.narrow("src/git/ops.rs") == expected
