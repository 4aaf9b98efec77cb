"""The store in a real repository, alone and with others writing to it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llm_kb.capture.emission import InvalidEntryError, parse_emission
from llm_kb.capture.entries import Entry, KnowledgeStore
from llm_kb.capture.notes import DamagedNotesError, Move
from llm_kb.capture.store import (
    DamagedStoreError,
    Snapshot,
    UnknownCommitError,
    add_to_store,
    change_store,
    load_store,
    remove_from_store,
    save_store,
)
from llm_kb.errors import KbError
from tests.preloaded import Process
from tests.repositories import (
    KNOWLEDGE_REF,
    SHA1_EMPTY_TREE,
    Repo,
    make_empty_repo,
    make_repo,
)

OLDER: dict[str, Any] = {
    "schema": "chronicle/knowledge-v1",
    "conventions": [{"id": "conv-1", "scope": "*", "rule": "older", "stability": "permanent"}],
    "boundaries": [],
    "anti_patterns": [],
}


def convention(rule: str) -> Entry:
    return parse_emission({"entry_type": "convention", "scope": "src/", "rule": rule})


def rules(directory: Path) -> list[str]:
    return [entry.rule for entry in load_store(directory).entries]


def test_an_entry_is_in_the_note_when_the_call_returns(repo: Repo) -> None:
    addition = add_to_store(repo.path, convention("use x"))
    assert (addition.is_new, addition.entry.id) == (True, "conv-1")
    assert repo.note_json() == {
        "schema": "chronicle/knowledge-v1",
        "conventions": [
            {
                "id": "conv-1",
                "scope": "src/",
                "rule": "use x",
                "decided_in": repo.head,
                "stability": "provisional",
            }
        ],
        "boundaries": [],
        "anti_patterns": [],
    }


def test_a_duplicate_writes_nothing(repo: Repo) -> None:
    add_to_store(repo.path, convention("use x"))
    before = repo.git("rev-parse", KNOWLEDGE_REF)
    assert add_to_store(repo.path, convention("Use X.")).is_new is False
    assert repo.git("rev-parse", KNOWLEDGE_REF) == before


def test_provenance_is_the_commit_that_was_named(repo: Repo) -> None:
    first = repo.head
    repo.commit("second")
    assert add_to_store(repo.path, convention("a"), commit=first).entry.provenance == first
    assert add_to_store(repo.path, convention("b")).entry.provenance == repo.head
    with pytest.raises(UnknownCommitError, match="no commit is called 'nothing'"):
        add_to_store(repo.path, convention("d"), commit="nothing")


def test_every_write_is_a_commit_with_a_message(repo: Repo) -> None:
    add_to_store(repo.path, convention("a"))
    add_to_store(repo.path, convention("b"))
    remove_from_store(repo.path, "conv-1")
    log = repo.git("log", "--format=%s by %an", KNOWLEDGE_REF).splitlines()
    assert log == [f"{s} by Test Author" for s in ("Remove conv-1", *["Add convention"] * 2)]


@pytest.mark.parametrize(
    "note", ["<<<<<<< ours", "[]", '{"schema": "chronicle/knowledge-v1", "conventions": [1]}']
)
def test_a_damaged_store_is_reported_and_never_overwritten(repo: Repo, note: str) -> None:
    repo.write_note(note)
    before = repo.git("rev-parse", KNOWLEDGE_REF)
    blob = repo.git("rev-parse", f"{KNOWLEDGE_REF}:{SHA1_EMPTY_TREE}")
    command = f"git show {blob}"
    for act in (
        lambda: load_store(repo.path),
        lambda: add_to_store(repo.path, convention("a")),
        lambda: remove_from_store(repo.path, "conv-1"),
    ):
        with pytest.raises(DamagedStoreError, match="cannot be read, and nothing was changed") as e:
            act()
        assert command in str(e.value)
    assert repo.git(*command.split()[1:]) == note
    assert repo.git("rev-parse", KNOWLEDGE_REF) == before


def test_a_note_that_cannot_be_read_is_not_taken_for_none(repo: Repo) -> None:
    """As in a partial clone without its server, or on a disk that lost a file."""
    add_to_store(repo.path, convention("a"))
    blob = repo.git("rev-parse", f"{KNOWLEDGE_REF}:{SHA1_EMPTY_TREE}")
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    before = repo.git("rev-parse", KNOWLEDGE_REF)
    for act in (load_store, lambda directory: add_to_store(directory, convention("b"))):
        with pytest.raises(DamagedNotesError, match="run `git fsck`"):
            act(repo.path)
    assert repo.git("rev-parse", KNOWLEDGE_REF) == before


def test_outside_a_repository(tmp_path: Path) -> None:
    for act in (load_store, lambda directory: add_to_store(directory, convention("a"))):
        with pytest.raises(KbError, match="is not inside a git repository"):
            act(tmp_path)


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    repo = make_empty_repo(tmp_path / "empty")
    assert load_store(repo.path) == KnowledgeStore()
    with pytest.raises(UnknownCommitError, match="has no commit yet"):
        add_to_store(repo.path, convention("a"))


def test_without_an_identity_nothing_is_written(repo: Repo, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(KbError, match="who you are"):
        add_to_store(repo.path, convention("a"))
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_sha256(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", "--object-format=sha256")
    add_to_store(repo.path, convention("a"))
    add_to_store(repo.path, convention("b"))
    tree = repo.git("hash-object", "-t", "tree", "--stdin")
    assert len(repo.note_json(target=tree)["conventions"]) == 2


def test_every_place_of_a_repository_shares_one_store(repo: Repo, tmp_path: Path) -> None:
    """From a subdirectory and from a linked work tree; a bare one is refused."""
    below = repo.path / "src"
    below.mkdir()
    repo.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    for place, rule in ((repo.path, "root"), (below, "below"), (tmp_path / "linked", "linked")):
        add_to_store(place, convention(rule))
        assert rules(repo.path)[-1] == rule
    bare = tmp_path / "bare.git"
    repo.git("clone", "--quiet", "--mirror", ".", str(bare))
    with pytest.raises(KbError, match="with a work tree"):
        add_to_store(bare, convention("bare"))


def test_a_write_that_was_overtaken_is_made_again_on_top(repo: Repo) -> None:
    """Another program, which takes no turns, writes between our reading and our writing."""
    seen: list[int] = []

    def decide(snapshot: Snapshot) -> tuple[str, Sequence[Move]]:
        seen.append(len(snapshot.store.entries))
        if len(seen) == 1:
            repo.write_note(json.dumps(OLDER))
        mine = convention("mine")._replace(fields={"id": "conv-9", **convention("mine").fields})
        entries = (*snapshot.store.entries, mine)
        return "done", [save_store(repo.path, snapshot, KnowledgeStore(entries=entries), "mine")]

    assert change_store(repo.path, decide) == "done"
    assert seen == [0, 1]
    assert rules(repo.path) == ["older", "mine"]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("src/**/*.py", "is not a path; give one directory such as 'src/' or file, or '*'"),
        ("*.py", "is not a path"),
        ("src\\\\a", "is not a path"),
        ("src/, tests/", "is not a path; give one directory"),
        ("the git module", "is not a path; give one directory"),
        ("src/nonexistent/", "does not exist at [0-9a-f]{12}; give a directory or file that does"),
    ],
)
def test_a_model_can_record_nothing_for_a_place_that_is_not_there(
    repo: Repo, place: str, problem: str
) -> None:
    repo.commit("src", src__a_py="")
    entry = parse_emission({"entry_type": "convention", "scope": place, "rule": "r"})
    with pytest.raises(InvalidEntryError, match=problem):
        add_to_store(repo.path, entry, is_checked=True)
    assert load_store(repo.path) == KnowledgeStore()


def test_a_place_may_be_named_like_a_pattern_or_be_new_in_the_work_tree(repo: Repo) -> None:
    repo.commit("src", **{"src__odd*, name": ""})
    (repo.path / "new dir").mkdir()
    for place in ("src/odd*, name", "new dir/", "src", "./src/**", "*", "."):
        entry = parse_emission({"entry_type": "convention", "scope": place, "rule": f"r {place}"})
        assert add_to_store(repo.path, entry, is_checked=True).is_new


def test_a_store_that_never_rests_is_given_up_with_what_git_said(repo: Repo) -> None:
    lock = repo.path / ".git" / f"{KNOWLEDGE_REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()

    def add(snapshot: Snapshot) -> tuple[None, list[Move]]:
        return None, [save_store(repo.path, snapshot, KnowledgeStore(), "add")]

    with pytest.raises(KbError, match=r"chronicle-knowledge\.lock"):
        change_store(repo.path, add, patience=0.1)


EMIT_MANY = """
import sys
from llm_kb.knowledge_base.api import KnowledgeBase
(tool,) = KnowledgeBase.discover().added_tools(["emit_knowledge"])
emit = tool.implementation
for number in range(int(sys.argv[2])):
    emit(entry_type="anti_pattern", pattern=f"{sys.argv[1]} number {number}", instead="not")
    print(number, flush=True)
