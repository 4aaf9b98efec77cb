"""The catalog of a directory, on real files, links and worse."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_kb.errors import PatternError
from llm_kb.files import containment
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Content, Layout, Skipped, Subject, TopicConfig, slugify

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NFD = unicodedata.normalize("NFD", "é")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of a topic, with something private beside it."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key.md").write_text("secret")
    directory = tmp_path / "topic"
    directory.mkdir()
    return directory


def write(root: Path, *paths: str) -> None:
    """Create files that hold their own path."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def catalog(
    root: Path,
    *,
    disabled: Sequence[str] = (),
    ignore: Sequence[str] = (),
    layout: Layout = Layout.FILES,
    allow: Sequence[Path] = (),
) -> DirectoryTopic:
    """Open a topic over a directory."""
    return DirectoryTopic(
        TopicConfig(
            id="t",
            root=root,
            disabled=tuple(disabled),
            ignore=tuple(ignore),
            layout=layout,
            allow_links_to=tuple(allow),
        )
    )


def names(opened: DirectoryTopic) -> dict[str, str]:
    """Return the path of every subject by its name, hidden ones in brackets."""
    return {f"({s.name})" if s.hidden else s.name: s.path for s in opened.list().subjects}


def skipped(opened: DirectoryTopic) -> list[Skipped]:
    """Return what is no subject, and why."""
    return list(opened.list().skipped)


def found(opened: DirectoryTopic, reference: str) -> list[str]:
    """Return the paths that a reference names."""
    return [subject.path for subject in opened.list(reference).subjects]


def matched(opened: DirectoryTopic, pattern: str) -> list[str]:
    """Return the names that a pattern matches."""
    matches = parse_pattern(pattern).matches
    return [subject.name for subject in opened.list().listed if matches(subject.slug)]


def read(opened: DirectoryTopic, path: str, limit: int | None = None) -> Content:
    """Read a subject by its path, as if it had been listed."""
    return opened.read(Subject(slug=slugify(path), name=path, path=path), limit)


# What is listed


def test_a_dot_in_any_component_hides_a_subject(root: Path) -> None:
    write(root, "a.md", ".b.md", "c/.d.md", ".e/f.md", "g.md", ".g.txt", ".h/.i", "j/k.tar.gz")
    for disabled in ([], ["a"]):
        subjects = catalog(root, disabled=disabled).list().subjects
        hidden = {s.path for s in subjects if s.hidden}
        assert hidden == {".b.md", "c/.d.md", ".e/f.md", ".g.txt", ".h/.i"}


def test_every_file_is_a_subject_sorted_by_slug(root: Path) -> None:
    write(
        root, "b.md", "a/b.md", "a-b.md", "a.md", "a/.rules.md", ".dir/x.md", "README", "a.tar.gz"
    )
    assert list(names(catalog(root)).items()) == [
        ("README", "README"),
        ("a", "a.md"),
        ("a-b", "a-b.md"),
        ("a.tar", "a.tar.gz"),
        ("a/b", "a/b.md"),
        ("(a/rules)", "a/.rules.md"),
        ("b", "b.md"),
        ("(dir/x)", ".dir/x.md"),
    ]


def test_what_is_always_ignored_is_no_subject(root: Path) -> None:
    ignored = [
        ".git/config", ".hg/x", ".svn/x", "node_modules/x.md", "a/__pycache__/x.pyc", ".DS_Store",
        "a/Thumbs.db", "notes.md~", ".notes.md.swp", "b.swp", ".#lock", "c/.git",
    ]  # fmt: skip
    write(root, "a/keep.md", "c/keep~ish.md", *ignored)
    opened = catalog(root)
    assert names(opened) == {"a/keep": "a/keep.md", "c/keep~ish": "c/keep~ish.md"}
    assert [found(opened, path) for path in ignored] == [[]] * len(ignored)
    assert skipped(opened) == []


def test_ignore_rules_are_gitignore_rules(root: Path) -> None:
    write(root, "a.log", "keep.log", "top.md", "x/top.md", "build/a.md", "x/build/b.md", "z.tmp")
    rules = ["# comment", "*.log", "/top.md", "build/", "!keep.log", "*.tmp"]
    opened = catalog(root, ignore=rules)
    assert names(opened) == {"keep": "keep.log", "x/top": "x/top.md"}
    assert [found(opened, r) for r in ("a", "build/a", "z")] == [[]] * 3
    assert matched(opened, "**") == ["keep", "x/top"]


