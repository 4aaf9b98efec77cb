"""Annotations and knowledge written together, in a real repository."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from llm_kb.capture.annotation import LiveInput, annotate, parse_live_input
from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.capture.store import DamagedStoreError, UnknownCommitError, load_store
from tests.capture.repositories import Repo

SUMMARY = "Because the other way round it hangs"


def run(repo: Repo, **fields: Any) -> dict[str, Any]:
    raw = {"commit": "HEAD", "summary": SUMMARY, **fields}
    return annotate(repo.path, parse_live_input(json.dumps(raw)))


def test_the_annotation_is_a_note_on_the_commit(repo: Repo) -> None:
    first = repo.head
    repo.commit("second")
    wisdom = [{"category": "gotcha", "content": "c", "file": "x"}]
    assert run(repo, commit="HEAD~1", wisdom=wisdom) == {
        "success": True,
        "commit": first,
        "wisdom_written": 1,
        "knowledge_written": 0,
        "knowledge_duplicates": 0,
        "warnings": [],
    }
    note = repo.note_json(ANNOTATIONS_REF, first)
    written = datetime.fromisoformat(note.pop("timestamp"))
    assert abs(datetime.now(timezone.utc) - written) < timedelta(minutes=5)
    assert note == {
        "schema": "chronicle/v3",
        "commit": first,
        "summary": SUMMARY,
        "wisdom": wisdom,
        "provenance": {"source": "live", "author": "Test Author"},
    }


def test_knowledge_goes_to_the_store_with_its_commit(repo: Repo) -> None:
    first = repo.head
    repo.commit("second")
    knowledge = [
        {"type": "convention", "scope": "src/", "rule": "Use x"},
        {"type": "convention", "scope": "src/", "rule": "use x."},
        {"type": "anti_pattern", "pattern": "p", "instead": "i"},
    ]
    result = run(repo, commit=first, knowledge=knowledge)
    assert (result["knowledge_written"], result["knowledge_duplicates"]) == (2, 1)
    result = run(repo, knowledge=knowledge)
    assert (result["knowledge_written"], result["knowledge_duplicates"]) == (0, 3)
    assert [(e.id, e.provenance) for e in load_store(repo.path).entries] == [
        ("conv-1", first),
        ("ap-1", first),
    ]


def test_another_annotation_replaces_the_first_and_says_so(repo: Repo) -> None:
    run(repo)
    result = run(repo, summary="For quite another reason, it turned out")
    assert result["warnings"] == [f"replaced the annotation that {repo.head[:8]} had"]
    assert repo.note_json(ANNOTATIONS_REF, repo.head)["summary"].startswith("For quite another")
    assert repo.git("rev-list", "--count", ANNOTATIONS_REF) == "2"


def test_annotations_of_other_commits_stay(repo: Repo) -> None:
    heads = [repo.head, repo.commit("second"), repo.commit("third")]
    for head in heads:
        run(repo, commit=head)
    listed = repo.git("notes", f"--ref={ANNOTATIONS_REF}", "list").splitlines()
    assert sorted(line.split()[1] for line in listed) == sorted(heads)


@pytest.mark.parametrize("name", ["nothing", "HEAD:README.md", "HEAD\nHEAD", "--all", " "])
def test_a_commit_that_is_none_writes_nothing(repo: Repo, name: str) -> None:
    live = LiveInput(commit=name, summary=SUMMARY)
    with pytest.raises(UnknownCommitError, match="no commit is called"):
        annotate(repo.path, live)
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_a_store_that_cannot_be_read_writes_nothing(repo: Repo) -> None:
    repo.write_note("{")
    with pytest.raises(DamagedStoreError):
        run(repo, knowledge=[{"type": "anti_pattern", "pattern": "p", "instead": "i"}])
    assert repo.git("for-each-ref", ANNOTATIONS_REF) == ""


def test_when_one_ref_cannot_move_the_other_stays(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two refs move in one transaction."""
    monkeypatch.setattr("llm_kb.capture.store.PATIENCE", 0.05)
    lock = repo.path / ".git" / f"{ANNOTATIONS_REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(Exception, match=r"chronicle\.lock"):
        run(repo, knowledge=[{"type": "anti_pattern", "pattern": "p", "instead": "i"}])
    assert repo.git("for-each-ref", "refs/notes") == ""
