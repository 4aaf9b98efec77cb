"""Valid and invalid sources."""

from __future__ import annotations

from typing import Any

import pytest

from llm_kb.files.fields import Fields
from llm_kb.references.sources.records import (
    CrawlSource,
    GitSource,
    Source,
    WebSource,
    compile_paths,
    read_source,
    source_table,
)
from llm_kb.search.roles import Role

ROLE_NAMES = "changes, code, docs, examples, tests"

GOOD: list[tuple[dict[str, Any], Source]] = [
    (
        {"type": "git", "url": "https://github.com/o/r", "ref": "v1.0", "paths": ["docs/", "a.md"]},
        GitSource(url="https://github.com/o/r", ref="v1.0", paths=("docs/", "a.md")),
    ),
    (
        {"type": "git", "url": "https://e.org:8443/x/y.git", "ref": "feature/a-b", "role": "code"},
        GitSource(url="https://e.org:8443/x/y.git", ref="feature/a-b", role=Role.CODE),
    ),
    ({"type": "git", "url": "ssh://git@e.org/x"}, GitSource(url="ssh://git@e.org/x")),
    ({"type": "git", "url": "file:///srv/x"}, GitSource(url="file:///srv/x")),
    ({"type": "web", "url": "http://e.org/a?b=c"}, WebSource(url="http://e.org/a?b=c")),
    (
        {"type": "crawl", "url": "https://e.org/", "depth": 0, "max_pages": 7},
        CrawlSource(url="https://e.org/", depth=0, max_pages=7),
    ),
    (
        {"type": "crawl", "url": "https://e.org/", "depth": 3},
        CrawlSource(url="https://e.org/", depth=3),
    ),
    ({"type": "git", "url": "pallets/flask"}, GitSource(url="https://github.com/pallets/flask")),
]


def read(table: object, **rules: Any) -> Source | list[str]:
    """Return the source of a table, else its problems."""
    fields = Fields(table, "sources[0]")
    return read_source(fields, **rules) or fields.problems


@pytest.mark.parametrize(("table", "source"), GOOD, ids=lambda value: str(value)[:60])
def test_sources_are_parsed_and_written_back(table: dict[str, Any], source: Source) -> None:
    parsed = read(table, protocols=("file", "ssh"))
    assert parsed == source
    assert read(source_table(source), protocols=("file", "ssh")) == source


HIDDEN = ("\x1b", "\x7f", "\x9b", "\xad", "\u061c", "\u202e", "\u2028", "\u2029", "\ud800")
"""Of each kind that a terminal carries out, that deceives who reads it, or that is no text."""