def test_rules_that_cannot_be_are_left_out_and_reported(root: Path) -> None:
    rules = ["!", "a[", "a" * 5_000, "c*c*c*c*c*d", "**/c/**/c/**/c", "b.md"]
    write(root, "a.md", "b.md", "cccccd", "c/x/c/c/e.md")
    opened = catalog(root, ignore=rules)
    assert names(opened) == {"a": "a.md"}
    assert [report.path for report in skipped(opened)] == ["ignore"] * 3


@pytest.mark.parametrize(
    "make", [lambda root: None, lambda root: root.rmdir()], ids=["empty", "gone"]
)
def test_a_topic_without_files_has_no_subjects(root: Path, make: object) -> None:
    assert callable(make)
    make(root)
    opened = catalog(root)
    assert (names(opened), list(opened.list().listed), matched(opened, "**")) == ({}, [], [])
    assert (found(opened, "a"), found(opened, "a/b")) == ([], [])


def test_a_missing_directory_or_one_that_is_a_file_is_reported(root: Path) -> None:
    write(root, "file.md")
    assert skipped(catalog(root / "gone")) == [Skipped(path="", reason="no such directory")]
    assert skipped(catalog(root / "file.md")) == [Skipped(path="", reason="not a directory")]


# Names


AMBIGUOUS = {
    "extensions": (["c.md", "c.toml"], {"c.md": "c.md", "c.toml": "c.toml"}),
    "without-one": (["R", "R.md"], {"R": "R", "R.md": "R.md"}),
    "hidden": (["n.md", ".n.md"], {"n": "n.md", "(.n)": ".n.md"}),
    "hidden-twice": (
        ["n.md", ".n.md", ".n.txt"],
        {"n": "n.md", "(.n.md)": ".n.md", "(.n.txt)": ".n.txt"},
    ),
    "hidden-only": ([".n.md", "..n.md"], {"(.n)": ".n.md", "(..n)": "..n.md"}),
    "directories": (["d/x.md", ".d/x.md"], {"d/x": "d/x.md", "(.d/x)": ".d/x.md"}),
    "name-is-slug": (
        ["c.md", "c.toml", "c.md.txt"],
        {"c.md": "c.md", "c.toml": "c.toml", "c.md.txt": "c.md.txt"},
    ),
    "chain": (
        ["c.md", "c.toml", "c.md.txt", "c.md.txt.rst"],
        {p: p for p in ["c.md", "c.toml", "c.md.txt", "c.md.txt.rst"]},
    ),
    "unicode-forms": (
        ["é.md", NFD + ".md"],
        {"é.md": "é.md", NFD + ".md": NFD + ".md"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("paths", "expected"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_files_that_share_a_slug_are_told_apart(
    root: Path, paths: list[str], expected: dict[str, str]
) -> None:
    write(root, *paths)
    opened = catalog(root)
    assert names(opened) == expected
    assert sorted(found(opened, slugify(paths[0]))) == sorted(
        path for path in paths if slugify(path) == slugify(paths[0])
    )
    for subject in opened.list().subjects:
        assert subject in opened.list(subject.name).subjects


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("c", [".c.md", "c.md", "c.toml"]),
        ("c.md", ["c.md"]),
        ("c.toml", ["c.toml"]),
        (".c", [".c.md"]),
        (".c.md", [".c.md"]),
        ("c.rst", []),
        ("C", []),
        ("d/rules", ["d/.rules.md"]),
        ("d/.rules", ["d/.rules.md"]),
        ("d/.rules.md", ["d/.rules.md"]),
        ("d/rules.md", ["d/.rules.md"]),
        ("h/x", [".h/x.md"]),
        (".h/x", [".h/x.md"]),
        (".h/x.md", [".h/x.md"]),
        ("p/x", ["...p/x.md"]),
        ("v1.2/x", ["v1.2/x.md"]),
        ("é/ü", [NFD + "/ü.md"]),
        (NFD + "/" + unicodedata.normalize("NFD", "ü"), [NFD + "/ü.md"]),
        ("a[1]", ["a[1].md"]),
        ("d", []),
        ("d/", []),
        ("/d/rules", []),
        ("./c", []),
        ("d/../c", []),
        ("../private/key", []),
        ("d//rules", []),
        ("", []),
        ("c\0", []),
        ("x" * 5000, []),
        ("x/" * 5000 + "y", []),
        ("\udcff/x", []),
    ],
    ids=ascii,
)
def test_a_reference_is_a_slug_with_or_without_extension_and_dots(
    root: Path, reference: str, expected: list[str]
) -> None:
    write(root, "c.md", "c.toml", ".c.md", "d/.rules.md", ".h/x.md", "...p/x.md", "v1.2/x.md")
    write(root, NFD + "/ü.md", "a[1].md")
    assert sorted(found(catalog(root), reference)) == expected


PARTS = st.sampled_from(["a", "b", ".a", "..b", "a.b", ".a.b", "é", NFD, "c.md", "c.md.txt"])
TREES = st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=TREES)
def test_every_way_to_a_subject_finds_it(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str]
) -> None:
    """Listing and finding agree on any tree."""
    root = tmp_path_factory.mktemp("tree")
    for path in paths:
        if (
            not any(parent.is_file() for parent in (root / path).parents)
            and not (root / path).is_dir()
        ):
            write(root, path)
    opened = catalog(root)
    subjects = list(opened.list().subjects)
    listed = [s for s in subjects if not s.hidden]
    assert [s.slug for s in subjects] == sorted(slugify(s.path) for s in subjects)
    assert len({s.name for s in subjects}) == len(subjects)
    assert list(opened.list().listed) == listed
    for subject in subjects:
        assert subject in opened.list(subject.name).subjects
        assert subject in opened.list(subject.slug).subjects
        assert subject in opened.list(subject.path).subjects


