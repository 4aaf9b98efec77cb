"""The table of formats, by the names of files and their first lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llm_kb.texts.formats import FORMATS, find_extension, find_fence_language, find_format
from tests.budget import ADD_ONS

PACKAGE = Path(__file__).parents[2] / "llm_kb"


@pytest.mark.parametrize(
    ("path", "start", "name"),
    [
        ("book/one.asc", "= Book\n", "AsciiDoc"),
        ("key.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", None),
        ("key.asc", None, None),
        ("a.pm", "package A;\n\n=head1 NAME\n", "code"),
        ("a.typ", "= A\n", "another markup"),
        ("a.tex", "\\label{a}\nWords.\n", "LaTeX"),
        ("x.1", '.\\" a comment\n.TH X 1\n', "man page"),
        ("x.8", ".Dd today\n.Dt X 8\n", "man page"),
        ("lib.so.1", "\x7fELF", None),
        ("v1.2", None, None),
        ("readme.txt", "=== Two-Factor ===\nTags: a\n", "plain text"),
        ("requirements-dev.txt", "a\n", "list for tools"),
        ("README", None, "page without an extension"),
        (".cursorrules", None, "page without an extension"),
        ("Makefile", None, "text without an extension"),
        ("A.MD", None, "Markdown"),
        ("a.xyz", None, None),
    ],
)
def test_the_format_of_a_file(path: str, start: str | None, name: str | None) -> None:
    found = find_format(path, start)
    assert (found.name if found else None) == name
    if start is not None:
        assert find_format(path, start.encode()) == found


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.md", None), ("a.mkd", None), ("a.qmd", None), ("a.txt", None), ("README", None),
        ("a.mdown", "mdown"), ("a.livemd", "livemd"), ("a.pod", "pod"), ("x.1", "1"),
        ("a.py", "python"), ("a.pyi", "pyi"), ("a.yml", "yaml"), ("a.yaml", "yaml"),
        ("a.rs", "rust"), ("a.xyz", "xyz"),
    ],
)  # fmt: skip
def test_only_markdown_and_plain_text_are_shown_without_a_fence(
    path: str, language: str | None
) -> None:
    assert find_fence_language(path) == language


def test_each_extension_has_one_format_besides_those_that_are_confirmed() -> None:
    sure = [e for row in FORMATS if not (row.confirm or row.names) for e in row.extensions]
    assert sorted(sure) == sorted(set(sure))
    assert all(find_extension(f"a.{each}") == each for each in sure if each)


_OWN = re.compile(
    r"[\"'|(]\\?\.?(?:md|mdx|markdown|rst|adoc|asciidoc|org|ipynb|html?|pod|tex|mediawiki|typ|textile)"
    r"[\"'|)]"
)


def test_nothing_outside_of_the_room_knows_an_extension() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in {"texts", *ADD_ONS}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if _OWN.search(line) and "markup" not in line and not line.lstrip().startswith("#")
    ]
    assert found == []
