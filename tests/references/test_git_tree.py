"""The files of a tree that are kept, with hostile names."""

from __future__ import annotations

import pytest

from llm_kb.references.sources.git import select_files
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
    entries = [("100644", "0" * 40, name) for name in (path, "good.md")]
    files, notes = select_files(GitSource(url="https://e.org/x"), entries)
    assert list(files) == ["good.md"]
    assert tuple(notes) == ("left out: 1 file with an unsafe name",)


TRANSLATED = ("docs/en/a.md", "docs/en/x.py", "docs/de/a.md", "docs/ja/a.md", "docs/ja/mkdocs.yml")


@pytest.mark.parametrize(
    ("paths", "kept", "notes"),
    [
        (
            (),
            ["docs/en/a.md", "docs/en/x.py"],
            (
                "left out: other versions and languages (de, ja); paths (--path 'docs/de/')"
                " takes one",
            ),
        ),
        (("docs/ja",), ["docs/ja/a.md", "docs/ja/mkdocs.yml"], ()),
        (
            ("docs/en", "docs/ja/a.md"),
            ["docs/en/a.md", "docs/en/x.py", "docs/ja/a.md"],
            (),
        ),
    ],
    ids=["none", "one", "beside English"],
)
def test_translations_are_left_out_unless_paths_name_them(
    paths: tuple[str, ...], kept: list[str], notes: tuple[str, ...]
) -> None:
    entries = [("100644", "0" * 40, name) for name in TRANSLATED]
    files, left_out = select_files(GitSource(url="https://e.org/x", paths=paths), entries)
    assert (list(files), tuple(left_out)) == (kept, notes)