def test_subjects_are_a_sequence(root: Path) -> None:
    write(root, "a.md", "b.md", "b.txt", "c.md")
    subjects = catalog(root).list().subjects
    assert [s.path for s in subjects] == ["a.md", "b.md", "b.txt", "c.md"]
    assert [subjects[i].path for i in range(-4, 4)] == [s.path for s in subjects] * 2
    assert [s.path for s in subjects[1:3]] == ["b.md", "b.txt"]
    assert len(subjects) == 4
    assert subjects[2] in subjects


# What is disabled


@pytest.mark.parametrize("entry", ["s", "s.md", "d/.h", "d/.h.md", "d/h", "d/*", "?", "**", "s*"])
def test_a_disabled_entry_covers_every_spelling(root: Path, entry: str) -> None:
    write(root, "s.md", "d/.h.md", "other.md")
    opened = catalog(root, disabled=[entry])
    covers_s = entry in ("s", "s.md", "?", "**", "s*")
    covers_h = entry in ("d/.h", "d/.h.md", "d/h", "d/*", "**")
    for references, path, covered in (
        (["s", "s.md"], "s.md", covers_s),
        (["d/h", "d/.h", "d/h.md", "d/.h.md"], "d/.h.md", covers_h),
        (["other"], "other.md", entry == "**"),
    ):
        assert (path in names(opened).values()) is not covered
        assert [found(opened, r) for r in references] == [[] if covered else [path]] * len(
            references
        )


def test_what_a_page_includes_has_not_its_name(root: Path) -> None:
    write(root, "u/prune.rst", "u/prune.rst.inc")
    assert names(catalog(root)) == {"u/prune": "u/prune.rst", "u/prune.rst.inc": "u/prune.rst.inc"}
    assert found(catalog(root), "u/prune.rst") == ["u/prune.rst"]
    assert found(catalog(root), "u/prune.rst.inc") == ["u/prune.rst.inc"]
    for entry, left in (("u/prune.rst", "u/prune.rst.inc"), ("u/prune.rst.inc", "u/prune")):
        assert list(names(catalog(root, disabled=[entry]))) == [left]


def test_a_link_leads_to_nothing_that_is_disabled_or_ignored(root: Path) -> None:
    write(root, "s.md", "d/x.md", "d/y.md", ".git/config", ".h/z.md", ".h/keep.md")
    for link, target in {"l.md": "s.md", "g.md": ".git/config", "dl": "d", "hl": ".h"}.items():
        (root / link).symlink_to(target)
    opened = catalog(root, disabled=["s", "d/x", "h/z"])
    assert names(opened) == {"d/y": "d/y.md", "hl/keep": "hl/keep.md"}
    assert [found(opened, r) for r in ("l", "l.md", "g", "dl/x", "hl/z", "dl/x.md")] == [[]] * 6
    assert found(opened, "dl/y") == ["dl/y.md"]


def test_disabled_entries_ignore_case_where_the_disk_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "Secret.md", "open.md")
    assert names(catalog(root, disabled=["SECRET"])) == {"Secret": "Secret.md", "open": "open.md"}
    monkeypatch.setattr(containment.Containment, "ignores_case", True)
    assert names(catalog(root, disabled=["SECRET"])) == {"open": "open.md"}


def test_a_disabled_entry_that_is_not_a_pattern_is_an_error(root: Path) -> None:
    write(root, "a.md")
    with pytest.raises(PatternError, match="invalid pattern '/a'"):
        catalog(root, disabled=["/a"]).list()
