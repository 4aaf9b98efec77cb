"""Slugs and the records of topics and subjects."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_kb.subjects.topics import Slug, Subject, slugify

TABLE = {
    "maintainers/jean.md": "maintainers/jean",
    "code-quality.md": "code-quality",
    ".internal-notes.md": "internal-notes",
    "ast-grep/.rules.md": "ast-grep/rules",
    ".hidden-dir/visible.md": "hidden-dir/visible",
    "..two/...three.md": "two/three",
    "README": "README",
    "a.tar.gz": "a.tar",
    ".gitignore": "gitignore",
    ".env.local": "env",
    "v1.2/notes.md": "v1.2/notes",
    "v1.2/notes": "v1.2/notes",
    "a.": "a",
    "a..md": "a.",
    "a b.md": "a b",
    unicodedata.normalize("NFD", "é/ü.md"): "é/ü",
}


@pytest.mark.parametrize(("path", "slug"), TABLE.items(), ids=map(ascii, TABLE))
def test_a_slug_is_the_path_less_extension_and_dots(path: str, slug: str) -> None:
    assert slugify(path) == slug


NAMES = st.text(min_size=1).map(lambda name: name.replace("/", "")).filter(lambda n: n.strip("."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(PATHS)
def test_a_slug_is_the_slug_of_a_file_of_that_name(path: str) -> None:
    slug = slugify(path)
    assert slugify(slug + ".md") == slug


@given(PATHS, st.sampled_from([".md", ".toml"]))
def test_dots_and_unicode_form_make_no_other_slug(path: str, extension: str) -> None:
    dotted = "/".join("." + component for component in path.split("/"))
    decomposed = unicodedata.normalize("NFD", dotted)
    assert slugify(decomposed + extension) == slugify(path + extension)


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("a.md", "md"),
        ("a.MD", "md"),
        ("a.tar.gz", "gz"),
        ("README", ""),
        (".env", ""),
        ("a.d/b", ""),
    ],
)
def test_an_extension_is_lower_case_and_without_its_dot(path: str, extension: str) -> None:
    assert Subject(slug=Slug("a"), name="a", path=path).extension == extension
