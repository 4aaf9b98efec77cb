"""Which files of a tree are kept: names as whoever wrote the repository chose them."""

from __future__ import annotations

import pytest

from llm_kb.references.sources.git import GitFile, select_files
from llm_kb.references.sources.records import GitSource


@pytest.mark.parametrize(
    "path",
    [
        "../../evil.md",
        "/etc/evil",
        "a/../../evil",
        ".git/config",
        "sub/.GIT/hooks/post-checkout",
        "a\\..\\evil",
        "C:evil",
        "nul.txt",
        "line\nbreak.md",
        "\x1b[31mred.md",
        "rtl\u202egnp.md",
        "bad\udcff.md",
        "trailing.",
        "x" * 260,
    ],
)
def test_names_that_lead_outside_or_deceive_are_left_out(path: str) -> None:
    entries = [("100644", GitFile(path=name, blob="0" * 40)) for name in (path, "good.md")]
    tree = select_files(GitSource(url="https://e.org/x"), entries)
    assert [file.path for file in tree.files] == ["good.md"]
    assert tree.notes == ("left out: 1 file with an unsafe name",)
