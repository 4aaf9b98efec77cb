"""Reads a git note and its trees, and replaces it without losing concurrent changes.

`git notes add` overwrites whatever was written since it read. Here a note is read
together with the commit of its ref, and the ref moves to the new commit only if it
still is at the old one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from llm_kb.errors import KbError
from llm_kb.git.read import GitObject, ObjectReader
from llm_kb.git.run import GitError, run_git

KNOWLEDGE_REF = "refs/notes/chronicle-knowledge"
ANNOTATIONS_REF = "refs/notes/chronicle"

EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The empty tree by the length of a repository's ids. git knows it in every repository,
whether or not it is stored, so a note on it belongs to the repository as a whole."""

_MOVED = ("but expected", "already exists", "File exists", "unable to resolve reference")
"""git's messages about a ref that has moved or that another process has locked."""

_MOST_TREES = 70_000  # more than two levels of 256 directories


class DamagedNotesError(KbError):
    """A ref or an object that does not hold git notes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no readable git notes; run `git fsck`")


class RefMovedError(KbError):
    """A ref that has moved since it was read, or that another process has locked."""

    def __init__(self, said: str) -> None:
        self.is_locked = "File exists" in said
        super().__init__(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The note of one object at one commit of its ref."""

    ref: str
    target: str
    commit: str | None
    """The commit of the ref; None if the ref does not exist."""
    data: bytes | None
    """The text of the note; None if the object has no note."""
    levels: tuple[tuple[TreeEntry, ...], ...] = ((),)
    """The trees from the root down to the one that holds, or would hold, the note."""

    @property
    def path(self) -> str:
        """The path of the note in the tree of its ref."""
        width = 2 * (len(self.levels) - 1)
        parts = [self.target[start : start + 2] for start in range(0, width, 2)]
        return "/".join([*parts, self.target[width:]])


