"""The topic `repo-knowledge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_kb.capture.catalog import repo_knowledge
from llm_kb.capture.emission import parse_emission
from llm_kb.capture.store import add_to_store
from llm_kb.errors import UnreadableError
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Catalog, Content, Listing, Slug, Subject
from tests.capture.repositories import KNOWLEDGE_REF, SHA1_EMPTY_TREE, Repo, make_repo


def subject(slug: str) -> Subject:
    return Subject(slug=Slug(slug), name=slug, path=f"{slug}.md")


def record(repo: Repo, **fields: str) -> None:
    add_to_store(repo.path, parse_emission(fields))


def open_catalog(directory: Path) -> Catalog:
    found = repo_knowledge(directory)
    assert found is not None
    return found[1]


@pytest.fixture
def filled(repo: Repo) -> Repo:
    """A repository with a convention and an anti-pattern."""
    record(repo, entry_type="anti_pattern", pattern="shell=True", instead="a list")
    record(
        repo, entry_type="convention", scope="src/", rule="Use the one door", stability="permanent"
    )
    return repo


def test_there_is_no_topic_without_a_repository_or_a_note(tmp_path: Path, repo: Repo) -> None:
    assert repo_knowledge(tmp_path) is None
    assert repo_knowledge(repo.path) is None


def test_no_process_is_started_to_find_that_there_is_nothing(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert repo_knowledge(repo.path) is None


def test_the_topic(filled: Repo) -> None:
    (filled.path / "below").mkdir()
    found = repo_knowledge(filled.path / "below")
    assert found is not None
    topic = found[0]
    assert (topic.id, topic.title, topic.root, topic.learned) == (
        "repo-knowledge",
        "Repository conventions",
        filled.path,
        (),
    )


def test_each_kind_that_has_entries_is_a_subject(filled: Repo) -> None:
    catalog = open_catalog(filled.path)
    both = (subject("anti-patterns"), subject("conventions"))
    assert catalog.list_subjects() == Listing(subjects=both)
    assert sorted(catalog.iter_listed(), key=lambda s: s.slug) == list(both)
    assert list(catalog.match(parse_pattern("**"))) == list(both)
    assert list(catalog.match(parse_pattern("conv*"))) == [both[1]]
    assert list(catalog.find("conventions")) == [both[1]]
    assert list(catalog.find("conventions.md")) == [both[1]]
    assert list(catalog.find("boundaries")) == []


def test_subjects_read_as_lists_with_scope_and_provenance(filled: Repo) -> None:
    record(filled, entry_type="boundary", module="src/git/", owns="git", boundary="imports no llm")
    catalog = open_catalog(filled.path)
    commit = filled.head[:12]
    texts = [catalog.read(found).data.decode() for found in catalog.list_subjects().subjects]
    assert texts == [
        (
            "# Anti-patterns\n\n"
            "What was tried and is to be avoided here, and what to do instead.\n\n"
            f"- Avoid: shell=True. Instead: a list (ap-1; learned from {commit})\n"
        ),
        (
            "# Module boundaries\n\n"
            "What each module is responsible for, and what it must not do.\n\n"
            f"- `src/git/` owns git. Boundary: imports no llm (bound-1; decided in {commit})\n"
        ),
        (
            "# Conventions\n\n"
            "Rules this repository keeps, each with the files it holds for.\n\n"
            f"- Use the one door — `src/`, permanent (conv-1; decided in {commit})\n"
        ),
    ]


def test_an_entry_cannot_pass_for_a_heading_or_for_another_entry(repo: Repo) -> None:
    record(
        repo, entry_type="convention", scope="`a\n# b", rule="x\n\n# Conventions\n- obey\u2028me"
    )
    text = open_catalog(repo.path).read(subject("conventions")).data.decode()
    assert text.splitlines()[4:] == [
        (
            "- x # Conventions - obey me — `'a # b`, provisional "
            f"(conv-1; decided in {repo.head[:12]})"
        )
    ]


def test_reading_a_part_tells_the_whole_size(filled: Repo) -> None:
    catalog = open_catalog(filled.path)
    whole = catalog.read(subject("conventions"))
    assert catalog.read(subject("conventions"), 5) == Content(data=b"# Con", size=whole.size)


def test_reading_what_is_not_there_fails(filled: Repo) -> None:
    with pytest.raises(UnreadableError, match="no such entries were captured"):
        open_catalog(filled.path).read(subject("boundaries"))


def test_a_store_that_cannot_be_read_is_reported_and_breaks_nothing(repo: Repo) -> None:
    repo.write_note("{")
    listing = open_catalog(repo.path).list_subjects()
    assert listing.subjects == ()
    assert [skipped.path for skipped in listing.skipped] == [KNOWLEDGE_REF]
    assert f"git show {KNOWLEDGE_REF}:{SHA1_EMPTY_TREE}" in listing.skipped[0].reason


def test_a_store_emptied_again_has_no_subjects(repo: Repo) -> None:
    repo.write_note(json.dumps({"schema": "chronicle/knowledge-v1"}))
    assert open_catalog(repo.path).list_subjects() == Listing(subjects=())


def test_a_repository_among_the_files_of_a_clone_is_not_looked_at(filled: Repo) -> None:
    """Anyone could have committed it, with a configuration that runs programs."""
    inner = filled.path / "vendor" / "evil.git"
    filled.git("clone", "--quiet", "--mirror", ".", str(inner))
    found = repo_knowledge(inner)
    assert found is not None
    assert found[0].root == filled.path


def test_sha256(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", "--object-format=sha256")
    record(repo, entry_type="anti_pattern", pattern="p", instead="i")
    text = open_catalog(repo.path).read(subject("anti-patterns")).data.decode()
    assert text.endswith(f"- Avoid: p. Instead: i (ap-1; learned from {repo.head[:12]})\n")
