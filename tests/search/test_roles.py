"""The roles of documents, the roles that questions ask for, and their effect on answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.errors import PatternError
from llm_kb.search import search as search_module
from llm_kb.search.question import parse_question
from llm_kb.search.roles import Role, Scope, explain_unsearched, find_role
from tests.search.folders import group, search


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("docs/a.md", Role.DOCS),
        ("README", Role.DOCS),
        ("guide.RST", Role.DOCS),
        ("book.pdf", Role.DOCS),
        ("docs/src/cli/test.md", Role.DOCS),
        ("docs/testing/index.md", Role.DOCS),
        ("src/a.py", Role.CODE),
        ("Makefile", Role.CODE),
        ("md", Role.CODE),
        ("src/history.py", Role.CODE),
        ("tests/README.md", Role.TESTS),
        ("pkg/store_test.go", Role.TESTS),
        ("caddytest/integration/proxy.txt", Role.TESTS),
        ("caddytest/integration/proxy.caddyfiletest", Role.TESTS),
        ("encode/testdata/home.html", Role.TESTS),
        ("smoke-tests/index.html", Role.TESTS),
        ("httptest/README.txt", Role.DOCS),
        ("httptest/guide.md", Role.DOCS),
        ("httptest/server.go", Role.CODE),
        ("site/latest/index.html", Role.DOCS),
        ("latest/index.html", Role.DOCS),
        ("src/a.spec.ts", Role.TESTS),
        ("test_a.py", Role.TESTS),
        ("specs/queue.rb", Role.TESTS),
        ("specs/queue.md", Role.DOCS),
        ("t/lib/App.rb", Role.TESTS),
        ("pages/t/tar.md", Role.DOCS),
        ("examples/chat/main.rs", Role.EXAMPLES),
        ("docs/src/usage.py", Role.EXAMPLES),
        ("docs/examples/a.md", Role.DOCS),
        ("CHANGELOG.md", Role.CHANGES),
        ("CHANGES", Role.CHANGES),
        ("docs/changes_1.x.rst", Role.CHANGES),
        ("docs/release-notes-2.0.md", Role.CHANGES),
        ("docs/history-v3.md", Role.CHANGES),
        ("docs/releases/1.2.txt", Role.CHANGES),
        ("Release notes/v1.md", Role.CHANGES),
        ("man/count.Rd", Role.DOCS),
        ("docs/whatsnew-3.1.rst", Role.CHANGES),
        ("blog/2024-01-01-new.md", Role.CHANGES),
        ("docs/_posts/2024-01-01-new.md", Role.CHANGES),
        ("docs/blog.md", Role.DOCS),
        ("doc/en/announce/release-2.0.rst", Role.CHANGES),
        ("rfcs/0001-queues.md", Role.CHANGES),
        ("docs/archive/0.x.md", Role.CHANGES),
        ("src/legacy/a.py", Role.CODE),
    ],
)
def test_the_role_of_a_document_is_told_by_its_path(path: str, role: Role) -> None:
    assert find_role(path) is role


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository in which everything is about retries, in the same words."""
    for path in (
        "src/retry.py",
        "tests/test_retry.py",
        "examples/retry.py",
        "CHANGELOG.md",
        "docs/retry.md",
    ):
        file = tmp_path / "repo" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Retries\n\nTo retry a request, set its retries.\n\nIn {path}.\n")
    return tmp_path / "repo"


@pytest.mark.parametrize("question", ["how do I retry a request", "retries of a request"])
def test_documentation_comes_first(repository: Path, question: str) -> None:
    paths = [hit.path for hit in search([repository], question).hits]
    assert len(paths) == 5
    assert paths[0] == "docs/retry.md"


def test_code_outranks_documentation_that_hardly_answers(tmp_path: Path) -> None:
    (tmp_path / "repo/docs").mkdir(parents=True)
    (tmp_path / "repo/docs/jobs.md").write_text("# Jobs\n\nEvery job is in a queue.\n")
    code = (
        "def drain(queue):\n    # run each pending job of the queue until it is empty\n    pass\n"
    )
    (tmp_path / "repo/queue.py").write_text(code)
    place = tmp_path / "repo"
    for question in ("run pending jobs until the queue is empty", "how do jobs run until empty"):
        assert search([place], question).hits[0].path == "queue.py"
    assert search([place], "how do I queue a job").hits[0].path == "docs/jobs.md"


