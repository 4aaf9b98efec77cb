"""Finds a repository and its notes, and writes notes without losing those of others.

`git notes` overwrites whatever was written since it read. Here it writes to a draft ref of
our own, and the real ref moves to the result only if it still is where it was read.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from llm_kb.errors import KbError
from llm_kb.files.git import GitError, read_objects, run_git

KNOWLEDGE_REF = "refs/notes/chronicle-knowledge"
ANNOTATIONS_REF = "refs/notes/chronicle"
KEPT_REF = "refs/llm-kb/knowledge"
"""Our last own state of the entries, where no refspec for notes replaces it."""

EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The empty tree by the length of a repository's ids. git knows it in every repository,
whether or not it is stored, so a note on it belongs to the repository as a whole."""

_MOVED = ("but expected", "already exists", "File exists", "unable to resolve reference")
"""git's messages about a ref that has moved or that another process has locked."""

_MAX_LISTED = 20_000_000
"""The most bytes of a list of notes: about 200,000. Trees can share subtrees, so a few
objects may unfold to any number."""


class DamagedNotesError(KbError):
    """A ref or an object that does not hold git notes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no readable git notes; run `git fsck`")


class RefMovedError(KbError):
    """A ref that has moved since it was read, or that another process has locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The note of one object at one commit of its ref."""

    ref: str
    commit: str | None = None
    """The commit of the ref; None if the ref does not exist."""
    blob: str = ""
    """The id of the note's text; empty if the object has no note."""
    data: bytes | None = None
    """The text of the note; None if the object has no note."""


def read_ref(directory: Path, name: str) -> str | None:
    """Return the commit of a ref; None without one."""
    (found,) = read_objects(directory, [f"{name}^{{commit}}"])
    return found.id if found else None


def read_note(directory: Path, ref: str, target: str = "") -> Note:
    """Return the note of an object, by default of the empty tree."""
    (found,) = read_objects(directory, [ref])
    if found is None:
        return Note(ref=ref)
    if found.type != "commit":
        raise DamagedNotesError(ref)
    blob = list_notes(directory, found.id).get(target or EMPTY_TREES[len(found.id)])
    if blob is None:
        return Note(ref=ref, commit=found.id)
    (text,) = read_objects(directory, [blob])
    if text is None:
        # Without this error the note would be overwritten.
        raise DamagedNotesError(ref)
    return Note(ref=ref, commit=found.id, blob=blob, data=text.data)


def find_overwriting_refspec(directory: Path) -> str:
    """Return a warning if a plain `git fetch` here replaces the entries; empty if none does."""
    command = ("config", "--local", "--null", "--get-regexp", r"^remote\..*\.fetch$")
    with suppress(GitError):  # there is no refspec
        for listed in run_git(*command, cwd=directory).decode(errors="replace").split("\0"):
            key, _, spec = listed.partition("\n")
            place = spec.partition(":")[2].partition("*")[0]
            is_plain = len(listed) < 1000 and (key + spec).isprintable()
            if place and is_plain and KNOWLEDGE_REF.startswith(place):
                cure = shlex.join(["git", "config", "--fixed-value", "--unset-all", key, spec])
                return f"`git fetch` can overwrite or delete entries here. To prevent it: {cure}"
    return ""


def list_notes(directory: Path, commit: str) -> dict[str, str]:
    """Return the blob of every note of a commit, keyed by the id of its object."""
    # Not their sizes: for each of those git would open an object.
    command = ("ls-tree", "-r", "-z", "--full-tree", commit)
    try:
        listed = run_git(*command, cwd=directory, max_output=_MAX_LISTED)
    except GitError as error:
        raise DamagedNotesError(commit) from error  # a malformed tree ends git
    found = {}
    for record in listed.decode(errors="replace").split("\0")[:-1]:
        meta, _, path = record.partition("\t")
        id_ = meta.rpartition(" ")[2]
        name = path.replace("/", "")  # git splits a large tree into directories
        # Other files may be in the tree, too.
        if re.fullmatch(f"[0-9a-f]{{{len(id_)}}}", name):
            found[name] = id_
    return found


def commit_notes(
    directory: Path,
    commit: str | None,
    notes: Mapping[str, bytes],
    message: str,
    merged: str | None = None,
) -> str:
    """Write a commit with further `notes`, keyed by their object, and return its id.

    Its parents are `commit` and `merged`, whose other notes it has as well, those of
    `commit` where both have one. No ref moves.
    """
    draft = f"refs/notes/llm-kb-draft-{secrets.token_hex(8)}"
    parents = [parent for parent in (commit, merged) if parent]

    def write(*args: str, stdin: bytes = b"") -> str:
        return run_git(*args, cwd=directory, stdin=stdin).decode().strip()

    try:
        if commit:
            write("update-ref", draft, commit)
        if merged:
            write("notes", f"--ref={draft}", "merge", "--quiet", "--strategy=ours", merged)
        for target, data in notes.items():
            # As a blob: from a file git takes lines that begin with `#` for comments.
            blob = write("hash-object", "-w", "--stdin", stdin=data)
            write("notes", f"--ref={draft}", "add", "-f", "--allow-empty", "-C", blob, target)
        options = [option for parent in parents for option in ("-p", parent)]
        return write("commit-tree", *options, "-m", message, f"{draft}^{{tree}}")
    except GitError as error:
        if "ident" not in error.stderr and "tell me who you are" not in error.stderr:
            raise
        raise KbError(
            "git does not know who you are, and knowledge is written as a commit; "
            'run `git config --global user.name "…"` and '
            '`git config --global user.email "…"`, then try again'
        ) from error
    finally:
        with suppress(GitError):
            write("update-ref", "-d", draft)


Move: TypeAlias = tuple[str, str, "str | None"]
"""A ref, its new commit, and the commit at which it was read; None if it did not exist."""


def move_refs(directory: Path, moves: Sequence[Move]) -> None:
    """Move refs, all of them or none.

    A symbolic ref is replaced, not followed. Raises RefMovedError if a ref has moved or is locked.
    """
    lines = [f"update {ref} {new} {old or '0' * len(new)}" for ref, new, old in moves]
    lines += [f"update {KEPT_REF} {new}" for ref, new, _ in moves if ref == KNOWLEDGE_REF]
    stdin = "".join(f"option no-deref\n{line}\n" for line in lines).encode()
    try:
        run_git("update-ref", "-m", "llm-kb", "--stdin", cwd=directory, stdin=stdin)
    except GitError as error:
        if any(sign in error.stderr for sign in _MOVED):
            raise RefMovedError(error.stderr.strip()) from error
        raise