def read_note(reader: ObjectReader, ref: str, target: str | None = None) -> Note | None:
    """Return the note of an object, by default of the empty tree.

    Returns None if the ref does not exist and no object is named: the empty tree's id
    depends on the repository's hash, which is then unknown.
    """
    commit = reader.read(ref)
    if commit is None:
        return Note(ref=ref, target=target, commit=None, data=None) if target else None
    if commit.type != "commit":
        raise DamagedNotesError(ref)
    target = target or EMPTY_TREES[len(commit.id)]
    tree = _tree_of(commit)
    levels: list[tuple[TreeEntry, ...]] = []
    data: bytes | None = None
    rest = target.encode()
    while tree:
        entries = _read_tree(reader, tree, len(commit.id) // 2)
        levels.append(entries)
        found = {entry.name: entry for entry in entries}
        tree = ""
        if rest in found and found[rest].mode != TREE:
            blob = reader.read(found[rest].id.hex())
            if blob is None:
                # Without this error the note would be overwritten.
                raise DamagedNotesError(ref)
            data = blob.data
        elif rest[:2] in found and found[rest[:2]].mode == TREE:
            tree, rest = found[rest[:2]].id.hex(), rest[2:]
    if data is None and _is_fanned_out(levels[-1]):
        levels.append(())
    return Note(ref=ref, target=target, commit=commit.id, data=data, levels=tuple(levels))


def flatten_notes(reader: ObjectReader, commit: str) -> dict[bytes, TreeEntry]:
    """Return every note of a commit, keyed by the id of its object."""
    found = reader.read(commit)
    if found is None or found.type != "commit":
        raise DamagedNotesError(commit)
    flat: dict[bytes, TreeEntry] = {}
    trees, looked_at = [(b"", _tree_of(found))], 0
    while trees:
        prefix, tree = trees.pop()
        looked_at += 1
        if looked_at > _MOST_TREES:
            # Trees can share subtrees, so a few objects may unfold to any number.
            raise DamagedNotesError(commit)
        for entry in _read_tree(reader, tree, len(found.id) // 2):
            name = prefix + entry.name
            if entry.mode == TREE:
                trees.append((name, entry.id.hex()))
            else:
                flat[name] = TreeEntry(mode=entry.mode, name=name, id=entry.id)
    return flat


def _tree_of(commit: GitObject) -> str:
    tree = commit.data.split(b"\n", 1)[0].removeprefix(b"tree ").decode(errors="replace")
    if len(tree) != len(commit.id):
        raise DamagedNotesError(commit.id)
    return tree


def _read_tree(reader: ObjectReader, id_: str, width: int) -> tuple[TreeEntry, ...]:
    tree = reader.read(id_)
    if tree is None or tree.type != "tree":
        raise DamagedNotesError(id_)
    try:
        return parse_tree(tree.data, width)
    except ValueError as error:
        raise DamagedNotesError(id_) from error


def _is_fanned_out(entries: Sequence[TreeEntry]) -> bool:
    # git splits large notes trees by the first two digits of the id.
    return any(entry.mode == TREE and len(entry.name) == 2 for entry in entries)


def commit_note(
    directory: Path, note: Note, data: bytes, message: str, merged: Sequence[str] = ()
) -> str:
    """Write a commit in which the note holds `data`, and return its id.

    Its parents are the commit at which the note was read and those in `merged`. The ref
    does not move.
    """
    tree = write_trees(directory, note, write_object(directory, "blob", data))
    return commit_tree(directory, tree, message, [*([note.commit] if note.commit else []), *merged])


def write_object(directory: Path, type_: str, data: bytes) -> str:
    """Write a blob or a tree and return its id."""
    command = ("hash-object", "-t", type_, "-w", "--stdin")
    return run_git(*command, cwd=directory, stdin=data).decode().strip()


def commit_tree(directory: Path, tree: str, message: str, parents: Sequence[str]) -> str:
    """Write a commit of a tree and return its id. Raises KbError without an identity."""
    options = [option for parent in parents for option in ("-p", parent)]
    try:
        done = run_git("commit-tree", *options, "-m", message, tree, cwd=directory)
    except GitError as error:
        if "ident" in error.stderr or "tell me who you are" in error.stderr:
            raise KbError(
                "git does not know who you are, and knowledge is written as a commit; "
                'run `git config --global user.name "…"` and '
                '`git config --global user.email "…"`, then try again'
            ) from error
        raise
    return done.decode().strip()


def write_trees(directory: Path, note: Note, blob: str) -> str:
    """Write the trees of a note with `blob` in its place and return the root's id.

    Their other entries and their depth stay.
    """
    child = TreeEntry(
        mode=BLOB, name=note.target[2 * (len(note.levels) - 1) :].encode(), id=bytes.fromhex(blob)
    )
    tree = ""
    for depth in range(len(note.levels) - 1, -1, -1):
        kept = [entry for entry in note.levels[depth] if entry.name != child.name]
        tree = write_object(directory, "tree", format_tree([*kept, child]))
        if depth:
            name = note.target[2 * (depth - 1) : 2 * depth].encode()
            child = TreeEntry(mode=TREE, name=name, id=bytes.fromhex(tree))
    return tree


def move_refs(directory: Path, moves: Sequence[tuple[str, str, str | None]], reason: str) -> None:
    """Move refs, given as (ref, new commit, commit it was read at), all of them or none.

    Raises RefMovedError if a ref has moved or is locked.
    """
    lines = "".join(f"update {ref} {new} {old or '0' * len(new)}\n" for ref, new, old in moves)
    try:
        run_git("update-ref", "-m", reason, "--stdin", cwd=directory, stdin=lines.encode())
    except GitError as error:
        if any(sign in error.stderr for sign in _MOVED):
            raise RefMovedError(error.stderr.strip()) from error
        raise


TREE = b"40000"
BLOB = b"100644"


class TreeEntry(NamedTuple):
    """One entry of a tree object, with its id in binary form."""

    mode: bytes
    name: bytes
    id: bytes

    @property
    def sort_key(self) -> bytes:
        """The key by which git sorts: the name, with a slash at the end for a tree."""
        return self.name + b"/" if self.mode == TREE else self.name


def parse_tree(data: bytes, width: int) -> tuple[TreeEntry, ...]:
    """Return the entries of a tree whose ids have `width` bytes; raise ValueError."""
    line = re.compile(rb"([0-7]+) ([^\0]+)\0(.{%d})" % width, re.DOTALL)
    entries = []
    position = 0
    while position < len(data):
        found = line.match(data, position)
        if not found:
            raise ValueError(f"no tree: {data[position : position + 80]!r}")
        entries.append(TreeEntry._make(found.groups()))
        position = found.end()
    return tuple(entries)


def format_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return a tree object of these entries, in git's order."""
    ordered = sorted(entries, key=lambda entry: entry.sort_key)
    return b"".join(b"%b %b\0%b" % entry for entry in ordered)