def test_release_notes_do_not_outrank_the_page_that_explains(tmp_path: Path) -> None:
    notes = "# Changelog\n\n## 1.1\n\nWrite a plugin by a class.\n\n## 1.0\n\nClasses for plugins."
    page = "# Plugins\n\nTo write one, make a class that is called plugin, and name it in settings."
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/changelog.md").write_text(notes)
    (tmp_path / "repo/plugins.md").write_text(page)
    place = tmp_path / "repo"
    assert search([place], "how do I write a class for a plugin").hits[0].path == "plugins.md"


def test_a_scope_keeps_roles_and_paths(repository: Path) -> None:
    def paths(scope: Scope) -> set[str]:
        return {hit.path for hit in search([repository], "retries", scope=scope).hits}

    assert paths(Scope(roles=[Role.DOCS, Role.CHANGES])) == {"docs/retry.md", "CHANGELOG.md"}
    assert paths(Scope(paths=["docs/", "**/*.py"], roles=[Role.CODE])) == {"src/retry.py"}
    assert paths(Scope(paths=["docs/retry"])) == {"docs/retry.md"}
    assert paths(Scope(paths=["doc"])) == set()
    for name in ("repo/docs/retry.md", "repo/docs", "repo/docs/retry.md:1-5", "docs/retry#retries"):
        assert paths(Scope(paths=[name])) == {"docs/retry.md"}
    assert paths(Scope(paths=["other/docs/retry.md"])) == set()
    with pytest.raises(PatternError, match="starts with '/'"):
        paths(Scope(paths=["/docs"]))


def test_a_role_that_an_owner_gives_counts_at_once(repository: Path) -> None:
    def roles(given: str) -> dict[str, Role]:
        topics = group(
            repository,
            role_of=lambda path: given if path == "src/retry.py" else "",
            rules=given,
        )
        hits = search_module.search(topics, parse_question("retries")).hits
        return {hit.path: hit.role for hit in hits}

    assert roles("")["src/retry.py"] is Role.CODE
    assert roles("docs")["src/retry.py"] is Role.DOCS
    assert roles("docs")["tests/test_retry.py"] is Role.TESTS
    assert roles("")["src/retry.py"] is Role.CODE


def test_the_role_of_a_document_is_that_of_its_path_below_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases/one.md").write_text("# One\n\nRetry a request.\n")

    topics = group(tmp_path / "releases", place="docs/releases/")

    (hit,) = search_module.search(topics, parse_question("retry")).hits
    assert (hit.path, hit.role) == ("one.md", Role.CHANGES)


@pytest.mark.parametrize(
    ("path", "text", "made"),
    [
        ("uv.lock", "", True),
        ("web/package-lock.json", "{}", True),
        ("ace.min.js", "x", True),
        ("ace.js", "x" * 9_000, True),
        ("ace.tsx", "x" * 9_000, True),
        ("locales/ja.xlf", "<file>", True),
        ("api.json", "x" * 9_000, False),
        ("data.json", "x" * 30_000, True),
        ("banner.js", "/* */\n" * 30 + "x" * 90_000, True),
        ("parser.c", "// @generated by tool\n", True),
        ("pb.go", "// Code generated by protoc. DO NOT EDIT.\n", True),
        ("locales/ja/a.po", "msgid", True),
        ("guide.md", "Code generated by it: DO NOT EDIT.\n", False),
        ("a.py", "def generated(): pass\n", False),
        ("lock.py", "", False),
    ],
)
def test_what_machines_made_is_told(path: str, text: str, made: bool) -> None:
    assert bool(explain_unsearched(path, text)) is made


def test_a_lock_file_is_not_found_and_an_api_description_is(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "api.yaml").write_text(
        "openapi: 3.0.0\npaths:\n  /a:\n    summary: find a pet\n"
    )
    (tmp_path / "repo" / "uv.lock").write_text("find a pet\n" * 3)

    assert {hit.path for hit in search([tmp_path / "repo"], "find a pet").hits} == {"api.yaml"}
