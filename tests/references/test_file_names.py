"""The file names that are safe to write below a topic."""

from __future__ import annotations

import pytest

from llm_kb.references.sources.records import GitSource
from llm_kb.references.sources.rules import is_safe_path, page_path


@pytest.mark.parametrize(
    "path",
    [
        "", "/a", "a/", "a//b", "./a", "a/../b", ".git/config", "a/.GIT/b",
        "a\x00", "a\x1bb", "a\x7fb", "a\x85b", "a\x9bb",
        "a\u061cb", "a\u200eb", "a\u202eb", "a\u2028b", "a\u2066b", "a\ufeffb", "a\U000e0041b",
        "a\\b", "a:b", "a*", "a?", "a|b", "a.", "a ", "nul", "COM1.txt", "\udcff", "x" * 251,
    ],
    ids=ascii,
)  # fmt: skip
def test_a_name_that_leads_out_or_deceives_is_not_safe(path: str) -> None:
    assert not is_safe_path(path)


@pytest.mark.parametrize("path", ["a", ".github/a.yml", "docs/使い方 1.md", "é/ñ.md", "💡.md"])
def test_names_in_any_script_are_safe(path: str) -> None:
    assert is_safe_path(path)


@pytest.mark.parametrize("name", ["aux", "CON", "nul", "com1", "lpt1/x", "x/prn"])
@pytest.mark.parametrize("end", ["", ".html", ".htm", ".md", ".markdown", ".txt", ".php"])
def test_pages_have_names_that_every_system_can_hold(name: str, end: str) -> None:
    """Else a copy of the topic, or a repository of topics, lacks them."""
    assert is_safe_path(page_path(f"https://e.org/{name}{end}"))
    assert GitSource(url=f"https://e.org/{name}").folder not in {"aux", "CON", "nul", "com1", "prn"}
