"""Notes read from and written to a real git repository."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest

from llm_kb.capture.notes import (
    ANNOTATIONS_REF,
    EMPTY_TREES,
    KNOWLEDGE_REF,
    DamagedNotesError,
    Note,
    RefMovedError,
    commit_notes,
    list_notes,
    move_refs,
    read_note,
)
from llm_kb.files.git import GitError
from tests.repositories import SHA1_EMPTY_TREE, Repo, make_repo


def read(repo: Repo, ref: str = KNOWLEDGE_REF, target: str = "") -> Note:
    return read_note(repo.path, ref, target)


def write(repo: Repo, data: bytes, ref: str = KNOWLEDGE_REF, target: str = SHA1_EMPTY_TREE) -> None:
    note = read(repo, ref, target)
    new = commit_notes(repo.path, note.commit, {target: data}, "message")
    move_refs(repo.path, [(ref, new, note.commit)])


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_the_empty_tree_is_the_one_git_computes(tmp_path: Path, algorithm: str) -> None:
    repo = make_repo(tmp_path / "r", f"--object-format={algorithm}")
    id_ = repo.git("hash-object", "-t", "tree", "--stdin")
    assert EMPTY_TREES[len(id_)] == id_


def test_a_note_on_nothing_yet(repo: Repo) -> None:
    assert read(repo) == Note(ref=KNOWLEDGE_REF)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_what_is_written_git_reads_and_the_other_way_round(tmp_path: Path, algorithm: str) -> None:
    repo = make_repo(tmp_path / "r", f"--object-format={algorithm}")
    tree = repo.git("hash-object", "-t", "tree", "--stdin")
    write(repo, b"ours\n", target=tree)
    assert repo.note(target=tree) == "ours"
    repo.write_note("theirs", target=tree)
    note = read(repo)
    assert note.data == b"theirs\n"
    assert repo.git("cat-file", "blob", note.blob) == "theirs"
    assert repo.git("log", "--format=%s", KNOWLEDGE_REF).splitlines()[-1] == "message"


def test_a_large_notes_tree_keeps_its_depth_and_its_other_notes(repo: Repo) -> None:
    """Git itself splits this tree, and finds everything in it afterwards."""
    blob = _blob(repo)
    targets = [hashlib.sha1(b"%d" % number).hexdigest() for number in range(1200)]
    flat = "".join(f"100644 blob {blob}\t{target}\n" for target in targets)
    commit = repo.git("commit-tree", repo.git("mktree", stdin=flat), "-m", "flat")
    repo.git("update-ref", ANNOTATIONS_REF, commit)
    repo.write_note("old", ANNOTATIONS_REF, targets[7])
    assert _is_split(repo)

    write(repo, b"new\n", ANNOTATIONS_REF, targets[7])
    write(repo, b"store\n", ANNOTATIONS_REF)

    assert repo.note(ANNOTATIONS_REF, targets[7]) == "new"
    assert repo.note(ANNOTATIONS_REF) == "store"
    listed = repo.git("notes", f"--ref={ANNOTATIONS_REF}", "list").splitlines()
    assert {line.split()[1] for line in listed} == {*targets, SHA1_EMPTY_TREE}
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/notes") == ANNOTATIONS_REF
    assert _is_split(repo)


def _is_split(repo: Repo) -> bool:
    lines = repo.git("ls-tree", ANNOTATIONS_REF).splitlines()
    return all(line.startswith("040000 tree") for line in lines)


def _blob(repo: Repo) -> str:
    return repo.git("hash-object", "-w", "--stdin", stdin="x")


def test_a_ref_that_moved_is_not_overwritten(repo: Repo) -> None:
    note = read(repo, target=SHA1_EMPTY_TREE)
    mine = commit_notes(repo.path, note.commit, {SHA1_EMPTY_TREE: b"mine\n"}, "mine")
    repo.write_note("theirs")
    with pytest.raises(RefMovedError):
        move_refs(repo.path, [(KNOWLEDGE_REF, mine, None)])
    later = read(repo)
    mine = commit_notes(repo.path, later.commit, {SHA1_EMPTY_TREE: b"mine\n"}, "mine")
    repo.write_note("theirs again")
    with pytest.raises(RefMovedError):
        move_refs(repo.path, [(KNOWLEDGE_REF, mine, later.commit)])
    repo.git("update-ref", "-d", KNOWLEDGE_REF)
    with pytest.raises(RefMovedError):
        move_refs(repo.path, [(KNOWLEDGE_REF, mine, later.commit)])


def test_refs_move_together_or_not_at_all(repo: Repo) -> None:
    moves = [("refs/notes/a", repo.head, None), (KNOWLEDGE_REF, repo.head, "1" * 40)]
    with pytest.raises(RefMovedError):
        move_refs(repo.path, moves)
    assert repo.git("for-each-ref", "refs/notes") == ""


def test_a_locked_ref_counts_as_moved(repo: Repo) -> None:
    lock = repo.path / ".git" / f"{KNOWLEDGE_REF}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(RefMovedError, match=r"chronicle-knowledge\.lock"):
        move_refs(repo.path, [(KNOWLEDGE_REF, repo.head, None)])


def test_other_failures_are_not_taken_for_a_moved_ref(repo: Repo) -> None:
    with pytest.raises(GitError, match="update-ref failed"):
        move_refs(repo.path, [(KNOWLEDGE_REF, "1" * 40, None)])


def test_a_ref_that_is_no_commit_is_reported(repo: Repo) -> None:
    repo.git("update-ref", KNOWLEDGE_REF, _blob(repo))
    with pytest.raises(DamagedNotesError, match="chronicle-knowledge has no readable git notes"):
        read(repo)


@pytest.mark.slow
def test_trees_that_unfold_without_end_are_refused(repo: Repo) -> None:
    """A few objects, each of which names the one before 256 times."""
    tree = repo.git("mktree", stdin=f"100644 blob {_blob(repo)}\tx\n")
    for _ in range(4):
        lines = "".join(f"040000 tree {tree}\t{number:02x}\n" for number in range(256))
        tree = repo.git("mktree", stdin=lines)
    commit = repo.git("commit-tree", tree, "-m", "bomb")
    with pytest.raises(DamagedNotesError):
        list_notes(repo.path, commit)


@pytest.mark.parametrize(
    "tree", [b"100644", b"100644 x", b"100644 x\0"], ids=["mode", "name", "no id"]
)
def test_a_malformed_tree_is_reported(repo: Repo, tree: bytes) -> None:
    (repo.path / "raw").write_bytes(tree)
    id_ = repo.git("hash-object", "-t", "tree", "--literally", "-w", "raw")
    who = "A <a@b> 1 +0000"
    raw = f"tree {id_}\nauthor {who}\ncommitter {who}\n\nm\n"
    commit = repo.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)
    repo.git("update-ref", KNOWLEDGE_REF, commit)
    note = None
    with suppress(DamagedNotesError):
        note = read(repo)
    assert note is None or note.data is None


def test_text_is_kept_to_the_byte(repo: Repo) -> None:
    """Given as a file, `git notes` drops comments and empty lines."""
    text = b"\n\n# a heading \n\n\n\xff \r\n"
    write(repo, text)
    note = read(repo)
    assert note.data == text


def test_settings_about_notes_change_nothing(repo: Repo) -> None:
    for name, value in {
        "core.notesRef": "refs/notes/other",
        "notes.displayRef": "refs/notes/*",
        "notes.mergeStrategy": "ours",
        "notes.rewriteRef": "refs/notes/commits",
        "commit.gpgSign": "true",
        "core.autocrlf": "true",
    }.items():
        repo.git("config", name, value)
    write(repo, b"a\r\nb\n")
    note = read(repo)
    assert note.data == b"a\r\nb\n"