def git(**fields: Any) -> dict[str, Any]:
    return {"type": "git", "url": "https://e.org/x", **fields}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("web", "sources[0]: found 'web'; allowed: a table"),
        ({"url": "https://e.org/x"}, "sources[0].type: missing"),
        (
            {"type": ["git"]},
            "sources[0].type: found a list; allowed: crawl, git, package, web",
        ),
        ({"type": {"git": 1}}, "sources[0].type: found a table; allowed: crawl, git, package, web"),
        ({"type": "gti", "url": "x"}, "allowed: crawl, git, package, web; did you mean 'git'?"),
        ({"type": "local", "url": "/etc"}, "found 'local'; allowed: crawl, git, package, web"),
        ({"type": "web"}, "sources[0].url: missing"),
        ({"type": "web", "url": 7}, "sources[0].url: found the number 7; allowed: a string"),
        (
            {"type": "web", "url": "https://e.org/", "ref": "x"},
            "sources[0].ref: unknown key; allowed: role, type, url",
        ),
        ({"type": "web", "url": "file:///etc/passwd"}, "must be http or https"),
        ({"type": "web", "url": "//e.org/x"}, "must be http or https"),
        ({"type": "web", "url": "https:///x"}, "names no host"),
        ({"type": "web", "url": "https://e.org:99999/"}, "is invalid"),
        ({"type": "web", "url": "https://e.org/ x"}, "blanks or control characters"),
        ({"type": "web", "url": "https://e.org/\r\nX: y"}, "blanks or control characters"),
        ({"type": "web", "url": "https://me:secret@e.org/"}, "password"),
        (
            {"type": "crawl", "url": "https://e.org/", "depth": 6},
            "sources[0].depth: found the number 6; allowed: a whole number from 0 to 5",
        ),
        ({"type": "crawl", "url": "https://e.org/", "max_pages": True}, "from 1 to 500"),
        ({"type": "crawl", "url": "https://e.org/", "max_pages": 0}, "from 1 to 500"),
        (git(url="ext::sh -c id"), "never run"),
        (git(url="ext::/x"), "never run"),
        (git(url="foo::https://e.org/x"), "never run"),
        (git(url="-ufoo"), "leading '-'"),
        (git(url="/srv/x"), "allow_protocols under [kb.references] in your own kb.toml adds URLs "
         "such as file:///path"),
        (git(url="file:///srv/x"), "allow_protocols"),
        (git(url="git@e.org:x/y"), "ssh://git@host/path"),
        (git(url="ssh://git@e.org/x"), "allow_protocols"),
        (git(url="ftp://e.org/x"), "must be a URL of http or https"),
        (git(url="https://-e.org/x"), "names no host"),
        (git(url="https://token@e.org/x"), "credential helper"),
        (git(url="https://e.org/"), "names no repository"),
        (git(url="https://e.org/x#y"), "#fragment"),
        *((git(ref=ref), "not the name of a branch") for ref in (
            "--upload-pack=id", "-x", "a..b", "a b", "a:b", "a~1", "a^", "@{1}", "a@{1}", "a*",
            "/a", "a/", "a//b", "a.lock", "a.", "a/.b", "a\\b", "a\nb", "+a",
        )),
        *((git(paths=[path]), "inside the source") for path in (
            "../x", "a/../b", "/etc", "", "/", "./a", "a//b", "a\\b", "a\0b", "..",
            *(f"a{character}b" for character in HIDDEN),
        )),
        *((git(url=f"https://e.org/{character}x"), "blanks or control characters")
          for character in (*HIDDEN, "\u3000", "\xa0")),
        *(({"type": "web", "url": f"https://e{character}.org/"}, "blanks or control characters")
          for character in HIDDEN),
        (git(paths="docs/"), "sources[0].paths: found 'docs/'; allowed: a list of strings, as in"),
        (git(paths=[1]), "sources[0].paths[0]: found the number 1; allowed: a string"),
        (git(role="both"), f"sources[0].role: found 'both'; allowed: {ROLE_NAMES}"),
        (git(role=["docs"]), f"sources[0].role: found a list; allowed: {ROLE_NAMES}"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_what_is_refused_says_why(table: object, message: str) -> None:
    problems = read(table)
    assert isinstance(problems, list)
    assert all(problem.startswith("sources[0]") for problem in problems)
    assert message in "; ".join(problems)


def test_all_problems_are_reported_at_once() -> None:
    assert read({"type": "crawl", "depth": -1, "max_pages": "9", "x": 1}) == [
        "sources[0].url: missing",
        "sources[0].depth: found the number -1; allowed: a whole number from 0 to 5",
        "sources[0].max_pages: found '9'; allowed: a whole number from 1 to 500",
        "sources[0].x: unknown key; allowed: depth, exclude, include, max_pages, role, type, url",
    ]


def test_paths_and_pages_may_be_in_any_script() -> None:
    url, paths = "https://e.org/日本語/ñ", ("docs/使い方.md", "Ægir og Rán/")
    table = {"type": "git", "url": url, "paths": list(paths)}
    assert read(table) == GitSource(url=url, paths=paths)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("docs/a.md", True),
        ("docs/deep/b.md", True),
        ("README.md", True),
        ("README.md.bak", False),
        ("docs2/a.md", False),
        ("src/docs/a.md", False),
    ],
)
def test_paths_name_files_and_directories(path: str, wanted: bool) -> None:
    assert bool(compile_paths(("docs/", "README.md"))(path)) is wanted


def test_every_path_that_covers_a_file_is_found() -> None:
    find = compile_paths(("docs", "docs/", "docs/a.md", "a.md"))
    assert [find(path) for path in ("docs/a.md", "docs", "a")] == [
        ["docs", "docs/", "docs/a.md"],
        ["docs", "docs/"],
        [],
    ]


def test_names_for_people() -> None:
    assert [source.short_name for _, source in GOOD[:2]] == ["o/r", ""]
