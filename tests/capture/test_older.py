"""The commands of docs/capture.md that exchange entries with git-chronicle by git alone."""

from __future__ import annotations

from llm_kb.capture.notes import ANNOTATIONS_REF
from llm_kb.capture.store import load_store
from tests.repositories import KNOWLEDGE_REF, SHA1_EMPTY_TREE, Repo

CHRONICLE_TARGET = "4b825dc642cb6eb9a060e54bf899d15f13160d28"
"""The id that git-chronicle uses for the empty tree, which no object has."""


def copy_note(repo: Repo, *, source: tuple[str, str], target: tuple[str, str]) -> None:
    blob = repo.git("notes", f"--ref={source[0]}", "list", source[1])
    repo.git("notes", f"--ref={target[0]}", "add", "-C", blob, target[1])


def test_entries_of_git_chronicle_are_taken_over(repo: Repo) -> None:
    repo.record("theirs")
    repo.write_note(repo.note(), ANNOTATIONS_REF, CHRONICLE_TARGET)
    repo.git("update-ref", "-d", KNOWLEDGE_REF)
    copy_note(
        repo, source=(ANNOTATIONS_REF, CHRONICLE_TARGET), target=(KNOWLEDGE_REF, SHA1_EMPTY_TREE)
    )
    assert [entry.rule for entry in load_store(repo.path).entries] == ["theirs"]


def test_ours_can_be_handed_to_git_chronicle(repo: Repo) -> None:
    repo.record("ours")
    copy_note(
        repo, source=(KNOWLEDGE_REF, SHA1_EMPTY_TREE), target=(ANNOTATIONS_REF, CHRONICLE_TARGET)
    )
    assert repo.note_json(ANNOTATIONS_REF, CHRONICLE_TARGET) == repo.note_json()