"""


def start_writer(repo: Repo, name: str, count: int) -> Process:
    return Process([name, str(count)], program=EMIT_MANY, cwd=repo.path)


@pytest.mark.slow
def test_ten_processes_writing_at_once_lose_nothing(repo: Repo) -> None:
    writers = [start_writer(repo, f"writer {number}", 8) for number in range(10)]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 10
    entries = load_store(repo.path).entries
    expected = {f"writer {writer} number {number}" for writer in range(10) for number in range(8)}
    assert {entry.rule for entry in entries} == expected
    assert {entry.id for entry in entries} == {f"ap-{number}" for number in range(1, 81)}
    assert repo.git("rev-list", "--count", KNOWLEDGE_REF) == "80"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_writer_killed_at_any_moment_leaves_a_store_that_works(repo: Repo) -> None:
    """The whole process group dies, git with it, at four different moments."""
    answered = 0
    for round_ in range(4):
        writer = start_writer(repo, f"round {round_}", 1000)
        writer.stdout.readline()
        time.sleep(round_ * 0.009)
        os.killpg(writer.pid, signal.SIGKILL)
        answered += 1 + len(writer.communicate()[0].splitlines())
        # git leaves its lock when it is killed while it holds it, and says how to go on.
        lock = repo.path / ".git" / f"{KNOWLEDGE_REF}.lock"
        lock.unlink(missing_ok=True)
        entries = load_store(repo.path).entries
        assert len({entry.id for entry in entries}) == len(entries) >= answered
        add_to_store(repo.path, convention(f"after {round_}"))
    assert len(load_store(repo.path).entries) >= answered + 4
    repo.git("fsck", "--connectivity-only")
