"""Names of files: one definition for writing, listing and checking."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.layouts import place_subject
from llm_kb.references.sources.rules import is_safe_path
from llm_kb.subjects.topics import Layout, TopicConfig, find_flaw, is_portable
from llm_kb.texts.safe import UNUSABLE

JOINERS = {"\u200c", "\u200d"}
ALL = [chr(code) for code in range(sys.maxunicode + 1)]


def test_what_hides_or_reorders_text_is_unusable() -> None:
    """Every control, format, separator and surrogate character but the two joiners."""
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    missed = {c for c in ALL if unicodedata.category(c) in hidden and not UNUSABLE.match(c)}
    assert missed == JOINERS


@pytest.mark.slow
def test_of_all_characters_what_may_be_fetched_may_be_listed() -> None:
    fetched = [c for c in ALL if c not in "./" and is_safe_path(f"a{c}b.md")]
    assert [c for c in fetched if find_flaw(f"a{c}b.md")] == []
    assert len(fetched) > 1_000_000


@pytest.mark.slow
def test_of_all_characters_what_a_new_subject_may_have_is_portable() -> None:
    def is_accepted(slug: str) -> bool:
        try:
            place_subject(slug, Layout.FILES)
        except KbError:
            return False
        return True

    accepted = [c for c in ALL if c not in "./" and is_accepted(f"a{c}b")]
    assert [c for c in accepted if not is_portable(f"a{c}b.md")] == []
    assert len(accepted) > 1_000_000


def test_the_walk_lists_what_may_be_fetched(tmp_path: Path) -> None:
    """On the disk, for each printable kind of character and the 52 that once were lost."""
    names = {f"{ord(c):06x}{c}x.md" for c in ALL[0xA0:0x3000] if is_safe_path(f"{c}x.md")}
    for name in names:
        (tmp_path / name).touch()
    listing = DirectoryTopic(TopicConfig(id="t", root=tmp_path)).list()
    assert {subject.path for subject in listing.subjects} == names
    assert listing.skipped == []


@pytest.mark.parametrize(
    ("name", "portable"),
    [
        ("a.md", True),
        (".a", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a\u00adb", False),
        ("a\\b", False),
        ("a:b", False),
        ("a.", False),
        ("a ", False),
        ("nul.md", False),
        ("COM0", False),
        ("null", True),
        ("\u00e9" * 125, True),
        ("\u00e9" * 126, False),
    ],
)
def test_a_portable_name_can_be_written_anywhere(name: str, portable: bool) -> None:
    assert is_portable(name) is portable
