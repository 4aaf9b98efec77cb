"""The stores that git-chronicle itself writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm_kb.capture.emission import parse_emission
from llm_kb.capture.entries import KnowledgeStore
from llm_kb.capture.errors import DamagedStoreError
from llm_kb.capture.git.notes import ANNOTATIONS_REF, CHRONICLE_TARGET, Note
from llm_kb.capture.sharing.sync import import_older, read_older_stores
from llm_kb.capture.store import add_to_store, load_store
from llm_kb.git.read import ObjectReader
from tests.capture.repositories import KNOWLEDGE_REF, SHA1_EMPTY_TREE, Repo

OLDER: dict[str, Any] = {
    "schema": "chronicle/knowledge-v1",
    "conventions": [
        {"id": "conv-1", "scope": "*", "rule": "older", "stability": "permanent", "by": "me"}
    ],
    "boundaries": [],
    "anti_patterns": [{"id": "ap-2", "pattern": "p", "instead": "i", "learned_from": "BUG-42"}],
}


def find_older(repo: Repo) -> tuple[tuple[Note, KnowledgeStore], ...]:
    with ObjectReader(repo.path) as reader:
        return read_older_stores(reader)


def add(repo: Repo, rule: str) -> None:
    add_to_store(
        repo.path, parse_emission({"entry_type": "convention", "scope": "*", "rule": rule})
    )


@pytest.mark.parametrize(
    ("ref", "target"),
    [
        (ANNOTATIONS_REF, CHRONICLE_TARGET),
        (ANNOTATIONS_REF, SHA1_EMPTY_TREE),
        (KNOWLEDGE_REF, CHRONICLE_TARGET),
    ],
)
def test_they_are_found_imported_and_left_alone(repo: Repo, ref: str, target: str) -> None:
    repo.write_note(json.dumps(OLDER), ref, target)
    assert load_store(repo.path) == KnowledgeStore()
    assert [(note.ref, note.target) for note, _ in find_older(repo)] == [(ref, target)]
    assert [addition.is_new for addition in import_older(repo.path)] == [True, True]
    assert repo.note_json() == OLDER
    assert repo.note_json(ref, target) == OLDER


def test_importing_twice_adds_nothing(repo: Repo) -> None:
    repo.write_note(json.dumps(OLDER), ANNOTATIONS_REF, CHRONICLE_TARGET)
    import_older(repo.path)
    before = repo.git("rev-parse", KNOWLEDGE_REF)
    assert [addition.is_new for addition in import_older(repo.path)] == [False, False]
    assert repo.git("rev-parse", KNOWLEDGE_REF) == before


def test_an_id_that_is_taken_becomes_the_next_one(repo: Repo) -> None:
    add(repo, "ours")
    repo.write_note(json.dumps(OLDER), ANNOTATIONS_REF, CHRONICLE_TARGET)
    import_older(repo.path)
    assert [(entry.id, entry.rule) for entry in load_store(repo.path).entries] == [
        ("conv-1", "ours"),
        ("conv-2", "older"),
        ("ap-2", "p"),
    ]


@pytest.mark.parametrize(
    ("left_out", "message"), [("", "Import 2 entries"), ("anti_patterns", "Import 1 entry")]
)
def test_the_history_of_the_note_says_how_many_came(
    repo: Repo, left_out: str, message: str
) -> None:
    older = OLDER | ({left_out: []} if left_out else {})
    repo.write_note(json.dumps(older), ANNOTATIONS_REF, CHRONICLE_TARGET)
    import_older(repo.path)
    assert repo.git("log", "-1", "--format=%s", KNOWLEDGE_REF) == message


def test_without_any_nothing_happens(repo: Repo) -> None:
    assert find_older(repo) == ()
    assert import_older(repo.path) == ()
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_a_damaged_one_is_reported_with_its_place(repo: Repo) -> None:
    repo.write_note("{", ANNOTATIONS_REF, CHRONICLE_TARGET)
    with pytest.raises(DamagedStoreError, match=f"git show {ANNOTATIONS_REF}:{CHRONICLE_TARGET}"):
        import_older(repo.path)


def test_ours_can_be_handed_to_git_chronicle_with_git_alone(repo: Repo) -> None:
    """The command of docs/capture.md."""
    add(repo, "ours")
    blob = repo.git("notes", f"--ref={KNOWLEDGE_REF}", "list", SHA1_EMPTY_TREE)
    repo.git("notes", f"--ref={ANNOTATIONS_REF}", "add", "-f", "-C", blob, CHRONICLE_TARGET)
    assert repo.note_json(ANNOTATIONS_REF, CHRONICLE_TARGET) == repo.note_json()
